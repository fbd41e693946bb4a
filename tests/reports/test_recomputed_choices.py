"""The page of choices, computed again from rows by pandas and SciPy alone.

Which variant is named, on which test, against what, with what it is tied, and whether its cost is
the baseline's: by the rule of docs/statistics.md, written a second time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import pandas as pd
import pytest
from moderated_again import ROUNDING
from printed_tables import Row, marks_of, name_of, numbers, says, says_p, tables, unescaped
from recomputed import LEVEL, PAGES, Compared, options, pack_of
from scipy import stats

RUNS = ("flagship", "multi30k", "modern", "quick", "families")
RULES = 7
"""Rules that say something about quality or cost; what follows them says nothing."""
ASSUMED = 1.3
"""Factor within which costs are the same, where no A/A control says it."""
MOST_TIED = 4
"""Tied variants that a row names; more are counted."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval; nothing is known of a single value."""

    estimate: float
    low: float
    high: float

    @classmethod
    def of_ratio(cls, logs: "pd.Series[float]") -> "Interval":
        if not len(logs):
            return cls(math.nan, -math.inf, math.inf)
        mean, spread = logs.mean(), logs.std() if len(logs) > 1 else 0.0
        if not spread > ROUNDING:
            return cls(math.exp(mean), 0.0, math.inf)
        half = stats.t.ppf(0.975, len(logs) - 1) * spread / math.sqrt(len(logs))
        return cls(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


@cache
def step_times(one: Compared) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Log time of a training step by variant and seed, and whether the processor was the usual."""
    cells = one.rows.drop_duplicates("cell").set_index(["variant", "seed"])["processor"]
    usual = (cells == cells.mode().min()).unstack("seed")
    times = (one.whole or one).values("train_step_time_ms", "")
    return times.map(math.log), usual


def step_logs(one: Compared, name: str, other: str) -> "pd.Series[float]":
    """Logarithm of the ratio of two step times by seed, of cells on the most used processor."""
    logs, usual = step_times(one)
    if not {name, other} <= {*logs.index}:
        return pd.Series(dtype=float)
    gaps = (logs.loc[name] - logs.loc[other]).dropna()
    alike = usual.loc[name].eq(True) & usual.loc[other].eq(True)
    return gaps[gaps.index.isin(alike.index[alike])]


def cost_of(found: Sequence[Compared], name: str, other: str) -> Interval:
    """Step time over that of another; of several comparisons the mean over their common seeds."""
    logs = [these for one in found if len(these := step_logs(one, name, other))]
    if not logs:
        return Interval.of_ratio(pd.Series(dtype=float))
    common = pd.concat(logs, axis=1).dropna()
    assert len(common)
    return Interval.of_ratio(common.mean(axis=1))


@cache
def noise_of(run: str) -> float:
    """Twice the half-width of the cost of the A/A control, as a factor."""
    pack = pack_of(run)
    logs = [
        step_logs(one, name, pack.baseline)
        for one in pack.comparisons
        for name in one.order
        if pack.control(name) == "aa"
    ]
    found = Interval.of_ratio(pd.concat(logs) if logs else pd.Series(dtype=float))
    if not math.isfinite(found.high):
        return ASSUMED
    return 1 + max(0.01, 2 * max(abs(found.low - 1), abs(found.high - 1)))


def tied(one: Compared) -> list[str]:
    """Contenders of rank 1; where some are better than uniform attention, these alone."""
    first = [name for name in one.leading if name in one.contenders]
    return [name for name in first if one.beats(name, one.uniform)] or first


@cache
def on_the_longest(one: Compared) -> pd.DataFrame:
    """Scores on the longest inputs of the test, where training had none as long."""
    reach = one.about.get("trained_to")
    metric = one.metric.removeprefix("along_training_").removeprefix("beyond_training_")
    parts = {} if reach is None else one.parts(metric, "length")
    return parts[max(parts)] if parts and max(parts) > float(reach or 0) else pd.DataFrame()


def is_outdone(one: Compared, name: str, others: Sequence[str]) -> bool:
    """Whether another tied one is better, worse in no seed, and not shown to be the same."""
    margin = one.margin or 0.0
    for scores in (one.scores, on_the_longest(one)):
        for other in others:
            if other == name or not {name, other} <= {*scores.index}:
                continue
            gaps = (one.sign * (scores.loc[other] - scores.loc[name])).dropna().to_numpy(float)
            if len(gaps) < 2 or gaps.min() < 0 or gaps.max() == 0:
                continue
            size = scores.loc[[name, other]].abs().max().max()
            most = gaps.max()
            if gaps.std(ddof=1) > ROUNDING * size:
                half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / math.sqrt(len(gaps))
                most = max(abs(gaps.mean() - half), abs(gaps.mean() + half))
            if most > margin:
                return True
    return False


@dataclass(frozen=True)
class Use:
    """A use of attention in one run."""

    run: str
    title: str
    tests: tuple[Compared, ...]

    @cached_property
    def tied_on(self) -> dict[str, list[Compared]]:
        """Tests on which each variant is tied with the best."""
        telling = [t for t in self.tests if any(t.beats(n, t.uniform) for n in tied(t))]
        found: dict[str, list[Compared]] = {}
        for test in telling or self.tests:
            for name in tied(test):
                found.setdefault(name, []).append(test)
        return found

    def order(self, name: str) -> tuple[object, ...]:
        """What is chosen is least by the rule."""
        here, base = self.tied_on[name], pack_of(self.run).baseline
        beside = {id(test): [n for n, on in self.tied_on.items() if test in on] for test in here}
        cost = cost_of(here, name, base).estimate
        noise = noise_of(self.run)
        largest = largest_of(here, name)
        same = 1 / noise <= cost <= noise
        return (
            -sum(test.beats(name, test.base) for test in here),
            any(not beats_the_rest(test, name) for test in here),
            -len(here),
            -max(size_of(test) for test in here),
            any(is_outdone(test, name, beside[id(test)]) for test in here),
            1.0 if same else math.inf if math.isnan(cost) else cost,
            name != here[0].base,
            round(p_of(largest, name, largest.base), 3),
            here[0].parameters.get(name, math.inf),
            name,
        )

    @cached_property
    def variant(self) -> str:
        return min(self.tied_on, key=self.order, default="")

    @cached_property
    def test(self) -> Compared:
        here = self.tied_on.get(self.variant, self.tests)
        better = [test for test in here if test.beats(self.variant, test.base)]
        return largest_of(better or here, self.variant)

    @property
    def rule(self) -> str:
        """The mark of the last rule that was needed to tell the choice from the others."""
        mine, last = self.order(self.variant)[:RULES], 0
        for name in self.tied_on:
            other = self.order(name)[:RULES]
            differ = [at for at in range(RULES) if mine[at] != other[at]]
            last = max(last, differ[0] + 1 if differ else 0)
        return f"by rule {last}" if last else ""

    @property
    def is_open(self) -> bool:
        """Whether nothing is above uniform attention."""
        assert self.test.uniform is not None
        return not self.variant or not self.test.beats(self.variant, self.test.uniform)


def size_of(test: Compared) -> int:
    """Contenders on the whole test."""
    return len((test.whole or test).contenders)


def largest_of(tests: Sequence[Compared], name: str) -> Compared:
    """That with most contenders, and of these the one of which p is smallest."""

    def order(test: Compared) -> tuple[float, ...]:
        ps = (p_of(test, name, one) for one in (test.base, test.uniform))
        return (-size_of(test), *ps)

    return min(tests, key=order)


def p_of(test: Compared, name: str, other: str | None) -> float:
    found = test.p_better(name, other)
    return 2.0 if math.isnan(found) else found


@cache
def non_neural(test: Compared) -> tuple[str, "pd.Series[float]"] | None:
    """The best non-neural baseline on the whole test."""
    found = {} if test.part else test.pack.non_neural(test.task, test.metric)
    name = max(found, key=lambda one: test.sign * found[one].mean(), default=None)
    return None if name is None else (name, found[name])


def is_rule(test: Compared, best: tuple[str, "pd.Series[float]"]) -> bool:
    """Whether a non-neural baseline is the rule of the data, with the best possible score."""
    return best[0] == test.about.get("rule_baseline") and {*best[1]} == {test.about["ceiling"]}


def beats_the_rest(test: Compared, name: str) -> bool:
    """Whether every seed is above the best non-neural baseline, if there is one to beat."""
    best = non_neural(test)
    if best is None or is_rule(test, best):
        return True
    gaps = (test.sign * (test.scores.loc[name] - best[1])).dropna()
    return len(gaps) > 0 and bool((gaps > 0).all())


@cache
def uses() -> list[Use]:
    """In the order of the page, without those of which nothing is known."""
    found = []
    for at, run in enumerate(RUNS):
        pack, groups = pack_of(run), dict[str, list[Compared]]()
        for one in pack.comparisons:
            if one.decides:
                family = one.about["family"]
                title = family or pack.label(one.task)
                if family == "diagnostics":
                    title = f"diagnostic test {pack.label(one.task).partition('[')[0]}"
                groups.setdefault(title, []).append(one.separating)
        found += [(title, at, Use(run, title, tuple(tests))) for title, tests in groups.items()]
    found.sort(key=lambda one: one[:2])
    return [use for _, _, use in found if not use.is_open]


def is_diagnostic(use: Use) -> bool:
    return bool(use.test.about["family"] == "diagnostics")


def check(use: Use, row: Row) -> None:
    """Compare one row of the page."""
    test, name, pack = use.test, use.variant, pack_of(use.run)
    where = (use.title, use.run)
    label, base, uniform = pack.label, test.base, test.uniform
    assert name_of(row["Variant"]) == label(name), where
    assert name_of(row["Test"]).partition(" (")[0] == label(test.task), where
    count = len([n for n in test.contenders if n != base]) + 1
    about = f"1 of {len(use.tests)} tests, " if len(use.tests) > 1 else ""
    about += f"{count} variant{'s' if count > 1 else ''}"
    assert marks_of(row["Test"]) == [*filter(None, (test.part, about))], where
    marks = marks_of(row["Variant"])
    assert [one for one in marks if one.startswith("by rule")] == [*filter(None, [use.rule])], where
    scores = unescaped(row["Score"]).removeprefix(test.measure["title"])
    assert says(numbers(scores)[0], test.means[name]), where
    beaten = base if test.beats(name, base) else uniform
    check_reference(use, row, beaten if beaten in test.order else None)
    check_ties(use, row)
    best = non_neural(test)
    if best is None:
        assert row["Non-neural baseline"] == "—", where
    else:
        assert says(numbers(row["Non-neural baseline"])[0], best[1].mean()), where
        rule = ", the rule of the data, a ceiling" if is_rule(test, best) else ""
        assert f"({best[0]}{rule})" in unescaped(row["Non-neural baseline"]), where
    assert row["Seeds"] == str(test.seeds[name]), where
    check_cost(use, row["Cost of a step"])


def check_reference(use: Use, row: Row, beaten: str | None) -> None:
    """What it is better than, and how the baseline stands."""
    test, name, where = use.test, use.variant, (use.title, use.run)
    told, marks = name_of(row["Compared with"]), marks_of(row["Compared with"])
    if beaten is None:
        assert told == row["p"] == "—", where
        return
    assert told.endswith(f" of {test.pack.label(beaten)}"), where
    assert says(numbers(told)[0], test.means[beaten]), where
    assert says_p(row["p"], test.p_better(name, beaten)), where
    expected = reference_marks(test, name, beaten)
    if test.metric.startswith("along_training_") and not test.part:
        ended = Compared(test.pack, test.rows, metric=test.metric.removeprefix("along_training_"))
        ns = not (ended.beats(name, beaten) or ended.beats(beaten, name))
        expected.append("after training")
        assert marks[-1].endswith(", n.s.") == ns, where
        ends = marks[-1].split(" against ")
        assert says(numbers(ends[0])[0], ended.means[name]), where
        assert says(numbers(ends[1])[0], ended.means[beaten]), where
    assert len(marks) == len(expected), (where, marks, expected)
    for mark, start in zip(marks, expected, strict=True):
        assert mark.startswith(start), (where, marks, expected)


def reference_marks(test: Compared, name: str, beaten: str) -> list[str]:
    """How marks of the reference begin that do not say how both stand after training."""
    base, uniform = test.base, test.uniform
    expected = []
    if beaten == base:
        best = (name, *tied(test))
        if any(has_positions(test, one) for one in best) and not has_positions(test, base):
            expected.append("which has no positions")
        if uniform in test.order and not test.beats(base, uniform):
            expected.append("which is not above uniform attention")
        if test.margin is not None and abs(test.test.ahead(name, base)) < test.margin:
            expected.append("a difference below the margin of")
    elif base not in (None, name):
        worse = test.p_better(str(base), name) < LEVEL
        expected.append("worse than" if worse else "n.s. against")
    return expected


def has_positions(test: Compared, name: str) -> bool:
    """Whether the catalog or the selector says that a variant knows places."""
    known = test.pack.variants[name]
    made = any(one.startswith("position=") for one in known.get("made_of", "").split(", "))
    by_option = "position" in options(name)[1]
    return known["family"] == "position" or known.get("tells_places", False) or made or by_option


def check_ties(use: Use, row: Row) -> None:
    """How many others are tied with the best, one that is better or cheaper, and the rest."""
    cell = row["Tied with"]
    test, found, told = use.test, tied(use.test), name_of(cell)
    others = [name for name in found if name != use.variant]
    where = (use.title, use.run, cell, found)
    check_left_out(test, found, marks_of(cell))
    if not others:
        assert told == "—", where
        return
    printed = numbers(unescaped(row["Score"]).removeprefix(test.measure["title"]))[0]
    name, costs = name_beside(use, others, printed)
    left = [test.pack.label(other) for other in others]
    if name:
        assert told.startswith(f"{test.pack.label(name)} ("), where
        score = told.removeprefix(f"{test.pack.label(name)} (")
        assert says(numbers(score)[0], test.means[name]), where
        fewer = len(use.tied_on[name]) < len(use.tied_on[use.variant]) and not costs
        assert ("which costs more" in told) == (costs == "more"), where
        assert ("which costs less" in told) == (costs == "less"), where
        assert ("on fewer tests" in told) == fewer, where
        left.remove(test.pack.label(name))
        told = told.rpartition(")")[2].removeprefix(", ").removeprefix(" and ")
    if left and len(others) > MOST_TIED:
        assert told == f"{len(left)} other{'s' if len(left) > 1 else ''}", where
    else:
        assert told.replace(" and ", ", ").split(", ") == (left or [""]), where


def name_beside(use: Use, others: Sequence[str], printed: str) -> tuple[str, str]:
    """The tied variant that a row names, and whether it costs more or less than the choice.

    A better mean is named unless the printed score of the choice is that of it as well.
    """
    test, noise = use.test, noise_of(use.run)
    costs = {name: cost_of([test], name, use.variant) for name in others}
    first = tied(test)[0]
    if first != use.variant and not says(printed, test.means[first]):
        return first, "more" if costs[first].low > noise else ""
    less = [name for name, cost in costs.items() if cost.high < 1 / noise]
    return min(less, key=lambda name: costs[name].estimate, default=""), "less" if less else ""


def check_left_out(test: Compared, found: Sequence[str], marks: Sequence[str]) -> None:
    """What has rank 1 and is not above uniform attention."""
    first = [name for name in test.leading if name in test.contenders]
    left = [name for name in first if name not in found]
    if not left:
        assert not marks, (test.task, marks)
        return
    (mark,) = marks
    assert mark.endswith("not significantly above uniform attention"), mark
    best = first[0] == left[0]
    count = len(left) - best
    assert mark.startswith(f"{test.pack.label(left[0])} (" if best else f"{count} more"), mark
    assert not count or f"{count} more" in mark, mark


def check_cost(use: Use, told: str) -> None:
    """Whether a step costs what one of the baseline does."""
    base, where = str(use.test.base), (use.title, use.run, told)
    if use.variant == base:
        assert told == "the baseline", where
        return
    text, marks = name_of(told), marks_of(told)
    found = cost_of([use.test], use.variant, base)
    if math.isnan(found.estimate):
        found = cost_of(use.tests, use.variant, base)
        assert marks == ["on other tasks"] or math.isnan(found.estimate), where
    else:
        assert not marks, where
    if math.isnan(found.estimate):
        assert text == "—", where
        return
    noise = noise_of(use.run)
    if 1 / noise <= found.low and found.high <= noise:
        assert text == "about the same", where
        return
    differs = found.high < 1 / noise or found.low > noise
    assert text.startswith("unclear, ") != differs, where
    shown = numbers(text.replace("×", "").replace("–", " "))
    assert says(shown[0], found.estimate), where
    for number, bound in zip(shown[1:], (found.low, found.high), strict=False):
        assert says(number, bound), where


@pytest.mark.parametrize("at", [0, 1], ids=("uses of attention", "diagnostic tests"))
def test_the_page_of_choices_is_that_of_other_code(at: int) -> None:
    printed = tables(PAGES / "README.md", "Tied with")
    assert [one.heading for one in printed] == ["Uses of attention", "Diagnostic tests"]
    expected = [use for use in uses() if is_diagnostic(use) == bool(at)]
    rows = printed[at].rows
    assert [name_of(row["Run"]) for row in rows] == [use.run for use in expected]
    title = ""
    for use, row in zip(expected, rows, strict=True):
        assert (unescaped(row["Use"]) == "") == (use.title == title)
        title = use.title
        assert unescaped(row["Use"]).lower() in ("", title.lower())
        check(use, row)
