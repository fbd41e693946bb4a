"""Scores beyond the length of training, of variants that differ in their positions."""

import re
from pathlib import Path

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.blocks import Figure
from reports.folder import RunFolder, read_folder
from reports.longer_inputs import longer_inputs_section
from reports.positions import has_positions
from reports.render import render
from results.row import Row

TASK = "reversal[length=24]"
LENGTHS = (12, 24, 48, 96)
RECIPES = ("rope", "alibi", "fox")
OTHERS = ("linear_attention[feature_map=elu]", "lstmn")


def rows(level: float, seed: int, lengths: tuple[int, ...], primary: str) -> list[Row]:
    value = level - 0.01 * seed
    found = [Row(metric="token_accuracy", value=value, split=s) for s in ("test", "validation")]
    if primary != "token_accuracy":
        found += [Row(metric=primary, value=value / 2, split=s) for s in ("test", "validation")]
    for length in lengths:
        part = value * 12 / length
        found.append(
            Row(metric="token_accuracy", value=part, axis="length", x=length, split="test")
        )
    return found


def folder(
    path: Path,
    names: tuple[str, ...],
    *,
    trained_to: float | None = 24.0,
    lengths: tuple[int, ...] = LENGTHS,
    primary: str = "token_accuracy",
) -> RunFolder:
    known = catalog()
    known["metrics"] = {
        **known["metrics"],  # type: ignore[dict-item]
        "beyond_training_token_accuracy": {"title": "Beyond", "unit": "", "better": "higher"},
    }
    known["tasks"][TASK] |= {"primary": primary, "trained_to": trained_to}  # type: ignore[index]
    for name in names:
        known["variants"].setdefault(  # type: ignore[attr-defined]
            name, {"short": name, "family": "recipe", "made_of": f"score=dot, position={name}"}
        )
    records = [
        record(quality_cell(TASK, name, seed), "ok", rows(0.9 - 0.02 * at, seed, lengths, primary))
        for at, name in enumerate(names)
        for seed in range(2)
    ]
    return read_folder(write_run(path / "run", records=records, catalog_data=known, tasks=[TASK]))


def figures(run: RunFolder) -> list[Figure]:
    section = longer_inputs_section(run)
    return [] if section is None else [one for one in section.blocks if isinstance(one, Figure)]


def test_positions_are_known_by_name_recipe_and_option(tmp_path: Path) -> None:
    names = (BASE, *RECIPES, "shaw_rpr[clip=16]", "additive[position=rope]", *OTHERS)
    (comparison,) = folder(tmp_path, names).comparisons
    found = {name for name in comparison.variants if has_positions(comparison.catalog, name)}
    assert found == {*RECIPES, "shaw_rpr[clip=16]", "additive[position=rope]"}


@pytest.mark.parametrize("primary", ["token_accuracy", "beyond_training_token_accuracy"])
def test_positions_and_the_baseline_are_drawn_beyond_the_length_of_training(
    primary: str, tmp_path: Path
) -> None:
    (figure,) = figures(folder(tmp_path, (BASE, *RECIPES, *OTHERS), primary=primary))
    named = re.findall(r'class="n"[^>]*>([^<]+)<', figure.svg)
    assert sorted(named) == ["alibi", "bahdanau", "fox", "rope"]
    assert "trained to here" in figure.svg
    assert ">chance<" in figure.svg
    assert figure.svg.count('class="b"') == 4, "every line has a band"


def test_the_border_stands_at_the_length_of_training(tmp_path: Path) -> None:
    (figure,) = figures(folder(tmp_path, (BASE, *RECIPES)))
    upright = r'<path class="v" d="M([0-9.]+) [0-9.]+L\1 [0-9.]+"'
    (border,) = re.findall(upright, figure.svg)
    tick = re.search(r'<text[^>]*x="([0-9.]+)"[^>]*>24</text>', figure.svg)
    assert tick is not None
    assert float(border) == pytest.approx(float(tick[1]), abs=0.2)


def test_more_variants_than_looks_have_further_figures_the_best_first(tmp_path: Path) -> None:
    names = (BASE, *RECIPES, *(f"position_{at}" for at in range(6)))
    found = figures(folder(tmp_path, names))
    assert [one.key for one in found] == ["longer-1", "longer-2"]
    first, second = (re.findall(r'class="n"[^>]*>([^<]+)<', one.svg) for one in found)
    assert sorted(first) == ["alibi", "bahdanau", "fox", "position_0", "rope"]
    assert sorted(second) == [f"position_{at}" for at in range(1, 6)]
    assert "part 2 of 2" in found[1].title
    axes = [re.findall(r'class="t e">([0-9.]+)<', one.svg) for one in found]
    assert axes[0] == axes[1], "both parts have one vertical axis"
    assert len(axes[0]) > 1


@pytest.mark.parametrize(
    "more",
    [
        {"trained_to": None},
        {"lengths": (12, 24)},
        {"names": (BASE, "rope", "alibi", *OTHERS)},
    ],
    ids=["unknown length", "nothing longer", "two positions"],
)
def test_runs_without_longer_inputs_of_several_positions_have_no_such_section(
    more: dict, tmp_path: Path
) -> None:
    assert longer_inputs_section(folder(tmp_path, **{"names": (BASE, *RECIPES), **more})) is None


def test_the_page_has_the_section(tmp_path: Path) -> None:
    run = folder(tmp_path, (BASE, *RECIPES))
    written = render(run.path, out=tmp_path / "page")
    assert "Positions beyond the length of training" in written.html.read_text("utf-8")
    assert (tmp_path / "page" / "figures" / "longer-1.svg").is_file()
    assert "figures/longer-most-1.svg" in written.markdown.read_text("utf-8")
