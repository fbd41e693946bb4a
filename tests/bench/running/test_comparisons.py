"""The preset `families`: every task's own comparison, planned seed by seed and refused nowhere."""

from collections import defaultdict
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest

from bench.api import registry
from bench.api.options import complete
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.task import TASKS
from bench.running.families import compared_tasks
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.quality_cells import quality_cell, uniform_baselines
from bench.running.request import CHECK_SEEDS, Request
from bench.training.refusals import cell_refusal
from reports.catalog import Catalog
from reports.ranked_table.grouping import comparisons
from results import load

PUBLISHED = Path(__file__).parents[3] / "results" / "published" / "families.parquet"
WITHOUT_ATTENTION = {"uniform", "mean_pooling", "last_state", "none_state", "none_input"}
NOTHING_ELSE = {
    "kernel regression": "what is left is the mean of training, which stands there as a baseline",
    "reading": "the network asks a table by its weights alone",
    "supervised attention": "without weights there are no links to score",
}
"""Families in which the planner's `uniform` is all that makes sense."""
COMPARED = [task.name for group in compared_tasks("quick") for task in group]


@pytest.fixture(scope="module")
def families():
    """What `families` would hold without a limit of time."""
    return plan(Request(preset="families", minutes=1e6))


def comparison(name):
    return registry.find("task", name).target.comparison


def test_every_compared_task_stands_in_the_plan_with_controls_and_baseline(families):
    assert COMPARED
    beside = {resolve(name).canonical.show() for name in (*uniform_baselines(), "scaled_dot")}
    for name in COMPARED:
        found = {p.cell.variant for p in families.quality if parse(p.cell.task).name == name}
        assert beside <= found
        assert {resolve(e.variant).canonical.show() for e in comparison(name)} <= found


def test_each_group_of_members_has_all_its_seeds_before_the_next_begins(families):
    seeds = range(PRESETS["families"].seeds)
    walked = [(planned.cell.seed, parse(planned.cell.task).name) for planned in families.quality]
    checks = {
        name for name, item in registry.registrations(TASKS).items() if item.target.pipeline_check
    }
    assert [pair for pair, _ in groupby(walked)] == [
        (seed, task.name)
        for group in compared_tasks("quick")
        for seed in seeds
        for task in group
        if seed < CHECK_SEEDS or task.name not in checks
    ]


def test_real_data_come_first_in_every_family():
    first = [registry.find("task", task.name).target for task in compared_tasks("quick")[0]]
    ahead = {target.family for target in first if not target.is_generated()}
    for name in COMPARED:
        target = registry.find("task", name).target
        if not target.is_generated():
            assert target.family in ahead
    assert {target.family for target in first} == {
        registry.find("task", name).target.family for name in COMPARED
    }


def test_nothing_is_timed_and_nothing_is_planned_twice(families):
    assert not families.speed
    ids = [cell.id for cell in families.cells]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", COMPARED)
def test_no_entry_of_a_comparison_is_refused(name):
    request = Request(preset="families")
    for entry in comparison(name):
        spec = resolve(entry.variant)
        default_task = DefaultTask(
            task=entry.task or name, backbone=entry.backbone, slot=entry.slot
        )
        cell = quality_cell(request, spec, default_task, 0).cell
        task = registry.find("task", parse(cell.task).name).target
        reason = cell_refusal(spec, task, parse(cell.backbone), cell.slot)
        assert reason is None, f"{entry.variant} on {cell.task}: {reason}"


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_names_each_entry_once_and_has_a_family(name):
    entries = comparison(name)
    assert len(set(entries)) == len(entries)
    assert registry.find("task", name).target.family
    plain = {e.variant for e in entries if not (e.backbone or e.slot or e.task)}
    assert not plain & {*uniform_baselines(), "scaled_dot"}, "the planner adds these"


@pytest.mark.parametrize(
    ("name", "variant", "backbone", "slot"),
    [
        ("translation", "scaled_dot", ("encoder=birnn[cell=lstm", "decoder=luong[cell=lstm"), ""),
        ("translation", "shaw_rpr", ("transformer_seq2seq",), "self"),
        ("transduction", "raffel_monotonic", ("encoder=uni_rnn",), ""),
        ("snli", "decomposable", ("pair", "encoder=birnn[cell=lstm"), ""),
        ("snli", "scaled_dot", ("pair", "encoder=transformer"), ""),
        ("nli_syn", "decomposable", ("pair", "encoder=birnn[cell=lstm"), ""),
        ("nli_syn", "scaled_dot", ("pair", "encoder=transformer"), ""),
        ("stsb", "decomposable", ("pair", "encoder=birnn"), ""),
        ("inflection", "scaled_dot", ("transformer_seq2seq",), ""),
        ("infl", "scaled_dot", ("transformer_seq2seq",), ""),
        ("method_naming", "pointer_net", ("rnn_seq2seq",), ""),
        *(
            (name, variant, ("rnn_decoder", "cell=lstm"), "")
            for name in ("tinyshakespeare", "wikitext2_mini", "stdlib_code")
            for variant in ("scaled_dot", "pointer_sentinel", "neural_cache")
        ),
    ],
)
def test_a_family_has_the_networks_that_its_field_uses(families, name, variant, backbone, slot):
    cells = [p.cell for p in families.quality if parse(p.cell.task).name == name]
    assert any(
        parse(cell.variant).name == parse(resolve(variant).canonical.show()).name
        and all(part in complete("backbone", parse(cell.backbone)).show() for part in backbone)
        and (not slot or cell.slot == slot)
        for cell in cells
    )


