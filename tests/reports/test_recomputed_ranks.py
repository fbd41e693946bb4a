"""Every rank of the published pages, computed again from rows by pandas and SciPy alone.

What is compared with what, the hypotheses, the ranks, what is set off as the best, and the marks
beside names are those of ADR 9 and 23, written a second time in `recomputed.py`.
"""

import math

import numpy as np
import pytest
from printed_tables import Printed, Row, marks_of, name_of, numbers, says, says_p, tables, unescaped
from recomputed import PAGES, RANKED, Compared, pack_of
from scipy import stats

from reports.folder import read_folder


def expected_rank(one: Compared, name: str) -> str:
    """The rank as it is printed, with a mark where others share it."""
    if name not in one.ranks:
        return "—"
    shared = [*one.ranks.values()].count(one.ranks[name]) > 1
    return f"{one.ranks[name]}{'=' if shared else ''}"


def expected_marks(one: Compared, name: str) -> list[str]:
    """Marks that a test or a seed decides."""
    found, base = [], one.base
    label = one.pack.label
    scored, asked = one.seeds.get(name, 0), one.seeds.max()
    if 0 < scored < asked:
        found.append(f"{scored} of {asked} seeds")
    seeds = one.validated.get(name, 0)
    if one.lost.get(name, 0) and one.pack.control(name) is None:
        beyond = " beyond training" if one.metric.startswith("beyond_training_") else ""
        lost = one.lost[name]
        how = f"any of {seeds}" if lost == seeds else f"{lost} of {seeds}"
        found.append(f"not above {label(one.uniform or '')}{beyond} in {how} seeds")
    if name not in one.ranks:
        return found
    first = one.order[0]
    tied = not one.separable(first, name)
    if base and (name, base) in one.primary:
        outcome = one.outcome(name, base)
        behind = one.ranks[name] <= one.ranks[base] or tied
        if outcome == "worse" and behind:
            found.append(f"worse than {label(base)} by the planned test")
        if outcome == "better" and one.ranks[name] >= one.ranks[base]:
            found.append(f"better than {label(base)} by the planned test")
    if one.ranks[name] > 1 and tied:
        found.append("n.s. against the best")
    return found


def is_decided_by_a_test(mark: str) -> bool:
    return mark.endswith((" seeds", "planned test", "n.s. against the best"))


def is_of(table: Printed, one: Compared) -> bool:
    """Whether a table prints a comparison: its task, its variants and their means."""
    if not table.heading.startswith(one.pack.label(one.task)):
        return False
    names = {one.pack.label(name): name for name in one.rows["variant"].unique()}
    here = {name_of(row["Variant"]): row for row in table.rows}
    if here.keys() != names.keys():
        return False
    shown = {names[name]: numbers(row[table.heads[2]]) for name, row in here.items()}
    return all(
        bool(shown[name]) and says(shown[name][0], one.means[name]) for name in one.scores.index
    )


def expected_verdict(one: Compared, name: str, reference: str | None) -> str:
    """The outcome of a primary test, with what else is printed beside it."""
    if reference is None or (name, reference) not in one.primary:
        return "—"
    outcome = one.outcome(name, reference)
    if outcome == "equivalent":
        return f"{outcome} {edge(one, name, reference)}".strip()
    if outcome != "undecided" or one.test.still[one.test.at(name, reference)]:
        return outcome
    seeds = seeds_to_decide(one, name, reference)
    return f"undecided ({f'about {seeds} seeds' if seeds else 'more than 200 seeds'})"


def edge(one: Compared, name: str, other: str) -> str:
    """Whether both are within 1% of the range from the best score, or from chance."""
    low, high = one.limits
    worst, best = (low, high) if one.sign > 0 else (high, low)
    chance = one.about.get("chance")
    means = one.means[[name, other]]
    for words, level in (("ceiling", best), ("chance", worst if chance is None else chance)):
        if math.isfinite(high - low) and ((means - level).abs() <= 0.01 * (high - low)).all():
            return f"at {'the ' if words == 'ceiling' else ''}{words}"
    return ""


def seeds_to_decide(one: Compared, name: str, reference: str) -> int | None:
    """Fewest seeds, of 200, with which 80% of runs decide if mean and spread stay."""
    test, at = one.test, one.test.at(name, reference)
    count, alpha = test.count[at], 0.05 / len(one.planned)
    seeds = np.arange(count + 1, 201)
    error = test.error[at] * np.sqrt(count / seeds)
    freedom = test.degrees[at] / count * seeds
    size = abs(test.mean[at])
    both = stats.t.ppf(1 - alpha / 2, freedom) + stats.t.ppf(0.8, freedom)
    enough = size >= both * error
    if one.margin is not None:
        # both one-sided tests must succeed, each of which may miss half as often
        one_sided = stats.t.ppf(1 - alpha, freedom) + stats.t.ppf(0.9, freedom)
        enough |= one.margin - size >= one_sided * error
    return int(seeds[enough][0]) if enough.any() else None


