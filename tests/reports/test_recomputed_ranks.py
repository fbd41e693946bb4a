"""Every rank of the published pages, computed again from rows by pandas and SciPy alone.

What is compared with what, the hypotheses, the ranks, what is set off as the best, and the marks
beside names are those of ADR 9 and 23, written a second time in `recomputed.py`.
"""

import math

import pytest
from printed_tables import Printed, Row, marks_of, name_of, numbers, says, says_p, tables
from recomputed import PAGES, RANKED, Compared, pack_of
from scipy import stats

from reports.folder import read_folder

TESTED = ("better", "worse", "equivalent", "undecided")


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
        bool(shown[name]) and says(shown[name][0], one.means[name])
        for name in one.scores.index
    )


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
            said = row[column].split(" ")[0]
            planned = (name, reference) in one.primary
            wanted = one.outcome(name, str(reference)) if planned else "—"
            assert said == wanted, (*where, column)
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
        assert row["p"] == "—", where
        return
    assert says_p(row["p"], one.p(name, base)), where
    if not math.isnan(error):
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
        tests = stored._ranking.tests
        for pair, p in tests.pairs.items():
            left, right = sorted(pair)
            assert p == pytest.approx(one.all_pairs[left, right], rel=1e-6, abs=1e-12), pair
        assert {line.variant: line.rank for line in stored.ranking} == one.ranks
        assert [line.variant for line in stored.leading] == one.leading
