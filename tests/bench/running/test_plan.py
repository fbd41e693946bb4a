"""The planner: pure, complete, within its budget, and stable in the names it gives to questions."""

import builtins
import shlex
import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from bench.ablate import ablation
from bench.api import registry
from bench.api.cell import Cell, parse_label
from bench.api.errors import BenchError, InvalidConfig, UnknownName
from bench.api.resolve import resolve
from bench.api.selector import Selector
from bench.api.task import TASKS
from bench.cli.main import cli
from bench.cli.option_groups import filled
from bench.cli.run import command as run_command
from bench.cli.run_options import RunOptions
from bench.running.left_out import CHOOSING, FILES, NARROWING, without_comparers
from bench.running.plan import OTHERWISE, plan
from bench.running.presets import PRESETS
from bench.running.quality_cells import (
    expected_of_label,
    plain_task,
    roster_of,
    shared_tasks,
    uniform_baselines,
)
from bench.running.request import Request
from bench.running.revisions import revisions_of
from bench.running.speed_cells import speed_regimes, timed_alone_s
from bench.timing.block import group_blocks
from bench.timing.shape import parse_rounds, parse_shape
from bench.training.protocol import read_protocol

SMALL = Request(variants="additive", tasks="after_marker", preset="smoke")


def canonical(name):
    return resolve(name).canonical.show()


@pytest.fixture(scope="module")
def quick():
    """What `quick` would hold on a machine with so many cores that everything fits."""
    return plan(Request(jobs=64))


