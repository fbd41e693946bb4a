"""What published pages say over all tasks, computed again from rows by pandas and SciPy alone.

Estimates are compared to the last printed digit. Bounds of bootstrap intervals depend on draws, so
they are drawn again by other code: the share of new draws beyond a printed bound must be 2.5% but
for `ERRORS` standard errors of the numbers of draws.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import pytest
from moderated_again import Array
from printed_tables import name_of, numbers, says, says_p, tables, unescaped
from recomputed import PAGES, RANKED, Compared, Pack, pack_of
from scipy import stats

from reports.folder import read_folder
from reports.profiles import RESAMPLES, _curve, _sharing

LEAST_TASKS, LEAST_USES, LEAST_DIFFERING = 3, 3, 6
ERRORS = 4.0
DRAWS, NEW_DRAWS = 1000, 4000
"""Of the intervals of a table, and of those that they are compared with."""
TABLE = "Mean rank"


def use_of(one: Compared) -> str:
    return str(one.about.get("counts_with") or one.about["family"] or one.task)


def by_use(found: Sequence[Compared]) -> list[list[Compared]]:
    uses = dict.fromkeys(map(use_of, found))
    return [[one for one in found if use_of(one) == use] for use in uses]


def over_uses(found: Sequence[Compared], value: Callable[[Compared], float]) -> float:
    """Mean over uses of the mean over the comparisons of each."""
    return float(np.mean([np.mean([value(one) for one in group]) for group in by_use(found)]))


def shared(pack: Pack) -> dict[str, list[Compared]]:
    """Comparisons beside the baseline of each variant that has them in enough tasks."""
    found: dict[str, list[Compared]] = {}
    for one in pack.comparisons:
        if one.decides and one.base:
            for name in one.order:
                if name != one.base:
                    found.setdefault(name, []).append(one)
    return {n: those for n, those in found.items() if len({x.task for x in those}) >= LEAST_TASKS}


def place(name: str, one: Compared) -> float:
    """From 1; equal means share the mean of their places."""
    means = -one.sign * one.means[one.order]
    return float(means.rank(method="average")[name])


def ahead(one: Compared, name: str, other: str) -> int:
    """Whose mean is better, rounding aside."""
    mine, theirs = one.means[name], one.means[other]
    if np.isclose(mine, theirs, rtol=1e-9, atol=1e-12):
        return 0
    return int(np.sign(one.sign * (mine - theirs)))


def check_against(
    found: Sequence[Compared], name: str, others: Sequence[str | None], told: str, tested: str
) -> None:
    """Uses won, tied and lost, and the sign test over uses."""
    pairs = [
        (one, other)
        for one, other in zip(found, others, strict=True)
        if other in one.order and other != name
    ]
    if not pairs:
        assert (told, tested) == ("—", "—")
        return
    uses = [use_of(one) for one, _ in pairs]
    decided = [
        int(one.beats(name, other)) - int(one.beats(str(other), name)) for one, other in pairs
    ]
    net = np.sign(pd.Series(decided).groupby(uses).sum())
    assert told == f"{sum(net > 0)}–{sum(net == 0)}–{sum(net < 0)}", name
    leads = pd.Series([ahead(one, name, str(other)) for one, other in pairs])
    signs = np.sign(leads.groupby(uses).sum())
    better, differing = int((signs > 0).sum()), int((signs != 0).sum())
    if differing < LEAST_DIFFERING:
        assert tested == "—", name
        return
    shown, _, p = tested.partition(", ")
    assert shown == f"{better} of {differing}", name
    assert says_p(p, stats.binomtest(better, differing).pvalue), name


def share(mine: Array, theirs: Array) -> float:
    """Share of pairs of runs of which the first is better; equal ones count half."""
    high = stats.mannwhitneyu(mine, theirs, method="asymptotic").statistic
    return float(high / (len(mine) * len(theirs)))


def runs(one: Compared, name: str) -> Array:
    return (one.sign * one.scores.loc[name].dropna()).to_numpy(float)


def check_improvement(found: Sequence[Compared], name: str, base: str, told: str) -> None:
    """P(better), with bounds of a bootstrap over uses and over the seeds of each task."""
    estimate = over_uses(found, lambda one: share(runs(one, name), runs(one, base)))
    shown, uses = numbers(told), by_use(found)
    assert says(shown[0], estimate), (name, told, estimate)
    if len(uses) < LEAST_USES:
        assert told.endswith(f"({len(uses)} use{'s' if len(uses) > 1 else ''})"), name
        return
    rng, of_use = np.random.default_rng(0), []
    for group in uses:
        drawn = []
        for one in group:
            mine, theirs = runs(one, name), runs(one, base)
            first = rng.choice(mine, (NEW_DRAWS, len(mine), 1))
            second = rng.choice(theirs, (NEW_DRAWS, 1, len(theirs)))
            drawn.append((np.sign(first - second).mean(axis=(1, 2)) + 1) / 2)
        of_use.append(np.mean(drawn, axis=0))
    chosen = rng.integers(len(uses), size=(len(uses), NEW_DRAWS))
    check_bounds(told, np.take_along_axis(np.array(of_use), chosen, axis=0).mean(axis=0), name)


def check_bounds(told: str, drawn: Array, name: str) -> None:
    """Printed bounds leave away 2.5% of new draws on each side, but for rounding."""
    shown = numbers(told)
    unit = max(10.0 ** -len(one.partition(".")[2]) for one in shown)
    estimate, *rest = map(float, shown)
    low, high = rest if "[" in told else (estimate - rest[0], estimate + rest[0])
    for bound, sign in ((low, 1), (high, -1)):
        # two roundings of a symmetric interval, which may be lopsided by a fiftieth
        loose = unit + (0.0 if "[" in told else 0.02 * rest[0])
        check_share(sign * bound, sign * drawn, loose, DRAWS, (name, told))


def check_share(low: float, drawn: Array, loose: float, draws: int, where: object) -> None:
    """Whether a bound may be the 2.5% quantile, found by fewer draws."""
    error = ERRORS * np.sqrt(0.025 * 0.975 * (1 / draws + 1 / len(drawn)))
    below, up_to = np.mean(drawn < low - loose), np.mean(drawn <= low + loose)
    assert below <= 0.025 + error, where
    assert up_to >= max(0.025 - error, 1 / len(drawn)), where


def on_a_scale(one: Compared) -> bool:
    """Whether a best possible score is known, more than 5% of the range from uniform attention."""
    ceiling = one.about["ceiling"]
    if ceiling is None or one.uniform not in one.scores.index:
        return False
    low, high = one.limits
    return bool(abs(ceiling - one.means[str(one.uniform)]) > 0.05 * (high - low))


def scaled(one: Compared, name: str) -> "pd.Series[float]":
    """Scores by seed, where 0 is uniform attention and 1 the best possible score."""
    zero, ceiling = one.means[str(one.uniform)], one.about["ceiling"]
    return (one.scores.loc[name].dropna() - zero) / (ceiling - zero)


def runs_of_uses(found: Sequence[Compared], name: str) -> list[Array]:
    """Runs of each use: seed by seed the mean over its tasks, as many as every use has."""
    uses = []
    for group in by_use(found):
        seeds = pd.concat([scaled(one, name) for one in group], axis=1).dropna().sort_index()
        assert len(seeds)
        uses.append(seeds.mean(axis=1).to_numpy(float))
    fewest = min(map(len, uses))
    return [values[:fewest] for values in uses]


def check_middle(found: Sequence[Compared], name: str, base: str, told: Sequence[str]) -> None:
    """Interquartile means of a variant and of the baseline, and of how many they are."""
    known = [one for one in found if on_a_scale(one)]
    if len(known) < LEAST_TASKS:
        assert [*told] == ["—"] * 3, name
        return
    mine, theirs = (runs_of_uses(known, one) for one in (name, base))
    estimate = stats.trim_mean(np.concatenate(mine), 0.25)
    assert says(numbers(told[0])[0], estimate), (name, told)
    assert says(told[1], stats.trim_mean(np.concatenate(theirs), 0.25)), (name, told)
    count = len(by_use(known))
    assert told[2] == f"{len(known)} of {count} use{'s' if count > 1 else ''}", name
    rng = np.random.default_rng(0)
    drawn = [rng.choice(values, (NEW_DRAWS, len(values))) for values in mine]
    check_bounds(told[0], stats.trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=1), name)


@pytest.mark.parametrize("name", ["families", "modern"])
def test_the_table_over_all_tasks_is_that_of_other_code(name: str) -> None:
    pack = pack_of(name)
    (table,) = tables(PAGES / name / "report.md", TABLE)
    found, base = shared(pack), pack.baseline
    rows = {name_of(row["Variant"]): row for row in table.rows}
    assert rows.keys() == {pack.label(variant) for variant in found}
    against, uniform = f"Against {base}", "Against uniform"
    tested = [head for head in table.heads if head.startswith("Sign test")]
    for variant, those in found.items():
        row = rows[pack.label(variant)]
        assert row["Comparisons"] == str(len(those)), variant
        mean, of = row[TABLE].split(" of ")
        assert says(mean, over_uses(those, partial(place, variant))), variant
        assert says(of, over_uses(those, lambda one: float(len(one.order)))), variant
        test = [unescaped(row[head]) for head in tested] or ["—", "—"]
        check_against(those, variant, [one.base for one in those], row[against], test[0])
        check_against(those, variant, [one.uniform for one in those], row[uniform], test[1])
        check_improvement(those, variant, base, unescaped(row["P(better)"]))
        middle = ("Interquartile mean", "Interquartile mean (2)", "Comparisons (2)")
        check_middle(those, variant, base, [unescaped(row[head]) for head in middle])


@pytest.mark.parametrize("name", [one for one in RANKED if one not in ("families", "modern")])
def test_there_is_no_such_table_where_too_few_took_part(name: str) -> None:
    pack = pack_of(name)
    page = unescaped((PAGES / name / "report.md").read_text(encoding="utf-8"))
    contenders = [one for one in shared(pack) if pack.control(one) is None]
    assert len(contenders) < 3
    assert not tables(PAGES / name / "report.md", TABLE)
    said = re.search(r"no summary over all tasks: (.*) took part in at least 3 tasks", page)
    enough = len({one.task for one in pack.comparisons if one.decides}) >= LEAST_TASKS
    assert bool(said) == enough
    if said:
        count = re.search(r"\d+", said[1])
        assert int(count[0] if count else 0) == len(contenders)


def sharing(known: Sequence[Compared], base: str) -> tuple[list[str], list[Compared]]:
    """One variant after another with most tasks beside those before it: six, of five tasks."""
    shown, tasks = [base], [one for one in known if base in one.order]
    while len(shown) < 6:
        counts = pd.Series([name for one in tasks for name in one.order]).value_counts()
        counts = counts.drop(shown)
        if counts.max() < 5:
            break
        shown.append(min(counts.index[counts == counts.max()]))
        tasks = [one for one in tasks if shown[-1] in one.order]
    return shown, tasks


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick", "families", "modern"])
def test_performance_profiles_are_those_of_other_code(name: str) -> None:
    pack, folder = pack_of(name), read_folder(pack_of(name).path)
    known = [one for one in pack.comparisons if one.decides and on_a_scale(one)]
    cells = {frozenset(one.rows["cell"]): one for one in known}
    stored = [one for one in folder.comparisons if frozenset(one.frame["cell"]) in cells]
    shown, tasks = _sharing(stored, pack.baseline)
    again = [cells[frozenset(one.frame["cell"])] for one in tasks]
    assert (shown, again) == sharing(known, pack.baseline)
    page = unescaped((PAGES / name / "details.md").read_text(encoding="utf-8"))
    said = re.search(
        r"too narrow with few seeds(?:; gray lines have none)?\. Tasks: (.*)\.\n", page
    )
    assert said is not None
    assert said[1] == "; ".join(one.title for one in tasks)
    rng = np.random.default_rng(0)
    for variant in shown:
        curve = _curve(tasks, variant)
        levels = np.array(curve.x)
        drawn = []
        exact = []
        for group in by_use(again):
            runs_of = [scaled(one, variant).to_numpy(float) for one in group]
            exact.append(np.mean([(one[:, None] > levels).mean(axis=0) for one in runs_of], axis=0))
            of_tasks = [rng.choice(one, (NEW_DRAWS // 2, len(one))) for one in runs_of]
            above = [(one[:, :, None] > levels).mean(axis=1) for one in of_tasks]
            drawn.append(np.mean(above, axis=0))
        assert curve.y == pytest.approx(np.mean(exact, axis=0), abs=1e-12), variant
        again_drawn = np.mean(drawn, axis=0)
        for at, level in enumerate(levels):
            where = (variant, level)
            check_share(curve.low[at], again_drawn[:, at], 1e-9, RESAMPLES, where)
            check_share(-curve.high[at], -again_drawn[:, at], 1e-9, RESAMPLES, where)
