"""Plans: what would run, what is left out and why."""

import json
import os

import pytest
import torch

from bench.ablate import ablation, plan_ablation
from bench.api.cell import parse_label
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.request import Request
from tests.bench.cli.command_lines import SMOKE


def test_a_plan_begins_with_what_its_preset_is(call):
    first = call("plan", "--preset", "smoke", "--variants", "dot", "--no-speed")[1].splitlines()[0]
    assert first == f"preset smoke: {PRESETS['smoke'].summary}"


def test_a_plan_is_json_alone(call):
    code, out, err = call("plan", "--preset", "smoke", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["expected_s"] > 0
    wanted = plan(Request(preset="smoke", jobs=8))
    assert {cell["id"] for cell in found["cells"]} == {cell.id for cell in wanted.cells}
    for cell in found["cells"]:
        assert parse_label(cell["label"]).id == cell["id"]


def test_a_plan_says_what_it_leaves_out(call):
    code, out, _ = call("plan", "--jobs", 1)
    assert code == 0
    assert "left out: quality " in out
    assert "; python -m bench run --cell 'quality " in out
    *_, counted = said = [line for line in out.splitlines() if "left out" in line]
    assert counted.endswith("left out.")
    assert len(said) < 12, "what has one reason is told once"
    left = len(json.loads(call("plan", "--jobs", 1, "--json")[1])["left_out"])
    more = [line for line in said if line.endswith("more for this reason; --json lists them all")]
    assert more
    assert sum(int(line.split()[2]) for line in more) == left - (len(said) - len(more) - 1)


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        ([], 3),
        (["--device", "cuda"], 1),
        (["--jobs", "0", "--device", "cuda"], 1),
        (["--jobs", "2", "--device", "cuda"], 2),
    ],
)
def test_one_training_at_a_time_runs_on_a_gpu_unless_more_are_asked_for(
    call, monkeypatch, words, jobs
):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    code, out, _ = call("plan", "--preset", "smoke", "--variants", "dot", *words)
    assert code == 0
    assert f"with {jobs} job{'s' if jobs > 1 else ''}; " in out


def test_a_plan_has_a_line_for_each_task_and_the_labels_are_json(call):
    asked = ["plan", "--variants", "dot,general", "--preset", "smoke", "--tasks", "recall,offset"]
    code, out, _ = call(*asked, "--no-speed", "--seeds", 2)
    assert code == 0
    lines = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line}
    # two variants and the baseline, on two seeds
    assert (lines["recall"], lines["offset"]) == (["3", "2", "6"], ["3", "2", "6"])
    assert "quality recall" not in out
    assert out.splitlines()[-1].startswith("12 training and 0 speed cells, about ")
    found = json.loads(call(*asked, "--no-speed", "--seeds", 2, "--json")[1])
    assert len(found["cells"]) == 12
    assert found["no_data"] == {}


@pytest.mark.parametrize(
    ("variants", "more", "told"),
    [
        ("additive,uniform", (), "baseline scaled_dot is added"),
        ("additive", (), "control uniform and baseline scaled_dot are added"),
        ("additive", ("--tasks", "recall", "--baseline", "dot"), "baseline dot is added"),
        ("additive,scaled_dot", ("--tasks", "recall"), ""),
    ],
)
def test_a_plan_names_what_it_adds_to_what_was_asked(call, variants, more, told):
    _, out, _ = call("plan", "--variants", variants, "--preset", "smoke", "--no-speed", *more)
    assert [line for line in out.splitlines() if line.endswith(" added")] == [told] * bool(told)


@pytest.mark.parametrize("base", ["mha", "additive[width=16]"])
def test_a_plan_has_the_cells_of_an_ablation(call, base):
    words = ["--base", base, "--axis", "score", "--preset", "smoke"]
    code, out, _ = call("plan", *words, "--no-speed", "--json")
    assert code == 0
    wanted = plan_ablation(Request(preset="smoke", speed=False), ablation(base, "score"), base)
    labels = [cell["label"] for cell in json.loads(out)["cells"]]
    assert labels == [cell.label for cell in wanted.cells]
    assert f"{len(labels)} training" in call("plan", *words)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--base", "mha"], "plan: give --base and --axis together, or neither."),
        (["--axis", "score"], "plan: give --base and --axis together, or neither."),
        (["--variants", "all"], "an ablation, which has no --variants; leave it out"),
        (["--baseline", "dot"], "an ablation, which has no --baseline; leave it out"),
        (["--shape", "L=8"], "an ablation, which has no --shape; leave it out"),
        (["--no-quality"], "an ablation, which has no --no-quality; leave it out"),
        (["--speed"], "an ablation, which has no --speed; leave it out"),
    ],
)
def test_a_plan_of_an_ablation_refuses_what_no_ablation_has(call, words, sentence):
    half = words[0] in ("--base", "--axis")
    code, out, err = call("plan", *words, *([] if half else ["--base", "mha", "--axis", "score"]))
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_plan_says_what_will_be_refused(call):
    words = ["plan", "--variants", "mocha,dot", "--tasks", "recall", "--preset", "smoke"]
    words += ["--no-speed"]
    code, out, _ = call(*words)
    assert code == 0
    assert "will be refused: mocha on recall: mocha: a monotonic walk needs the whole" in out
    assert "3 training (1 of them refused)" in out
    found = json.loads(call(*words, "--json")[1])
    assert [label.split(" @ ")[2].split()[0] for label in found["refused"]] == ["mocha"]
    alone = json.loads(call(*words[:2], "dot", *words[3:], "--json")[1])
    # what is refused takes hardly any time
    assert found["expected_s"] == pytest.approx(alone["expected_s"], abs=0.11)


def test_a_device_that_is_not_here_is_refused_before_anything_runs(call, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for asked in (
        ["run", "--variants", "dot", *SMOKE],
        ["plan", "--variants", "dot", "--preset", "smoke"],
        ["study", "--variants", "dot", "--tasks", "recall"],
        ["ablate", "--base", "dot", "--axis", "score"],
    ):
        place = [] if asked[0] == "plan" else ["--out", tmp_path / "run"]
        code, out, err = call(*asked, "--device", "cuda", *place)
        assert (code, out) == (2, "")
        assert err.endswith("this machine has no CUDA device; choose --device cpu.\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["--variants", "all[x=1]"], "all takes no options, got all[x=1]"),
        (["--minutes", "nan"], "minutes must be a number >= 0, got nan"),
        (["--minutes", "inf"], "minutes must be a number >= 0, got inf"),
        (["--first-seed", "-1"], "the first seed must be >= 0, got -1"),
        (["--training", "adam[warmup=-1]"], "adam: warmup must be >= 0, got -1"),
        (["--training", "adam[weight_decay=-0.1]"], "adam: weight_decay must be >= 0, got -0.1"),
        (["--training", "adam[cpu_seconds=-2.0]"], "adam: cpu_seconds must be >= 0, got -2.0"),
        (["--training", "adam[lr=1e999]"], "expected a number that a float can hold"),
    ],
)
def test_values_without_meaning_are_refused(call, typed, sentence):
    code, _, err = call("plan", *typed)
    assert code == 2
    assert sentence in err