def test_planning_touches_no_file_no_clock_and_no_random_state(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("the planner is pure")

    for owner, name in (
        (builtins, "open"),
        (Path, "open"),
        (Path, "read_text"),
        (Path, "is_file"),
        (Path, "is_dir"),
        (time, "time"),
        (time, "monotonic"),
        (time, "perf_counter"),
        (time, "process_time"),
        (torch.cuda, "is_available"),
    ):
        monkeypatch.setattr(owner, name, forbidden)
    before = torch.random.get_rng_state()
    assert plan(Request(preset="quick", device="cuda")).cells
    assert plan(Request(preset="standard", tasks="translation")).cells
    monkeypatch.undo()
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_same_request_gives_the_same_cells(quick):
    again = plan(Request(jobs=64))
    assert [c.label for c in quick.cells] == [c.label for c in again.cells]
    assert quick.left_out == again.left_out


def test_no_cell_is_planned_twice_and_every_label_reads_back(quick):
    ids = [cell.id for cell in quick.cells]
    assert len(set(ids)) == len(ids)
    assert [parse_label(cell.label).id for cell in quick.cells] == ids


def test_the_id_of_a_planned_cell_changes_only_on_purpose():
    """If this fails, a default has changed and old results no longer match: say so in an ADR."""
    found = {(c.kind, c.task): c.id for c in plan(SMALL).cells if c.variant == "additive"}
    assert found["quality", "after_marker[beyond=12,evaluate=64,length=8]"] == "7bfcc7000966"
    assert found["speed", "attend[length=32,regime=cross]"] == "3af4c14d8f06"


def test_every_field_of_a_planned_cell_is_what_was_asked():
    asked = replace(
        SMALL,
        variants="additive[width=16]",
        tasks="transduction[rule=swap]",
        backbone="transformer_seq2seq[width=32]",
        slot="causal",
        training="adam[steps=7]",
        seeds=2,
        first_seed=5,
        device="cuda",
        dtype="float64",
        impl="eager",
        speed=False,
    )
    cells = [c for c in plan(asked).cells if c.variant == canonical("additive[width=16]")]
    assert [cell.seed for cell in cells] == [5, 6]
    cell = cells[0]
    assert cell.kind == "quality"
    assert cell.task.startswith("transduction[")
    assert "rule=swap" in cell.task
    assert cell.backbone.startswith("transformer_seq2seq[")
    assert "width=32" in cell.backbone
    assert (cell.slot, cell.device, cell.dtype, cell.impl) == ("causal", "cuda", "float64", "eager")
    assert "steps=7]" in cell.protocol
    assert "lr=" not in cell.protocol, "defaults are left out"
    assert cell.revisions == "transformer_seq2seq:2", "first revisions are left out"


def first_contender(asked):
    """The first cell that is not of the baseline."""
    made = plan(asked)
    baseline = made.baseline.canonical.show()
    return next(cell for cell in made.cells if cell.variant != baseline)


@pytest.mark.parametrize(
    ("axis", "name"), [("score", "additive"), ("task", "after_marker"), ("backbone", "pooling")]
)
def test_a_new_revision_of_the_code_is_another_cell(axis, name, fresh_registry):
    before = first_contender(replace(SMALL, speed=False))
    changed = replace(registry.find(axis, name), revision=2)
    registry._ENTRIES[axis][name] = changed
    after = first_contender(replace(SMALL, speed=False))
    assert after.id != before.id
    assert f"{name}:2" in after.revisions
    assert revisions_of(before) == after.revisions


@pytest.mark.parametrize(("axis", "name"), [("decoder", "bahdanau"), ("encoder", "birnn")])
def test_a_new_revision_of_a_part_of_the_backbone_is_another_cell(axis, name, fresh_registry):
    asked = replace(SMALL, variants="bahdanau", tasks="transduction", speed=False)
    asked = replace(asked, backbone="rnn_seq2seq[encoder=birnn]")
    before = first_contender(asked)
    registry._ENTRIES[axis][name] = replace(registry.find(axis, name), revision=2)
    assert first_contender(asked).id != before.id


@pytest.mark.parametrize("tasks", ["transduction", ""])
def test_a_budget_that_ends_early_leaves_the_baseline(tasks):
    """Without it nothing would be compared."""
    asked = Request(variants="dot,additive,general", tasks=tasks, minutes=0.01, speed=False)
    whole = plan(replace(asked, minutes=1000.0))
    first = whole.quality[0]
    enough = first.seconds * 1.5 / (1 - OTHERWISE) / 60 / asked.jobs
    (kept,) = plan(replace(asked, minutes=enough)).quality
    assert kept.cell.variant in {
        canonical(name) for name in ("scaled_dot", "uniform", "aa_control")
    }


def test_all_covers_every_listed_variant_on_its_default_task(quick):
    trained = {(c.variant, c.task.partition("[")[0]) for c in quick.cells if c.kind == "quality"}
    labels = [left.label for left in quick.left_out]
    left = {one.removeprefix("training of ") for one in labels if one.startswith("training of ")}
    left |= {parse_label(one).variant for one in labels if one.startswith("quality ")}
    for name, registered in registry.listed_variants().items():
        default_task = registered.default_task.task.partition("[")[0]
        assert (canonical(name), default_task) in trained or {name, canonical(name)} & left


def test_controls_and_the_baseline_stand_on_every_default_task(quick):
    beside = [canonical(name) for name in (*uniform_baselines(), "scaled_dot")]
    places = {(c.task, c.backbone.partition("[")[0], c.seed) for c in quick.cells}
    stood = {(c.task, c.backbone.partition("[")[0], c.seed, c.variant) for c in quick.cells}
    further = shared_tasks("quick")
    for task, backbone, seed in places:
        if task.startswith("attend") or any(task.startswith(name) for name in further):
            continue
        for variant in beside:
            assert (task, backbone, seed, variant) in stood


def test_seeds_are_paired(quick):
    seeds = {}
    for cell in quick.cells:
        if cell.kind == "quality":
            seeds.setdefault((cell.task, cell.backbone, cell.slot, cell.variant), set()).add(
                cell.seed
            )
    found: dict[str, set[frozenset[int]]] = {}
    for (task, *_), some in seeds.items():
        found.setdefault(task.partition("[")[0], set()).add(frozenset(some))
    assert found.pop("offset") == {frozenset(range(3))}
    assert set.union(*found.values()) == {frozenset({0, 1}), frozenset(range(4))}


def test_the_roster_runs_on_the_further_task(quick):
    (task,) = shared_tasks("quick")
    cells = [c for c in quick.cells if c.task.partition("[")[0] == task]
    roster = roster_of("quick")
    assert len(roster) > 3
    assert {canonical(name) for name in roster} <= {c.variant for c in cells}


def test_what_variants_are_compared_with_stands_on_the_further_task_whoever_was_asked():
    (task,) = shared_tasks("quick")
    made = plan(Request(variants="canon,general", seeds=2))
    stood = {c.variant for c in made.cells if c.task.partition("[")[0] == task}
    beside = {canonical(name) for name in (*uniform_baselines(), "scaled_dot")}
    assert stood == beside | {canonical("canon"), canonical("general")}
    alone = plan(Request(variants="hard_exact", seeds=2))
    assert task not in {c.task.partition("[")[0] for c in alone.cells}


def test_quick_fits_its_budget_on_two_cores_with_every_variant_trained():
    made = plan(Request(jobs=2))
    assert 900 < made.seconds <= PRESETS["quick"].budget_s
    trained = {cell.variant for cell in made.cells if cell.kind == "quality"}
    shown = {name for name, item in registry.listed_variants().items() if item.default_task.task}
    assert trained >= {canonical(name) for name in shown}


def test_a_cell_that_does_not_fit_is_left_out_with_the_command_that_runs_it(quick):
    small = plan(Request(jobs=1))
    assert small.seconds <= PRESETS["quick"].budget_s
    left = [left for left in small.left_out if "--cell" in left.command]
    assert left
    everything = {cell.id for cell in quick.cells if cell.kind == "quality"}
    kept = {cell.id for cell in small.cells}
    for one in left:
        assert "50 minutes" in one.reason
        label = one.command.partition("--cell ")[2].strip("'")
        id_ = parse_label(label).id
        assert id_ in everything
        assert id_ not in kept
    assert {parse_label(one.label).id for one in left} | kept >= everything


def test_more_minutes_hold_more_cells():
    short, long = (plan(Request(jobs=1, minutes=minutes)) for minutes in (5.0, 60.0))
    assert short.seconds <= 300
    assert len(short.cells) < len(long.cells)
    assert any("5 minutes" in left.reason for left in short.left_out)
    with pytest.raises(InvalidConfig, match="minutes"):
        Request(minutes=-1)


def test_a_variant_that_no_task_shows_is_timed_and_not_trained(monkeypatch):
    entry = replace(registry.find("score", "additive"), default_task=registry.DefaultTask(task=""))
    monkeypatch.setitem(registry._ENTRIES["score"], "additive", entry)
    made = plan(Request(variants="additive", preset="smoke"))
    assert not made.quality
    assert {cell.slot for cell in made.cells} == {"cross", "causal"}
    (left,) = made.left_out
    asked = "--variants additive --tasks 'transduction[rule=reverse]' --preset smoke"
    assert left.command == f"python -m bench run {asked}"
    assert left.label == "training of additive"
    assert "no task here" in left.reason
    assert plan(Request(variants="additive", tasks="recall", preset="smoke")).quality


def test_commands_of_what_was_left_out_name_the_plug_ins_that_they_need():
    plugins = ("my file.py", "b.py")
    made = plan(Request(variants="dot", preset="smoke", minutes=0.0001, plugin=plugins))
    left = next(one for one in made.left_out if one.label == "speed of dot")
    asked = "--variants dot --no-quality --preset smoke"
    assert left.command.endswith(f"{asked} --plugin 'my file.py' --plugin b.py")


@pytest.mark.parametrize(("quality", "more"), [(True, ""), (False, "; leave out --no-quality")])
def test_what_nothing_times_has_no_command_that_would_leave_it_out_again(quality, more):
    (left,) = plan(Request(variants="none_state", preset="smoke", quality=quality)).left_out
    assert left.command == ""
    assert left.reason.partition("network around it")[2].startswith(more)


def test_commands_of_what_was_left_out_ask_for_the_same():
    trained = {"match": "params", "training": "adam[lr=0.01]", "seeds": 2, "slot": "causal"}
    asked = Request(variants="dot", minutes=0.001, first_seed=7, tasks="recall", **trained)
    beside = without_comparers(asked, "dot", "recall").command
    for word in ("--match params", "--first-seed 7", "--training 'adam[lr=0.01]'", "--slot causal"):
        assert word in beside
    (left,) = [one for one in plan(asked).left_out if one.label == "speed of dot"]
    words = shlex.split(left.command)[4:]
    assert "--no-quality" in words
    # what is about training is refused beside it
    options = filled(RunOptions, dict(run_command.make_context("run", words).params))
    assert (options.variants, options.first_seed, options.quality) == ("dot", 7, False)


def test_the_command_that_times_layers_which_read_each_other_asks_for_the_same():
    how = {"dtype": "bfloat16", "impl": "eager", "baseline": "uniform", "first_seed": 7}
    asked = Request(variants="cla", preset="smoke", seeds=2, training="adam[lr=0.01]", **how)
    (left,) = [one for one in plan(asked).left_out if one.label == "speed of cla"]
    words = shlex.split(left.command)[4:]
    options = filled(RunOptions, dict(run_command.make_context("run", words).params))
    assert {name: getattr(options, name) for name in how} == how
    assert (options.variants, options.shape, options.quality) == ("cla", ("slot",), False)
    assert (options.preset, options.training) == ("smoke", "")


def test_every_option_of_a_request_either_chooses_what_is_run_or_is_repeated():
    known = {*NARROWING, *CHOOSING, *FILES}
    assert {one.name for one in fields(Request)} == known
    parameters = {p.name for p in cli.commands["run"].params}
    assert {*NARROWING} <= parameters


def test_where_files_lie_is_no_part_of_the_question_that_a_study_is_named_by():
    assert repr(Request(plugin=("a.py",), data_dir="here")) == repr(Request())


def test_named_tasks_have_no_budget():
    asked = plan(Request(variants="all", tasks="recall,offset", jobs=1, speed=False))
    assert not asked.left_out
    count = len(registry.listed_variants())
    assert len(asked.cells) == 2 * PRESETS["quick"].seeds * count


def test_the_last_seed_has_a_bound_like_the_first():
    assert Request(first_seed=2**32 - 2, seeds=2).paired_seeds[-1] == 2**32 - 1
    for first, seeds in ((2**32 - 1, 2), (2**32, 0)):
        with pytest.raises(InvalidConfig, match="a seed is at most 4294967295; the first of"):
            Request(first_seed=first, seeds=seeds)


def test_seeds_that_were_asked_for_have_no_budget_unless_minutes_are_named():
    asked = Request(seeds=PRESETS["quick"].seeds + 2, jobs=1, speed=False)
    assert not plan(asked).left_out
    within = plan(replace(asked, minutes=PRESETS["quick"].budget_s / 60))
    assert {"50 minutes" in one.reason for one in within.left_out} == {True}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_plans_everything(name):
    preset = PRESETS[name]
    made = plan(Request(preset=name))
    kinds = Counter(cell.kind for cell in made.cells)
    assert kinds["quality"] > 0
    timed = {parse_shape(c.task).length for c in made.cells if c.kind == "speed"}
    assert timed == {*preset.lengths, *preset.long_lengths}
    assert len({c.seed for c in made.cells if c.kind == "quality"}) == preset.seeds


def test_smoke_ranks_nothing_and_quick_has_four_seeds():
    assert not PRESETS["smoke"].ranks
    assert PRESETS["quick"].ranks
    assert PRESETS["quick"].seeds == 4
    assert len(PRESETS["quick"].lengths) >= 3


@pytest.mark.parametrize("preset", ["quick", "families"])
def test_pipeline_checks_have_two_seeds_unless_seeds_are_asked_for(preset):
    def is_check(cell: Cell) -> bool:
        target = registry.find(TASKS, cell.task.partition("[")[0]).target
        network = cell.backbone.partition("[")[0]
        return bool(target.pipeline_check or network in target.pipeline_check_over)

    def seeds(**asked: int) -> dict[bool, set[int]]:
        found: dict[bool, set[int]] = {True: set(), False: set()}
        for cell in plan(Request(preset=preset, minutes=1e6, speed=False, **asked)).cells:
            found[is_check(cell)].add(cell.seed)
        return found

    assert seeds() == {True: {0, 1}, False: set(range(PRESETS[preset].seeds))}
    assert seeds(first_seed=7)[True] == {7, 8}
    assert seeds(seeds=3) == {True: {0, 1, 2}, False: {0, 1, 2}}
    assert seeds(seeds=1) == {True: {0}, False: {0}}


def test_of_one_task_the_network_that_is_a_pipeline_check_has_two_seeds() -> None:
    made = plan(Request(preset="families", tasks="wikitext2_mini", minutes=1e6, speed=False))
    seeds: dict[str, set[int]] = {}
    for cell in made.cells:
        seeds.setdefault(cell.backbone.partition("[")[0], set()).add(cell.seed)
    assert seeds == {"rnn_decoder": {0, 1}, "transformer_decoder": {0, 1, 2}}


def test_a_size_that_is_evidence_has_all_seeds_of_its_preset():
    made = plan(Request(preset="flagship", tasks="inflection", minutes=1e6))
    assert {cell.seed for cell in made.cells} == set(range(PRESETS["flagship"].seeds))


def test_mechanisms_below_quadratic_time_are_timed_further_beside_the_baseline():
    """A chain knows what it costs only once it is built, so the plan goes by mechanisms."""
    made = plan(Request(variants="linear_attention,dot", preset="quick", quality=False))
    lengths = {"linear_attention": set(), "dot": set(), "scaled_dot": set()}
    for one in made.cells:
        lengths[one.variant].add(parse_shape(one.task).length)
    size = PRESETS["quick"]
    assert lengths["dot"] == {*size.lengths}
    assert lengths["linear_attention"] == lengths["scaled_dot"]
    assert lengths["scaled_dot"] == {*size.lengths, *size.long_lengths}
    alone = plan(Request(variants="dot", preset="quick", quality=False))
    assert {parse_shape(one.task).length for one in alone.cells} == {*size.lengths}


def test_shapes_that_are_asked_for_have_no_limits():
    usual = plan(Request(variants="dot", preset="quick", quality=False)).cells[0]
    asked = plan(Request(variants="dot", preset="quick", quality=False, shape=("L=4096",))).cells
    limits = [
        (parse_rounds(one.protocol).most_mb, parse_rounds(one.protocol).most_s)
        for one in (usual, asked[0])
    ]
    assert limits[0] > (0, 0)
    assert limits[1] == (0, 0)
    assert {parse_shape(one.task).length for one in asked} == {4096}


def test_a_quality_only_or_speed_only_plan_has_only_that():
    assert {c.kind for c in plan(replace(SMALL, speed=False)).cells} == {"quality"}
    assert {c.kind for c in plan(replace(SMALL, quality=False)).cells} == {"speed"}


def slots_by_variant(cells, kind):
    found = {}
    for cell in cells:
        if cell.kind == kind:
            found.setdefault(cell.variant, set()).add(cell.slot)
    return found


def test_speed_cells_stand_in_the_regimes_in_which_the_variant_trains(quick):
    assert all(parse_shape(c.task).regime == c.slot for c in quick.cells if c.kind == "speed")
    timed = slots_by_variant(quick.cells, "speed")
    # the baseline stands wherever another variant does
    assert timed.pop(quick.baseline.canonical.show()) == {"cross", "causal", "self"}
    stands_for, fewer = {"self": "causal", "pool": "cross"}, 0
    trained = slots_by_variant(quick.cells, "quality")
    for variant, slots in timed.items():
        possible = set(speed_regimes(resolve(variant)))
        mine = {stands_for.get(slot, slot) for slot in trained[variant]} & possible
        assert slots == (mine or possible), variant
        fewer += slots < possible
    assert fewer >= 50, "many variants are trained in fewer regimes than they can be timed in"


def test_every_block_of_timed_cells_holds_the_baseline(quick):
    blocks = group_blocks([c for c in quick.cells if c.kind == "speed"])
    assert len(blocks) >= 3
    for block in blocks:
        assert quick.baseline.canonical.show() in {cell.variant for cell in block}


@pytest.mark.parametrize(
    ("name", "regimes"),
    [
        ("scaled_dot", ["cross", "causal"]),
        ("none_state", []),
        ("raffel_monotonic", ["cross"]),
        ("luong_local_p", ["cross"]),
        ("linear_attention", ["cross", "causal"]),
        ("hard_reinforce", ["cross", "causal"]),
    ],
)
def test_the_regimes_in_which_a_variant_can_be_timed(name, regimes):
    assert speed_regimes(resolve(name)) == regimes


def test_a_variant_without_attention_is_left_out_of_timing_with_a_reason(quick):
    assert any(
        "none_state" in left.label and "no attention" in left.reason for left in quick.left_out
    )


def test_a_variant_without_a_default_task_is_shown_beside_the_controls(fresh_registry):
    made = plan(Request(variants="dot[normalizer=hard_gumbel_st]", preset="smoke", speed=False))
    registered = registry.find("score", "dot")
    registry._ENTRIES["score"]["dot"] = replace(registered, default_task=None)
    without_default_task = plan(Request(variants="dot", preset="smoke", speed=False))
    assert made.quality
    assert {p.task.text for p in without_default_task.quality} == {plain_task().task}


def test_a_backbone_that_a_variant_cannot_stand_in_is_still_a_cell():
    made = plan(replace(SMALL, variants="bahdanau", speed=False))
    assert any(c.variant == canonical("bahdanau") for c in made.cells)


@pytest.mark.parametrize(
    ("changed", "suggestion"),
    [
        ({"variants": "aditive"}, "additive"),
        ({"variants": "additive[widht=4]"}, "width"),
        ({"variants": "additive[normalzer=softmax]"}, "normalizer"),
        ({"variants": "additive[normalizer=sofmax]"}, "softmax"),
        ({"tasks": "transductoin"}, "transduction"),
        ({"tasks": "transduction[rul=copy]"}, "rule"),
        ({"tasks": "transduction[rule=cpoy]"}, "copy"),
        ({"backbone": "rnn_seq2sec"}, "rnn_seq2seq"),
        ({"tasks": "transduction", "backbone": "rnn_seq2seq[decoder=loung]"}, "luong"),
        ({"slot": "crosss"}, "pool"),
        ({"preset": "quik"}, "quick"),
        ({"device": "cdua"}, "cuda"),
        ({"dtype": "float23"}, "float32"),
        ({"impl": "egaer"}, "eager"),
        ({"baseline": "scaled_dto"}, "scaled_dot"),
        ({"training": "adam[step=4]"}, "steps"),
        ({"training": "adan[steps=4]"}, "adam"),
    ],
)
def test_a_misspelled_name_is_answered_with_the_closest_one(changed, suggestion):
    with pytest.raises(BenchError) as error:
        plan(replace(SMALL, **changed))
    assert isinstance(error.value, UnknownName | InvalidConfig)
    assert suggestion in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelled_axis_of_an_ablation_is_answered_with_the_closest_one():
    with pytest.raises(UnknownName, match="did you mean 'score'"):
        ablation("additive", "scores")


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"jobs": 0}, "for at least 1 job, got 0"), ({"seeds": -1}, "seeds must be >= 0.*got -1")],
)
def test_counts_below_their_least_are_refused(changed, said):
    with pytest.raises(InvalidConfig, match=said):
        Request(**changed)


