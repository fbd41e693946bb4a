"""Costs of training differ only beyond what the baseline differs from itself."""

import math
from pathlib import Path

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.folder import RunFolder, read_folder
from reports.quality_cost import quality_cost
from reports.training_cost import ASSUMED, cost_text, differs, noise_of, relative_cost
from results.row import Row
from results.statistics import Interval

AGAIN, OTHER, UNIFORM = "aa_control", "scaled_dot", "no_attention"
TASK, METRIC = "copying", "token_accuracy"
STEPS = {
    BASE: (10.0, 11.0, 9.5),
    AGAIN: (9.0, 10.6, 9.6),
    OTHER: (8.5, 9.4, 8.1),
    UNIFORM: (7.0, 7.5, 6.9),
}
LEVELS = {BASE: 0.90, AGAIN: 0.90, OTHER: 0.70, UNIFORM: 0.3}


def folder(path: Path, *, control: bool = True, tasks: tuple[str, ...] = (TASK,)) -> RunFolder:
    """Three seeds of two contenders, uniform attention and perhaps an A/A control."""
    known = catalog()
    variants = known["variants"]
    variants[AGAIN] = {**variants[BASE], "short": AGAIN, "control": "aa"}  # type: ignore[index]  # a plain dictionary
    variants[UNIFORM]["control"] = "uniform_baseline"  # type: ignore[index]  # a plain dictionary
    one = next(iter(known["tasks"].values()))  # type: ignore[union-attr]  # a plain dictionary
    known["tasks"] = {task: {**one, "short": task, "primary": METRIC} for task in tasks}
    records = []
    for task in tasks:
        for variant, steps in STEPS.items():
            for seed, step in enumerate(steps):
                value = LEVELS[variant] + 0.002 * seed
                rows = [Row(metric=METRIC, value=value, split=at) for at in ("validation", "test")]
                rows.append(Row(metric="train_step_time_ms", value=step))
                if control or variant != AGAIN:
                    records.append(record(quality_cell(task, variant, seed), "ok", rows))
    return read_folder(write_run(path, records=records, catalog_data=known, tasks=[*tasks]))


def test_a_cost_is_the_geometric_mean_over_paired_seeds(tmp_path: Path):
    (comparison,) = folder(tmp_path / "run").comparisons
    found = relative_cost([comparison], OTHER)
    logs = [math.log(a / b) for a, b in zip(STEPS[OTHER], STEPS[BASE], strict=True)]
    assert found.estimate == pytest.approx(math.exp(sum(logs) / 3))
    assert found.low < found.estimate < found.high < 1
    turned = relative_cost([comparison], BASE, OTHER)
    assert turned.low == pytest.approx(1 / found.high)


def test_equal_tasks_do_not_make_a_cost_more_certain(tmp_path: Path):
    one, two = folder(tmp_path / "run", tasks=("copying", "sorting")).comparisons
    assert relative_cost([one, two], OTHER) == pytest.approx(relative_cost([one], OTHER))


def test_costs_within_the_noise_of_the_control_are_about_the_same(tmp_path: Path):
    run = folder(tmp_path / "run")
    noise = noise_of(run.comparisons)
    assert noise.measured
    again = relative_cost(run.comparisons, AGAIN)
    half_width = max(1 - again.low, again.high - 1)
    assert noise.factor == pytest.approx(1 + 2 * half_width)
    cost = relative_cost(run.comparisons, OTHER)
    assert not cost.contains(1.0)
    assert not differs(cost, noise)
    assert cost_text(cost, noise) == "about the same"


def test_without_a_control_the_noise_is_assumed_and_said_to_be(tmp_path: Path):
    noise = noise_of(folder(tmp_path / "run", control=False).comparisons)
    assert noise.factor == ASSUMED
    assert not noise.measured
    assert "assumed" in noise.source


def test_an_interval_that_reaches_into_the_noise_is_no_difference(tmp_path: Path):
    noise = noise_of(folder(tmp_path / "run", control=False).comparisons)
    wide = Interval(estimate=2.0, low=1.2, high=3.3, count=3)
    assert not differs(wide, noise)
    assert cost_text(wide, noise) == "unclear, 2.0× (1.2–3.3)"
    assert cost_text(Interval(estimate=2.0, low=1.4, high=2.9, count=3), noise).startswith("2.0×")


def test_who_is_cheaper_by_noise_alone_is_not_on_the_front_nor_is_a_control(tmp_path: Path):
    data = quality_cost(folder(tmp_path / "run"))
    assert data is not None
    points = {point.name: point for point in data.points}
    assert points["scaled_dot"].cost < 0.9  # worse, and cheaper by no more than the noise
    assert {name for name, point in points.items() if point.on_front} == {"bahdanau"}
    assert "the A/A control" in data.caption
