"""Ablations: one part is replaced by every other of its axis."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.calibration import Choice, Setting, competitor
from bench.cli import execution
from bench.cli.written_catalog import write_catalog
from bench.conformance import certify
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.protocol import read_protocol
from results.catalog import CATALOG, RunCatalog
from results.merge import merge
from results.store import Store
from tests.bench.cli.command_lines import report_text


@pytest.mark.slow
def test_an_ablation_writes_a_row_for_each_value_and_refuses_what_has_no_meaning(
    call, tmp_path, monkeypatch
):
    # one check tells a refusal from a failed proof; the whole suite is tested elsewhere
    monkeypatch.setattr(
        "bench.running.runner.certify",
        lambda variant, checks, impl: certify(variant, checks=["runs_somewhere"], impl=impl),
    )
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    asked = ["ablate", "--base", "additive", "--axis", "normalizer", "--preset", "smoke"]
    asked += ["--tasks", "after_marker"]
    code, out, _ = call(*asked, "--inline", "--out", folder, "--training", "adam[steps=2]")
    assert code == 0
    records = {r.cell["variant"]: r.status for r in Store(folder).records()}
    assert len(records) == len(registry.registrations("normalizer"))
    assert set(records.values()) == {"ok", "refused"}
    text = report_text(folder)
    section = text.partition("## Ablations")[2].partition("\n## ")[0]
    assert "(base)" in section
    # what stands nowhere is refused, which is no proof that failed
    assert "red certificate" not in section + out
    assert out.count("hard_reinforce needs the reinforce loss") == 1
    for value in registry.registrations("normalizer"):
        if value != "softmax":
            assert f"| normalizer | {value} |" in section, value
    again = call("ablate", "--spec", folder / "spec.json", "--inline", "--json")
    assert again[0] == 0
    assert json.loads(again[1])["counts"] == {}


def test_an_ablation_stands_on_the_bases_default_task_with_its_backbone_and_slot(fresh_registry):

    from bench.ablate import ablation, plan_ablation

    registered = registry.find("score", "dot")
    default_task = replace(
        registered.default_task, task="transduction", backbone="transformer_seq2seq", slot="causal"
    )
    registry._ENTRIES["score"]["dot"] = replace(registered, default_task=default_task)
    made = plan_ablation(Request(preset="smoke", speed=False), ablation("dot", "position"), "dot")
    places = {(c.task.partition("[")[0], c.backbone.partition("[")[0], c.slot) for c in made.cells}
    assert places == {("transduction", "transformer_seq2seq", "causal")}


@pytest.mark.parametrize("training", ["", "adam[steps=9]", "adam[lr=0.02]"])
def test_an_ablation_trains_all_at_the_rate_of_the_base(monkeypatch, training):
    """Else the rate would differ beside the axis: changed forms have none of their own."""
    from bench.ablate import ablation, plan_ablation
    from bench.running import quality_cells

    asked = Request(
        tasks="needle", variants="additive", training=training, speed=False, calibrated=False
    )
    places = [(one.variant, one.backbone, one.slot) for one in plan(asked).cells]
    baseline, base = dict.fromkeys(competitor(*place) for place in places)
    choice = Choice(
        task="needle",
        preset="quick",
        chosen=Setting(options="needle"),
        why="",
        rule="",
        rates={baseline: 0.001, base: 0.01},
        baseline=baseline,
    )
    monkeypatch.setattr(quality_cells, "calibrated_choice", lambda asked, sizes: choice)
    asked, changes = replace(asked, calibrated=True), ablation("additive", "normalizer")
    wanted = 0.02 if "lr" in training else 0.01
    made = plan_ablation(asked, changes, "additive").cells
    assert len({cell.variant for cell in made}) > 3
    assert {read_protocol(cell.protocol).lr for cell in made} == {wanted}
    own = {cell.id for cell in plan(asked).cells if cell.variant == "additive"}
    assert own <= {cell.id for cell in made}, "the base is trained as anywhere else"
    short = plan_ablation(replace(asked, minutes=0.02), changes, "additive").left_out
    assert short
    assert all(f"lr={wanted}" in one.label and one.label in one.command for one in short)


def test_options_of_the_component_that_an_ablation_replaces_go_with_it():
    from bench.ablate import ablation

    changed = ablation("additive[width=16,position=sinusoid]", "score").changed
    assert {"dot", "general", "additive"} <= set(changed)
    for asked, _ in changed.values():
        assert "width" not in asked.options
        assert asked.options["position"]
    assert "none" in ablation("tu_coverage", "history").changed
    assert "tu_coverage" not in ablation("tu_coverage", "history").changed


@pytest.fixture
def trained(monkeypatch):
    """Folders in which an ablation would have begun; its catalog is written, and nothing else."""
    found = []

    def write_alone(options, made, changed=None, spec=None):
        found.append(options.folder)
        with Store.create(options.folder) as store:
            if options.reuse:
                merge(options.folder, [options.reuse], {cell.id for cell in made.cells})
            tasks = {one.cell.task: one.task for one in made.quality if one.task}.values()
            write_catalog(options, store, made.variants.values(), tasks, changed=changed or {})
        return 0

    monkeypatch.setattr(execution, "execute", write_alone)
    return found


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("additive", "ablate-additive-readout"),
        ("additive[normalizer=softmax]", "ablate-additive-readout"),
        ("additive[normalizer=sparsemax]", "ablate-additive-normalizer-sparsemax-readout"),
        ("additive[width=8,normalizer=entmax[alpha=1.25]]",
         "ablate-additive-normalizer-entmax-alpha-1.25-width-8-readout"),
    ],
)  # fmt: skip
def test_a_base_with_options_has_a_usual_folder_of_its_own(
    call, trained, monkeypatch, tmp_path, base, name
):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("ablate", "--base", base, "--axis", "readout", "--preset", "smoke")
    assert code == 0, err
    assert trained == [Path("runs") / name]


def test_a_data_directory_that_is_not_there_is_refused_before_the_folder_is_made(call, tmp_path):
    folder = tmp_path / "run"
    words = ("--preset", "smoke", "--data-dir", "/nosuch", "--out", folder)
    code, out, err = call("ablate", "--base", "additive", "--axis", "readout", *words)
    assert (code, out) == (2, "")
    assert "--data-dir names /nosuch" in err
    assert not folder.exists()


def test_an_ablation_of_another_base_in_one_folder_is_refused_before_anything_is_trained(
    call, trained, tmp_path
):
    """A variant is a change of both, and the table of the first would lose it without a word."""
    folder, other = tmp_path / "run", "additive[normalizer=sparsemax]"
    words = ["ablate", "--preset", "smoke", "--axis", "normalizer", "--out", folder, "--base"]
    assert call(*words, "additive")[0] == 0
    before = (folder / CATALOG).read_bytes()
    code, out, err = call(*words, other)
    assert (code, out) == (2, "")
    assert err == (
        f"ablate: {folder} holds an ablation of additive, and its table would lose the variants "
        f"that are changes of {other}, too; give another --out.\n"
    )
    assert (folder / CATALOG).read_bytes() == before
    assert trained == [folder]
    for same in ("additive", "additive[normalizer=softmax]"):
        assert call(*words, same)[0] == 0, "the same base"
    assert call("ablate", *words[1:3], "--axis", "readout", *words[-3:], "additive")[0] == 0


def test_cells_of_the_ablation_of_another_base_are_reused_as_changes_of_this_one(
    call, trained, tmp_path
):
    """The catalog that comes with them says what they changed there."""
    first, second, base = tmp_path / "first", tmp_path / "second", "additive[normalizer=sparsemax]"
    words = ["ablate", "--preset", "smoke", "--axis", "normalizer", "--base"]
    assert call(*words, "additive", "--out", first)[0] == 0
    for _ in range(2):  # a run that was interrupted goes on with the same command
        assert call(*words, base, "--out", second, "--reuse", first)[0] == 0
        held = RunCatalog.from_json(Store(second).read_json(CATALOG))
        assert (held.ablated, held.baseline) == ({base}, base)
        assert held.variants[base].ablation is None, "a base is no change of itself"