def test_a_task_without_sizes_for_a_preset_says_which_it_has(fresh_registry):
    registered = registry.find("task", "recall")
    small = type(
        "Small", (registered.target,), {"presets": {"smoke": registered.target.presets["smoke"]}}
    )
    registry._ENTRIES["task"]["recall"] = replace(registered, target=small)
    with pytest.raises(InvalidConfig, match="no sizes for preset quick; it has: smoke"):
        plan(replace(SMALL, tasks="recall", preset="quick"))


def test_a_longer_protocol_costs_more_and_dearer_variants_too():
    short, long = (
        plan(replace(SMALL, speed=False, training=f"adam[steps={n}]")).seconds for n in (30, 60)
    )
    assert long == pytest.approx(2 * short)
    costs = {
        n: plan(replace(SMALL, variants=n, speed=False)).quality[0] for n in ("dot", "tu_coverage")
    }
    assert costs["tu_coverage"].seconds >= costs["dot"].seconds


def test_the_cost_of_a_variant_is_not_that_of_its_references():
    asked = replace(SMALL, variants="ntm_memory", tasks="", preset="quick", speed=False)
    costs = {one.cell.variant: one.seconds for one in plan(asked).quality}
    assert costs["ntm_memory"] > 3 * costs["scaled_dot"] == 3 * costs["uniform"]