def test_every_family_has_a_network_that_does_not_choose_where_to_look():
    found = defaultdict(set)
    for name in COMPARED:
        family = registry.find("task", name).target.family
        found[family] |= {parse(entry.variant).name for entry in comparison(name)}
    lacking = {family for family, names in found.items() if not names & WITHOUT_ATTENTION}
    assert lacking == NOTHING_ELSE.keys()


def test_mechanisms_that_are_compared_have_uniform_attention_beside_them(families):
    """In the same comparison of the report, or a score says what the network does."""
    unscored = {
        "metric": "",
        "axis": "",
        "split": "",
        "status": "ok",
        "finished": "",
        "baseline": "",
    }
    first = [planned.cell for planned in families.quality if planned.cell.seed == 0]
    cells = [{**asdict(cell), "cell": cell.id, **unscored} for cell in first]
    checked = 0
    for found in comparisons(pd.DataFrame(cells), Catalog({})):
        names = {parse(variant).name for variant in found.variants}
        if len(names - WITHOUT_ATTENTION) < 2:
            continue
        checked += 1
        if "uniform" in names:
            continue
        (backbone,) = found.frame["backbone"].unique()
        refused = cell_refusal(
            resolve("uniform"),
            registry.find("task", parse(found.task).name).target,
            parse(backbone),
            found.place[0],
        )
        assert refused, f"{found.title}: {sorted(names)}"
    assert checked >= len(COMPARED), checked


def test_asked_variants_alone_run_beside_controls_and_baseline():
    name = COMPARED[0]
    asked = comparison(name)[0].variant
    made = plan(Request(preset="families", tasks=name, variants=asked, seeds=1))
    found = {planned.cell.variant for planned in made.quality}
    assert found == {
        resolve(one).canonical.show() for one in (asked, *uniform_baselines(), "scaled_dot")
    }


def test_sizes_are_those_of_quick():
    name = COMPARED[0]
    cell = plan(Request(preset="families", tasks=name, seeds=1)).quality[0].cell
    quick = quality_cell(
        Request(preset="quick"), resolve("uniform"), DefaultTask(task=name), 0
    ).cell
    assert (cell.task, cell.backbone, cell.protocol) == (quick.task, quick.backbone, quick.protocol)


def test_the_families_fit_their_budget(families):
    within = plan(Request(preset="families"))
    assert [planned.cell.id for planned in within.quality] == [c.cell.id for c in families.quality]
    assert within.seconds <= PRESETS["families"].budget_s


def test_every_published_cell_is_one_that_this_code_would_run(families):
    """If this fails, what was published came from other settings: run those cells again.

    Some tasks were marked as pipeline checks after their third seeds had been published.
    """
    published = set(load(PUBLISHED).rows["cell"])
    planned = plan(Request(preset="families", minutes=1e6, seeds=PRESETS["families"].seeds))
    assert {one.cell.id for one in families.quality} <= {one.cell.id for one in planned.quality}
    assert published
    assert published <= {one.cell.id for one in planned.quality}


def test_a_variant_that_no_named_task_compares_stands_beside_the_controls():
    asked = "hard_gumbel_st[tau_start=2],additive"
    made = plan(Request(preset="families", tasks="stdlib_code,transduction", variants=asked))
    seen = {(one.cell.task.partition("[")[0], one.cell.variant) for one in made.quality}
    tasks = {"stdlib_code", "transduction"}
    assert {task for task, variant in seen if "tau_start" in variant} == tasks
    # a variant that one of them compares keeps to that comparison
    compared = {task for task in tasks if _compares(task, "additive")}
    assert {task for task, variant in seen if variant == "additive"} == compared
    nowhere = plan(Request(preset="families", variants=asked))
    assert not any("tau_start" in one.cell.variant for one in nowhere.quality)


def test_only_tasks_that_compare_a_named_variant_are_trained(families):
    made = plan(Request(preset="families", variants="mocha,kerple", minutes=1e6))
    mocha = resolve("mocha").canonical.show()
    expected = {p.cell.task for p in families.quality if p.cell.variant == mocha}
    # other options of the same tasks have controls of their own
    found = {p.cell.task.partition("[")[0] for p in made.quality}
    assert found == {task.partition("[")[0] for task in expected}
    (left,) = made.left_out
    assert "no task of preset families compares it" in left.reason
    again = plan(Request(preset="families", variants="kerple", tasks="offset"))
    assert left.command.endswith("--variants kerple --tasks offset --preset families")
    assert any("kerple" in p.cell.variant for p in again.quality)


def test_a_network_without_a_named_variant_is_left_out():
    made = plan(Request(preset="families", variants="nadaraya_watson", minutes=1e6))
    named = resolve("nadaraya_watson").canonical.show()
    places = {(p.cell.task, p.cell.backbone, p.cell.slot): set() for p in made.quality}
    for p in made.quality:
        places[p.cell.task, p.cell.backbone, p.cell.slot].add(p.cell.variant)
    assert places
    assert all(named in variants and len(variants) > 1 for variants in places.values())


def test_controls_alone_are_trained_on_every_task(families):
    made = plan(Request(preset="families", variants="uniform", minutes=1e6))
    assert {p.cell.task.partition("[")[0] for p in made.quality} == {
        p.cell.task.partition("[")[0] for p in families.quality
    }


def _compares(task, variant):
    entries = registry.find(TASKS, task).target.compared_at("quick")
    return variant in {one.selector.show() for one in entries}
