"""A stochastic variant that fails in one seed of three is said to, and not averaged away."""

import pytest
from synthetic import BASE, METRICS, TASKS, catalog, quality_cell, record
from synthetic_run import markdown_of, write_run

from reports.folder import read_folder
from reports.ranked_table.marks import legend_of_marks, marks
from reports.render import render
from reports.sections.control_findings import learned
from reports.sections.uses_of_attention import verdict
from results.row import Row

TASK = next(iter(TASKS))
BEYOND = "beyond_training_token_accuracy"
LEVELS = {
    BASE: (0.9, 0.91, 0.92),
    "scaled_dot": (0.9, 0.3, 0.91),
    "luong_general": (0.2, 0.3, 0.1),
    "no_attention": (0.4, 0.5, 0.6),
}


def written(path):
    known = catalog()
    known["variants"]["no_attention"]["control"] = "uniform_baseline"
    records = [
        record(
            quality_cell(TASK, name, seed),
            "ok",
            [
                Row(metric=TASKS[TASK][1], value=value, split=split)
                for split in ("validation", "test")
            ],
        )
        for name, values in LEVELS.items()
        for seed, value in enumerate(values)
    ]
    return write_run(path, records=records, catalog_data=known)


def test_lost_seeds_are_counted_and_marked(tmp_path):
    (comparison,) = read_folder(written(tmp_path / "run")).comparisons
    assert comparison.lost_seeds(BASE) == (0, 3)
    assert comparison.lost_seeds("scaled_dot") == (1, 3)
    assert comparison.lost_seeds("luong_general") == (3, 3)
    assert "not above no_attention in 1 of 3 seeds" in marks(comparison, "scaled_dot", {})
    assert not any("above" in mark for mark in marks(comparison, BASE, {}))
    assert not any("above" in mark for mark in marks(comparison, "no_attention", {}))


def test_the_summary_says_who_failed_and_who_failed_sometimes(tmp_path):
    text = markdown_of(render(written(tmp_path / "run")))
    assert "no seed above no_attention on validation), which is no evidence about a" in text
    assert "about a mechanism: luong_general." in text
    assert "Some seeds are not above no_attention on validation: scaled_dot (1 of 3)." in text


def test_who_fails_beyond_training_alone_is_not_said_to_have_failed_to_learn(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, TASK, (TASKS[TASK][0], BEYOND, *TASKS[TASK][2:]))
    monkeypatch.setitem(METRICS, BEYOND, METRICS["token_accuracy"])
    (comparison,) = read_folder(written(tmp_path / "run")).comparisons
    assert comparison.metric == BEYOND
    assert comparison.lost_every_seed("luong_general")
    told = learned(comparison)
    assert "In no seed above no_attention on validation inputs longer than those of" in told
    assert "Did not train" not in told
    assert "not above no_attention beyond training in any of 3 seeds" in marks(
        comparison, "luong_general", {}
    )
    legend = legend_of_marks([comparison], {})
    assert "failed to learn" not in legend
    assert "no evidence about the mechanism" not in legend
    assert legend.count("which does not say whether") == 2


@pytest.mark.parametrize(
    ("metric", "inputs"),
    [
        ("token_accuracy", "validation"),
        (BEYOND, "validation inputs longer than those of training"),
    ],
)
def test_a_verdict_says_on_which_inputs_no_seed_was_above(tmp_path, monkeypatch, metric, inputs):
    monkeypatch.setitem(TASKS, TASK, (TASKS[TASK][0], metric, *TASKS[TASK][2:]))
    monkeypatch.setitem(METRICS, BEYOND, METRICS["token_accuracy"])
    levels = {"luong_general": (0.2, 0.3, 0.1), "no_attention": (0.1, 0.12, 0.11)}
    monkeypatch.setattr(f"{__name__}.LEVELS", levels)
    (comparison,) = read_folder(written(tmp_path / "run")).comparisons
    monkeypatch.setattr(type(comparison), "lost_every_seed", lambda self, variant: True)
    assert verdict(comparison).endswith(f"no seed above no_attention on {inputs}")