def test_a_backbone_of_its_own_makes_the_references_of_a_variant_expensive_too():
    asked = replace(SMALL, variants="nystrom", tasks="", preset="quick", speed=False)
    costs = {one.cell.variant: one.seconds for one in plan(asked).quality}
    assert costs["scaled_dot"] == costs["nystrom"] > 0


def test_what_is_expected_follows_the_batch_and_the_seconds_that_are_given():
    def expected(**training):
        asked = replace(SMALL, speed=False, training=Selector("adam", training).show())
        return plan(asked).quality[0].seconds

    usual = read_protocol(plan(SMALL).quality[0].cell.protocol)
    assert expected(batch=4 * usual.batch) == pytest.approx(4 * expected())
    assert expected(batch=1) == expected(), "a step of few sequences takes hardly less"
    assert expected(cpu_seconds=expected() / 2) == pytest.approx(expected() / 2)
    assert expected(cpu_seconds=1000.0) == expected(), "the steps end it before"
    assert expected(steps=10**9, cpu_seconds=1000.0) == 1000.0


@pytest.mark.parametrize("preset", ["smoke", "quick", "families"])
def test_a_cell_that_is_named_by_its_label_is_expected_to_take_what_its_plan_says(preset):
    tasks = "recall,offset,transduction[rule=reverse],after_marker"
    made = plan(Request(variants="additive", tasks=tasks, preset=preset, speed=False, seeds=1))
    for asked in (preset, "quick"):
        for one in made.quality:
            told = expected_of_label(one.cell, one.spec, asked)
            if asked == preset:
                assert told == one.seconds, one.cell.label
            assert told > 0


def test_a_longer_slot_that_is_named_by_its_label_is_expected_to_take_longer():
    made = plan(replace(SMALL, quality=False, shape=("slot,B=1,H=8,L=1024+131072,E=64",)))
    short, long = (
        [timed_alone_s(one.cell, one.spec) for one in made.speed if length in one.cell.task]
        for length in ("=1024", "=131072")
    )
    assert [timed_alone_s(one.cell, one.spec) for one in made.speed] == [
        one.seconds for one in made.speed
    ]
    assert min(long) > max(60.0, *short)


def test_every_variant_may_be_written_in_capitals_and_no_task_is_called_all():
    assert plan(Request(variants="ALL", preset="smoke")).cells
    with pytest.raises(InvalidConfig, match="--tasks has no name for every task; leave it out"):
        plan(Request(tasks="all"))