def check(one: Compared, table: Printed) -> None:
    """Compare a table with the numbers that it should print."""
    rows = {name_of(row["Variant"]): row for row in table.rows}
    label, base = one.pack.label, one.base
    ranked = [label(name) for name in one.order]
    assert [*rows][: len(ranked)] == ranked, table.heading
    for name in one.rows["variant"].unique():
        row, where = rows[label(name)], (table.heading, name)
        assert row["Rank"].replace("**", "") == expected_rank(one, name), where
        assert row[table.heads[2]].startswith("**") == (name in one.leading), where
        shown = [mark for mark in marks_of(row["Variant"]) if is_decided_by_a_test(mark)]
        assert shown == expected_marks(one, name), where
        for column, reference in (("Against baseline", base), ("Against uniform", one.uniform)):
            assert unescaped(row[column]) == expected_verdict(one, name, reference), (
                *where,
                column,
            )
        if base and name in one.ranks and name != base:
            check_difference(one, name, base, row)


def check_difference(one: Compared, name: str, base: str, row: Row) -> None:
    """The difference to the baseline, its p, its effect size, and what could be detected."""
    where = (one.task, name)
    test, at = one.test, one.test.at(name, base)
    shown = numbers(row["To baseline"])
    assert says(shown[0], test.mean[at]), where
    error, freedom = test.error[at], test.degrees[at]
    if "±" in row["To baseline"]:
        assert says(shown[1], stats.t.ppf(0.975, freedom) * error), where
    planned = (name, base) in one.primary
    if not planned:
        assert row["p"] == row["Detectable difference"] == "—", where
        return
    assert says_p(row["p"], one.p(name, base)), where
    if not math.isnan(error):
        quantiles = stats.t.ppf(1 - 0.025 / len(one.planned), freedom) + stats.t.ppf(0.8, freedom)
        size, whole = quantiles * error, one.limits[1] - one.limits[0]
        found = row["Detectable difference"]
        assert says(found, size) if size < whole else found == "more than the whole range", where
        effect = test.mean[at] / (error * math.sqrt(test.count[at]))
        assert float(row["Effect size"]) == pytest.approx(effect, rel=0.051), where


@pytest.mark.parametrize("name", RANKED)
def test_every_rank_on_a_page_is_that_of_other_code(name: str) -> None:
    left = tables(PAGES / name / "details.md", "Rank")
    for one in pack_of(name).comparisons:
        assert not one.is_nearly_all_saturated or one.is_declared  # so this score ranks
        mine = [table for table in left if is_of(table, one)]
        assert mine, one.task
        check(one, mine[0])
        left.remove(mine[0])
    assert not left


@pytest.mark.parametrize("name", RANKED)
def test_all_pairs_and_what_is_compared_are_those_of_other_code(name: str) -> None:
    folder = read_folder(pack_of(name).path)
    again = {frozenset(one.rows["cell"]): one for one in pack_of(name).comparisons}
    assert again.keys() == {frozenset(one.frame["cell"]) for one in folder.comparisons}
    for stored in folder.comparisons:
        one = again[frozenset(stored.frame["cell"])]
        assert [*stored.compared] == one.order, stored.title
        assert {(pair.variant, pair.reference) for pair in stored.primary} == {*one.planned}
        assert stored._ranking is not None
        for pair, p in stored._ranking.tests.pairs.items():
            left, right = sorted(pair)
            assert p == pytest.approx(one.all_pairs[left, right], rel=1e-6, abs=1e-12), pair
        assert {line.variant: line.rank for line in stored.ranking} == one.ranks
        assert [line.variant for line in stored.leading] == one.leading


@pytest.mark.parametrize("name", RANKED)
def test_the_summary_counts_these_outcomes(name: str) -> None:
    pack = pack_of(name)
    page = unescaped((PAGES / name / "report.md").read_text(encoding="utf-8"))
    tested = [one for one in pack.comparisons if one.planned and one.is_evidence]
    words, apart = ("better", "worse", "equivalent", "undecided"), "at the ceiling or at chance"
    decided = {}
    for reference, label in (("base", pack.baseline), ("uniform", "uniform attention")):
        pairs = [
            expected_verdict(one, *pair).partition(" (")[0]
            for one in tested
            for pair in one.planned
            if pair[1] == getattr(one, reference)
        ]
        edges = sum(" at " in text for text in pairs)
        told = ", ".join(f"{pairs.count(word)} {word}" for word in words)
        told += f", {edges} {apart}" if edges else ""
        assert f"Against {label}: {told}." in page
        decided[label] = (len(pairs) - edges - pairs.count("undecided"), len(pairs))
    few, every = (sum(counts) for counts in zip(*decided.values(), strict=True))
    parts = " and ".join(f"{n} of {of} against {label}" for label, (n, of) in decided.items())
    count = f"{len(tested)} comparison{'s' if len(tested) > 1 else ''}"
    share = f"The run decides {few} of {every} primary hypotheses ({few / every:.0%}) in {count}"
    assert f"{share}: {parts}." in page
