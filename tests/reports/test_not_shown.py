"""Where an advantage does not appear: who is not better on the own task, with its reason."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Levels, Scores, of_seeds, written

from bench.api import registry
from bench.api.loading import load_package
from bench.api.selector import parse
from reports.blocks import Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder, read_folder
from reports.ranked_table.verdicts import planned
from reports.render import render
from reports.sections.decisions import decisions_section
from reports.sections.not_shown import NOT_SHOWN, not_shown, not_shown_section, own_tests

ROOT = Path(__file__).parents[2]
WHY = "Its authors report less time and no gain of quality over the baseline."
LEVELS: Levels = {BASE: 0.9, NEW: 0.5, OTHER: 0.899, "luong_general": 0.4, UNIFORM: 0.3}
TRAINED = ("families", "flagship", "fresh_seeds", "modern", "quick")
"""Published packs in which a variant stands on its default task."""
NEARLY_ALL = 0.95
"""Share of values that counts as nearly all."""

load_package("variants")
REASONS = {name: one.does_not_show for name, one in registry.listed_variants().items()}


def told(path: Path, levels: Levels = LEVELS, **own: str) -> RunFolder:
    """A run of one task, copying, with the own task of each of its variants."""
    folder = written(path, {"copying": levels})
    known = folder.catalog
    tasks = {NEW: own.get("new", "copying"), OTHER: "copying", "luong_general": "sorting"}
    known.variants = {
        name: replace(
            one,
            default_task=tasks.get(name, ""),
            does_not_show=WHY if name == NEW and "silent" not in own else "",
        )
        for name, one in known.variants.items()
    }
    return folder


def tables(section: Section | None) -> list[TableBlock]:
    """The tables of the section, which must be there."""
    assert section is not None
    return [block for block in section.blocks if isinstance(block, TableBlock)]


def texts(row: tuple[TableCell, ...]) -> list[str]:
    """Variant, outcome and reason of a row."""
    return [row[at].text for at in (0, 4, 5)]


def counted(folder: RunFolder) -> str:
    """The paragraph of the first page that counts what is not better."""
    section = decisions_section(folder)
    assert section is not None
    (found,) = [
        block.text
        for block in section.blocks
        if isinstance(block, Paragraph) and NOT_SHOWN in block.text
    ]
    return found


def test_only_who_is_not_better_on_the_own_task_is_listed(tmp_path: Path) -> None:
    found = {one.variant: one.decision.outcome for one in not_shown(told(tmp_path / "run"))}
    # luong_general is worse, too, but this is not its task
    assert found == {NEW: "worse", OTHER: "undecided"}


def test_each_outcome_has_a_table_and_the_reason_stands_in_the_row(tmp_path: Path) -> None:
    worse, undecided = tables(not_shown_section(told(tmp_path / "run")))
    assert [*map(texts, worse.rows)] == [["shaw_rpr", "worse", WHY]]
    ((name, outcome, reason),) = map(texts, undecided.rows)
    assert (name, reason) == ("scaled_dot", "no reason is known")
    assert outcome.startswith("undecided (about ")
    assert worse.title.endswith(": 1 contender")


def test_a_row_has_the_difference_with_its_interval(tmp_path: Path) -> None:
    worse, undecided = tables(not_shown_section(told(tmp_path / "run")))
    assert worse.rows[0][3].text.startswith("-0.400")
    assert worse.rows[0][3].sort == pytest.approx(-0.4, abs=0.002)
    assert re.fullmatch(r"-?0\.0\d+ ± 0\.0\d+", undecided.rows[0][3].text)


def test_who_is_equivalent_at_the_ceiling_is_listed_and_said_to_be(tmp_path: Path) -> None:
    folder = told(tmp_path / "run", {BASE: 0.995, NEW: 0.9949, OTHER: 0.9948, UNIFORM: 0.3})
    known = folder.catalog
    known.metrics = {name: replace(one, margin=0.05) for name, one in known.metrics.items()}
    (equivalent,) = tables(not_shown_section(folder))
    assert [*map(texts, equivalent.rows)] == [
        ["shaw_rpr", "equivalent at the ceiling", WHY],
        ["scaled_dot", "equivalent at the ceiling", "no reason is known"],
    ]
    assert "2 equivalent (2 of them at the ceiling or at chance" in counted(folder)


def test_who_is_undecided_with_a_better_mean_is_listed_too(tmp_path: Path) -> None:
    folder = told(tmp_path / "run", {BASE: 0.9, NEW: 0.5, OTHER: 0.901, UNIFORM: 0.3})
    assert {one.variant for one in not_shown(folder)} == {NEW, OTHER}
    assert " and 1 undecided. " in counted(folder)


def test_who_is_worse_for_no_known_reason_is_listed_all_the_same(tmp_path: Path) -> None:
    worse, _ = tables(not_shown_section(told(tmp_path / "run", silent="yes")))
    assert [row[5].text for row in worse.rows] == ["no reason is known"]


def test_the_order_of_options_makes_no_other_task(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying[a=1,b=2]": LEVELS})
    folder.catalog.variants = {
        name: replace(one, default_task="copying[b=2,a=1]" if name == NEW else "")
        for name, one in folder.catalog.variants.items()
    }
    assert [one.variant for one in not_shown(folder)] == [NEW]


def test_contenders_on_a_pipeline_check_have_a_table_of_their_own(tmp_path: Path) -> None:
    folder = told(tmp_path / "run")
    (comparison,) = folder.comparisons
    check = replace(folder.catalog.task(comparison.task), pipeline_check="It is small.")
    folder.catalog.tasks = {**folder.catalog.tasks, comparison.task: check}
    (table,) = tables(not_shown_section(folder))
    assert table.title == "The default task is a pipeline check: 2 contenders"
    assert [[row[at].text for at in (0, 1, 4)] for row in table.rows] == [
        ["shaw_rpr", "copying", WHY],
        ["scaled_dot", "copying", "no reason is known"],
    ]
    assert table.rows[0][3].text == comparison.score_text(BASE)


def test_a_contender_on_a_pipeline_check_may_share_no_seed_with_the_baseline(
    tmp_path: Path,
) -> None:
    apart: Scores = {BASE: (None, None, 0.5), NEW: (0.9, 0.91, None), UNIFORM: (0.3, 0.3, 0.3)}
    folder = of_seeds(tmp_path / "run", apart)
    known = folder.catalog
    known.variants = {**known.variants, NEW: replace(known.variant(NEW), default_task="copying")}
    known.tasks = {"copying": replace(known.task("copying"), pipeline_check="It is small.")}
    (table,) = tables(not_shown_section(folder))
    (row,) = table.rows
    assert [row[at].text for at in (0, 3, 4)] == ["shaw_rpr", "0.500", "no reason is known"]


def test_where_all_are_better_there_is_no_section(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": {BASE: 0.5, NEW: 0.9, UNIFORM: 0.3}})
    assert not_shown_section(folder) is None
    assert "Where an advantage" not in render(folder.path).markdown.read_text(encoding="utf-8")


def test_the_first_page_counts_every_outcome_and_names_the_section(tmp_path: Path) -> None:
    text = counted(told(tmp_path / "run"))
    assert (
        "Of 2 contenders there, 0 are significantly better than bahdanau, 1 worse, 0 equivalent"
        in text
    )
    assert "1 undecided (1 of them with a worse mean)" in text
    assert text.endswith("For 1 no reason is known.")


@cache
def published(name: str) -> RunFolder:
    """A published pack."""
    return read_folder(ROOT / "results" / "published" / f"{name}.parquet")


@pytest.fixture(scope="module")
def quick() -> RunFolder:
    """The run in which every variant stands on its default task."""
    return published("quick")


def test_every_contender_of_quick_is_better_on_its_own_task_or_listed_with_a_reason(
    quick: RunFolder,
) -> None:
    listed = {
        (row[0].text, row[1].text): row[-1].text
        for table in tables(not_shown_section(quick))
        for row in table.rows
    }
    own = [*own_tests(quick)]
    assert len(own) > 150
    for one in own:
        place = (quick.catalog.label(one.variant), one.comparison.title)
        if one.decision.outcome == "better":
            assert place not in listed
        else:
            assert listed[place] == one.reason != "", place
    assert "no reason is known" not in counted(quick)


@pytest.mark.parametrize("name", TRAINED)
def test_reasons_of_published_packs_are_those_of_the_code(name: str) -> None:
    for variant, about in published(name).catalog.variants.items():
        if (known := REASONS.get(parse(variant).name)) is not None:
            assert about.does_not_show == known, variant


def test_the_page_of_limits_has_the_counts_of_the_published_run(quick: RunFolder) -> None:
    outcomes = Counter(one.decision.outcome for one in own_tests(quick))
    edges = sum(one.at_edge for one in not_shown(quick))
    limits = " ".join((ROOT / "docs/limits.md").read_text(encoding="utf-8").split())
    assert (
        f"Of {outcomes.total()} contenders of `quick` on their default task, {outcomes['better']} "
        f"are better than `scaled_dot`, {outcomes['worse']} worse, {outcomes['equivalent']} "
        f"equivalent ({edges} of them at the ceiling) and {outcomes['undecided']} undecided."
    ) in limits


ELSEWHERE = re.compile(r"It is significantly better on (.+?) of `(\w+)`")


NAMED = [name for name, text in REASONS.items() if ELSEWHERE.search(text)]


def test_some_reasons_name_a_task_on_which_a_variant_is_better():
    assert len(NAMED) >= 2


@pytest.mark.parametrize("name", NAMED)
def test_what_is_said_to_be_better_elsewhere_is_so_in_that_pack(name: str) -> None:
    found = ELSEWHERE.search(REASONS[name])
    assert found is not None
    folder = published(found[2])
    for task in re.findall(r"`([^`]+)`", found[1]):
        outcomes = {
            decision.outcome
            for comparison in folder.comparisons
            if folder.catalog.task(comparison.task).short == task
            and (decision := planned(comparison, name, comparison.baseline)) is not None
        }
        assert "better" in outcomes, task
        assert "worse" not in outcomes, task


def test_what_reasons_say_of_the_scores_is_so_in_quick(quick: RunFolder) -> None:
    seen = Counter[str]()
    for one in own_tests(quick):
        difference = one.decision.difference.estimate
        if "its mean is higher, but" in one.reason:
            assert (one.decision.outcome, difference > 0) == ("undecided", True), one.variant
            seen["higher"] += 1
        elif "its mean is higher than" in one.reason:
            assert difference > 0, one.variant
        if re.search("baseline (finds|recalls) nearly (every value|all values)", one.reason):
            levels = {line.variant: line.mean.estimate for line in one.comparison.ranking}
            assert levels[one.base] > NEARLY_ALL, one.variant
            seen["base"] += 1
        if "recalls nearly every pair" in one.reason:
            assert one.at_edge, one.variant
            seen["ceiling"] += 1
        if "the two are one network" in one.reason:
            assert difference == 0, one.variant
            seen["same"] += 1
    assert min(seen["higher"], seen["ceiling"], seen["same"], seen["base"]) > 2
