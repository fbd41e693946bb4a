"""A figure and a paragraph for comparisons that a paper could quote."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.blocks import Figure, Paragraph
from reports.folder import RunFolder, read_folder
from reports.sections.mixed_environments import shared_facts
from reports.sections.quotable import MOST_VARIANTS, NO_RED, SMALL_RUN, _tested, quotable_section
from results.row import Row
from results.statistics import Decision

METRIC, UNIFORM, NEW, OTHER = "token_accuracy", "no_attention", "shaw_rpr[clip=16]", "scaled_dot"
LEVELS = {BASE: 0.50, NEW: 0.90, OTHER: 0.5002, UNIFORM: 0.30}
NOISE = (0.004, -0.003, 0.0, 0.002, -0.003)


def folder(
    path: Path, *, seeds: int = 5, tasks: int = 1, levels: Mapping[str, float] = LEVELS
) -> RunFolder:
    known = catalog()
    known["variants"][UNIFORM]["control"] = "uniform_baseline"  # type: ignore[index]  # a plain dictionary
    known["metrics"][METRIC]["margin"] = 0.05  # type: ignore[index]  # a plain dictionary
    one = next(iter(known["tasks"].values()))  # type: ignore[union-attr]  # a plain dictionary
    names = [f"copying{at}" for at in range(tasks)]
    known["tasks"] = {name: {**one, "short": name, "primary": METRIC} for name in names}
    records = [
        record(
            quality_cell(name, variant, seed),
            "ok",
            [
                Row(metric=METRIC, value=level + NOISE[(seed + at) % 5], split=split)
                for split in ("validation", "test")
            ],
        )
        for name in names
        for at, (variant, level) in enumerate(levels.items())
        for seed in range(seeds)
    ]
    return read_folder(write_run(path / "run", records=records, catalog_data=known, tasks=names))


def test_a_paragraph_names_scores_decisions_and_what_was_tested(tmp_path: Path):
    section = quotable_section(folder(tmp_path))
    assert section is not None
    figure, text = section.blocks
    assert isinstance(text, Paragraph)
    assert isinstance(figure, Figure)
    for told in (
        "copying0: token accuracy (",
        "means over 5 paired seeds with 95% t intervals, or",
        "Against bahdanau 0.5000 ± 0.0038, significantly better: shaw_rpr 0.9000 ± 0.0038 "
        "(p < 0.001); equivalent within 0.0500: scaled_dot 0.5002 ± 0.0038.",
        "Against no_attention 0.3000 ± 0.0038, significantly better: shaw_rpr, scaled_dot and "
        "bahdanau (each p < 0.001).",
        "Holm's correction over 5 hypotheses fixed before the run",
    ):
        assert told in text.text, told
    order = [figure.description.index(name) for name in ("shaw_rpr", "scaled_dot", "no_attention")]
    assert order == sorted(order), "best first"


def test_the_figure_draws_each_mean_between_the_ends_of_its_interval(tmp_path: Path):
    section = quotable_section(folder(tmp_path))
    assert section is not None
    figure = section.blocks[0]
    assert isinstance(figure, Figure)
    arms = re.findall(r'class="w" d="M([\d.]+) [\d.]+H([\d.]+)"', figure.svg)
    marks = re.findall(r"translate\(([\d.]+) [\d.]+\)", figure.svg)
    assert len(arms) == len(marks) == len(LEVELS)
    for (low, high), mark in zip(arms, marks, strict=True):
        assert float(low) < float(mark) < float(high)


@pytest.mark.parametrize(("tasks", "group"), [(1, "summary"), (SMALL_RUN + 1, "details")])
def test_paragraphs_of_a_small_run_are_on_the_first_page(tmp_path: Path, tasks: int, group: str):
    section = quotable_section(folder(tmp_path, tasks=tasks))
    assert section is not None
    assert section.group == group
    assert len(section.blocks) == 2 * tasks


def test_few_seeds_or_many_variants_are_not_quoted(tmp_path: Path):
    assert quotable_section(folder(tmp_path / "few", seeds=4)) is None
    many = {BASE: 0.5, **{f"{NEW[:-1]},heads={at}]": 0.5 for at in range(MOST_VARIANTS)}}
    assert quotable_section(folder(tmp_path / "many", levels=many)) is None


def bound_of(*p_values: float) -> str:
    """What is printed of the p values of several variants."""
    decisions = [cast(Decision, SimpleNamespace(p_adjusted=p)) for p in p_values]
    return _tested("better", decisions)


@pytest.mark.parametrize(
    ("most", "printed"),
    [
        (0.0091, "(each p ≤ 0.010)"),
        (0.009, "(each p ≤ 0.009)"),
        (0.007, "(each p ≤ 0.007)"),
        (0.0121, "(each p ≤ 0.013)"),
        (0.001, "(each p ≤ 0.001)"),
        (0.0009, "(each p < 0.001)"),
    ],
)
def test_the_bound_of_several_p_values_is_rounded_up(most: float, printed: str):
    assert bound_of(0.0002, most).strip() == printed


@given(st.floats(min_value=0.001, max_value=0.05))
def test_no_p_value_exceeds_the_bound_that_is_printed(most: float):
    printed = bound_of(0.0002, most).strip(" ()").removeprefix("each p ≤ ")
    assert most <= float(printed) < most + 0.0011


def test_an_interval_that_would_leave_the_range_is_drawn_from_seed_to_seed(tmp_path: Path):
    section = quotable_section(folder(tmp_path, levels={**LEVELS, NEW: 0.0035}))
    assert section is not None
    figure, _ = section.blocks
    assert isinstance(figure, Figure)
    assert "shaw_rpr: 0.0035 (0.0005 to 0.0075)" in figure.svg


def test_a_red_variant_is_not_drawn_and_the_caption_says_so(tmp_path: Path):
    red = "mocha[chunk=4]"
    section = quotable_section(folder(tmp_path / "red", levels={**LEVELS, red: 0.99}))
    assert section is not None
    figure, text = section.blocks
    assert isinstance(figure, Figure)
    assert isinstance(text, Paragraph)
    assert "mocha" not in figure.svg + figure.description + text.text
    assert figure.caption.endswith(NO_RED)
    green = quotable_section(folder(tmp_path / "green"))
    assert green is not None
    assert not green.blocks[0].caption.endswith(NO_RED)  # type: ignore[union-attr]  # a figure


def test_facts_that_nobody_wrote_down_are_not_quoted(tmp_path: Path):
    found = folder(tmp_path)
    (path,) = (found.path / "environments").glob("*.json")
    path.write_text(json.dumps({"cpu": "Abacus"}), encoding="utf-8")
    again = read_folder(found.path)
    assert shared_facts(again, again.comparisons[0]) == ["processor Abacus"]
    section = quotable_section(again)
    assert section is not None
    assert "fixed before the run (processor Abacus)." in section.blocks[1].text  # type: ignore[union-attr]  # a paragraph
