"""Figures draw the bounds that tables print: seeds where an interval would leave the range."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import catalog, quality_cell, record
from synthetic_levels import BASE, METRIC, OTHER, UNIFORM, of_seeds
from synthetic_run import write_run

from reports import tradeoffs
from reports.curves import GRAY, _along, about_bands, curve_panel, learning_section, legend_of
from reports.figures import Curve, Legend, Panel
from reports.figures.style import looks
from reports.folder import RunFolder, read_folder
from reports.quality_cost import seen_within
from reports.sections.metric_tables import DELAY
from reports.tradeoffs import CROSSES, _pareto_panel, delay_section, pareto_section
from results.row import Row
from results.statistics import Interval

NEAR_ONE = (1.0, 0.9, 1.0)
"""Their t interval is 0.823 to 1.110, which no accuracy can be."""
MIDDLE = (0.50, 0.52, 0.51)
COST = Interval(estimate=3.0, low=2.0, high=4.0, count=3)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run with validation along steps and seconds, and a test by length."""
    known = catalog()
    one = next(iter(known["tasks"].values()))  # type: ignore[attr-defined]  # a plain dictionary
    known["tasks"] = {"copying": {**one, "short": "copying", "primary": METRIC}}
    records = []
    for name, values in {BASE: NEAR_ONE, OTHER: MIDDLE}.items():
        for seed, value in enumerate(values):
            rows = [Row(metric=METRIC, value=value, split="test")]
            places = [("step", 10.0, "validation"), ("step", 20.0, "validation")]
            places += [("cpu_s", 1.0 + seed, "validation"), ("length", 16.0, "test")]
            if seed != 1:  # it ended before the others
                places.append(("step", 30.0, "validation"))
            rows += [
                Row(metric=METRIC, value=value, axis=axis, x=x, split=split)
                for axis, x, split in places
            ]
            rows.append(Row(metric=DELAY, value=0.1 if seed else 3.0, split="test"))
            rows.append(Row(metric="train_step_time_ms", value=10.0 + seed))
            records.append(record(quality_cell("copying", name, seed), "ok", rows))
    known["metrics"][DELAY] = {"title": "Lag", "unit": "words", "better": "lower", "low": 0.0}  # type: ignore[index]  # a plain dictionary
    return read_folder(write_run(tmp_path, records=records, catalog_data=known, tasks=["copying"]))


def line_of(panel: Panel, name: str) -> Curve:
    (found,) = [line for line in panel.lines if line.name == name]
    return found


@pytest.mark.parametrize(
    ("axis", "split", "points"),
    [("step", "validation", 3), ("cpu_s", "validation", 1), ("length", "test", 1)],
)
def test_a_band_keeps_to_the_range_as_the_table_does(
    folder: RunFolder, axis: str, split: str, points: int
) -> None:
    (comparison,) = folder.comparisons
    assert comparison.score_text(BASE) == "0.967 (0.90–1.00, 3 seeds)"
    panel = curve_panel(comparison, axis, axis, split)
    line = line_of(panel, BASE)
    assert (line.low, line.high) == ((0.9,) * points, (1.0,) * points)
    middle, mean = line_of(panel, OTHER), comparison.means[OTHER]
    assert middle.low == pytest.approx((mean.low,) * points)
    assert middle.high == pytest.approx((mean.high,) * points)


def test_a_point_has_the_bounds_of_the_first_figure(folder: RunFolder) -> None:
    (comparison,) = folder.comparisons
    limits = comparison.ranked_by.limits
    panel = _pareto_panel(comparison, dict.fromkeys((BASE, OTHER), COST), 1.0, "ms")
    drawn = {point.name: point.y for point in panel.points}
    assert drawn[BASE] == pytest.approx((29 / 30, 0.9, 1.0))
    for name, found in drawn.items():
        first = seen_within(comparison.scores[name].values(), limits)
        assert found == pytest.approx((first.estimate, first.low, first.high))
    assert panel.points[0].x == (3.0, 2.0, 4.0)


def delay_panels(monkeypatch: pytest.MonkeyPatch, folder: RunFolder) -> Sequence[Panel]:
    """What the section of delays draws."""
    drawn: list[Panel] = []
    monkeypatch.setattr(tradeoffs, "figures_section", lambda *found, **_: drawn.extend(found[3]))
    tradeoffs.delay_section(folder, legend_of(folder))
    return drawn


def test_a_delay_cannot_be_negative(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    section = delay_section(folder, legend_of(folder))
    assert section is not None
    assert CROSSES in section.blocks[0].caption  # type: ignore[union-attr]  # a figure
    assert CROSSES in pareto_section(folder, legend_of(folder)).blocks[0].caption  # type: ignore[union-attr]  # a figure
    panels = delay_panels(monkeypatch, folder)
    assert [point.x for point in panels[0].points] == [pytest.approx((3.2 / 3, 0.1, 3.0))] * 2


def test_captions_say_what_bands_are(folder: RunFolder) -> None:
    (figure,) = learning_section(folder, legend_of(folder)).blocks
    told = figure.caption  # type: ignore[union-attr]  # a figure
    assert "from the lowest to the highest seed where an interval would leave the range" in told
    assert "A line without a band has one seed, or seeds that do not differ." in told
    assert "gray" not in told


def test_captions_say_that_gray_lines_have_no_bands(folder: RunFolder) -> None:
    few = Legend(looks([BASE]), {})  # as where a run has more variants than there are looks
    (figure,) = learning_section(folder, few).blocks
    assert (
        "A named line without a band has one seed, or seeds that do not differ; gray lines have "
        "none."
    ) in figure.caption  # type: ignore[union-attr]  # a figure
    (comparison,) = folder.comparisons
    panel = curve_panel(comparison, "step", "step", "validation")
    assert GRAY in about_bands([panel], few)
    assert GRAY not in about_bands([panel], legend_of(folder))


def test_seeds_without_spread_have_no_bounds(tmp_path: Path) -> None:
    scores = {BASE: (1.0, 1.0, 1.0), OTHER: MIDDLE, UNIFORM: (0.3, 0.3, 0.31)}
    (comparison,) = of_seeds(tmp_path / "run", scores, curves=True).comparisons
    panel = _pareto_panel(comparison, {BASE: COST}, 1.0, "ms")
    assert panel.points[0].y == (1.0, -math.inf, math.inf)
    line = line_of(curve_panel(comparison, "step", "step", "validation"), BASE)
    assert line.low[-1] == line.high[-1] == line.y[-1] == 1.0


def test_seeds_are_taken_at_the_places_of_the_mean() -> None:
    points = {10.0: 0.2, 20.0: 0.4}
    places = (5.0, 10.0, 15.0, 40.0)
    steps = _along(points, places, "step")
    assert math.isnan(steps[0])
    assert steps[1:] == pytest.approx([0.2, 0.3, 0.4])
    assert _along(points, places, "wall_s") == [0.2, 0.4, 0.4, 0.4]
    lengths = _along(points, places, "length")
    assert [*map(math.isnan, lengths)] == [True, False, True, True]
