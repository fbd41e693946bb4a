"""Quality against the bytes of state that decoding keeps."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.blocks import Figure
from reports.folder import RunFolder, read_folder
from reports.render import render
from reports.state_size import fullest_state_section, quality_by_state, state_section
from results.row import Row

TASK = "recall[pairs=8]"
AREA = "along_training_token_accuracy"
KEPT = {
    BASE: (0.99, 65536),
    "scaled_dot": (0.97, 16384),
    "shaw_rpr[clip=16]": (0.5, 16384),
    "linear_attention[feature_map=elu]": (0.6, 4096),
    "lstmn": (0.3, 1024),
    "mocha[chunk=4]": (0.999, 16),
}


def rows(level: float, size: float | None, seed: int, metric: str) -> list[Row]:
    value = level - 0.01 * seed
    found = [Row(metric="token_accuracy", value=value, split=s) for s in ("test", "validation")]
    if metric != "token_accuracy":
        found += [Row(metric=metric, value=value / 2, split=s) for s in ("test", "validation")]
    return found if size is None else [*found, Row(metric="state_bytes", value=float(size))]


def folder(path: Path, kept: dict[str, tuple[float, int | None]], metric: str = AREA) -> RunFolder:
    names = catalog()
    names["metrics"] = {
        **names["metrics"],  # type: ignore[dict-item]
        AREA: {"title": "Along training", "unit": "fraction", "better": "higher"},
        "state_bytes": {"title": "State", "unit": "bytes", "better": "lower", "low": 0.0},
    }
    names["tasks"][TASK] |= {"primary": metric, "chance": 0.1, "ceiling": 1.0}  # type: ignore[index]
    records = [
        record(quality_cell(TASK, name, seed), "ok", rows(level, size, seed, metric))
        for name, (level, size) in kept.items()
        for seed in range(3)
    ]
    return read_folder(write_run(path / "run", records=records, catalog_data=names, tasks=[TASK]))


def test_every_variant_stands_where_its_score_in_the_end_and_its_state_are(tmp_path: Path) -> None:
    (comparison,) = folder(tmp_path, KEPT).comparisons
    assert comparison.metric == AREA
    drawn = quality_by_state(comparison)
    assert drawn is not None
    found = {point.name: (point.quality, point.cost) for point in drawn.points}
    labels = {comparison.catalog.label(name): kept for name, kept in KEPT.items()}
    del labels["mocha"]  # its certificate is red
    assert found == {
        name: (pytest.approx(level - 0.01), size) for name, (level, size) in labels.items()
    }
    assert {point.name for point in drawn.points if point.on_front} == {
        "bahdanau",
        "scaled_dot",
        "linear_attention",
        "lstmn",
    }
    for point in drawn.points:
        assert point.low < point.quality < point.high


def test_no_variant_is_left_out_of_a_large_comparison(tmp_path: Path) -> None:
    # what a small state loses stood behind 40 variants that keep every key, and was not drawn
    crowd = {f"linear_attention[eps=1e-{at}]": (0.9, 65536) for at in range(1, 61)}
    (comparison,) = folder(tmp_path, {**KEPT, **crowd}).comparisons
    drawn = quality_by_state(comparison)
    assert drawn is not None
    assert len(drawn.points) == len(KEPT) - 1 + len(crowd)
    assert min(point.quality for point in drawn.points) == pytest.approx(0.29)


def test_the_axis_of_bytes_is_logarithmic_and_the_page_has_the_figure(tmp_path: Path) -> None:
    run = folder(tmp_path, KEPT)
    section = state_section(run)
    assert section is not None
    (figure,) = section.blocks
    assert isinstance(figure, Figure)
    assert "State (bytes)" in figure.svg
    across = [float(part.split('"')[0]) for part in figure.svg.split('cx="')[1:]]
    assert len(set(across)) == 4
    gaps = [b - a for a, b in pairwise(sorted(set(across)))]
    assert max(gaps) - min(gaps) < 0.2, "each state is four times as large as the one before"
    written = render(run.path, out=tmp_path / "page")
    assert "Quality against the size of the state" in written.html.read_text("utf-8")
    assert (tmp_path / "page" / "figures" / "state-1.svg").is_file()
    assert "figures/state-most.svg" in written.markdown.read_text("utf-8")


def test_the_summary_has_the_figure_with_most_variants(tmp_path: Path) -> None:
    few = folder(tmp_path / "few", dict([*KEPT.items()][:5]))
    many = folder(tmp_path / "many", KEPT)
    both = SimpleNamespace(comparisons=[*few.comparisons, *many.comparisons, *few.comparisons])
    section = fullest_state_section(cast("RunFolder", both))
    assert section is not None
    assert section.group == "summary"
    (figure,) = section.blocks
    (comparison,) = many.comparisons
    drawn = quality_by_state(comparison)
    assert isinstance(figure, Figure)
    assert drawn is not None
    assert f"of {len(drawn.points)} variants" in figure.description


@pytest.mark.parametrize(
    "kept",
    [
        {name: (level, None) for name, (level, _) in KEPT.items()},
        {name: (level, 4096) for name, (level, _) in KEPT.items()},
        dict([*KEPT.items()][:3]),
    ],
    ids=["no state", "one size", "few variants"],
)
def test_runs_without_several_states_have_no_such_section(
    kept: dict[str, tuple[float, int | None]], tmp_path: Path
) -> None:
    assert state_section(folder(tmp_path, kept)) is None


def test_a_plain_metric_that_ranks_is_drawn_itself(tmp_path: Path) -> None:
    (comparison,) = folder(tmp_path, KEPT, "token_accuracy").comparisons
    drawn = quality_by_state(comparison)
    assert drawn is not None
    assert drawn.quality_title == "Token accuracy (fraction)"


@pytest.mark.parametrize("change", [{"family": "output"}, {"made_of": "score=dot, output=cache"}])
def test_outputs_that_read_earlier_words_are_left_out(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """What they keep beside the states of layers is not counted."""
    (comparison,) = folder(tmp_path, KEPT).comparisons
    before = quality_by_state(comparison)
    known = comparison.catalog.variants
    known[BASE] = replace(known[BASE], **change)
    after = quality_by_state(comparison)
    assert before is not None
    assert after is not None
    names = [{point.name for point in one.points} for one in (before, after)]
    assert names[0] - names[1] == {comparison.catalog.label(BASE)}
