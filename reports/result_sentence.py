"""The first sentences of a report: what is better than the baseline, and what is not decided."""

import math
from collections.abc import Sequence

from bench.api.headline import is_made
from reports.catalog import capitalized, uncapitalized
from reports.evidence import after_training, equal_by_rules, small_difference
from reports.folder import RunFolder
from reports.needs import Need, divided, needs, often_tied, overall_cost
from reports.numbers import counted
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.verdicts import planned, why_untested
from reports.tested import kinds_without_evidence
from reports.training_cost import in_order

MOST_NAMED = 3
"""Needs that the sentence names."""
MOST_TIED = 2
"""Variants tied with the best that the sentence names; a rest of one is named, too."""
FEW_SEEDS = 5
"""From as many seeds on the sentence does not count them."""


def headline(folder: RunFolder) -> str:
    """One sentence that says what the run shows, made by rule."""
    if not folder.catalog.ranks:
        return (
            f"The preset “{folder.catalog.preset}” shows that everything works. Its budget is too "
            "small to choose a variant."
        )
    found = needs(folder)
    return _result(folder, found) if found else _nothing_to_choose(folder.comparisons)


def _nothing_to_choose(comparisons: Sequence[Comparison]) -> str:
    """Why a run that ranks has no choice at all."""
    ranked = [one for one in comparisons if one.ranking]
    if not ranked:
        return "There is no score that could choose a variant."
    kinds = [f"{kind}s" for kind in kinds_without_evidence(ranked)]
    asked = [one for one in ranked if one.was_to_decide]
    if not asked:
        told = " or ".join(kinds)
        return f"There is nothing to choose, because all comparisons with scores are {told}."
    if all(comparison.most_seeds < 2 for comparison in asked):
        return "One seed each cannot show a significant difference; run more seeds to choose."
    none = f"{capitalized(' and '.join(kinds))} aside, no" if kinds else "No"
    return (
        f"{none} comparison has two variants with several seeds, so there is nothing to choose "
        "between."
    )


def _result(folder: RunFolder, found: Sequence[Need]) -> str:
    base = folder.catalog.label(folder.catalog.baseline) if folder.catalog.baseline else ""
    decided, clear, open_ = divided(found)
    # a rest of one is named, too, which takes no more room than to say that it is left out
    shown = decided if len(decided) <= MOST_NAMED + 1 else decided[:MOST_NAMED]
    parts = [_named(need) for need in shown]
    if len(shown) < len(decided):
        parts.append(f"those for {len(decided) - len(shown)} more uses")
    are = "One choice is" if len(decided) == 1 else f"{len(decided)} choices are"
    told = [
        f"{are} significantly better than {base}: {join(parts)}." if decided else "",
        "" if decided else _none_better(found),
        _tied(clear, other=bool(decided)),
        _nothing_yet(open_),
        _nothing_known_of_learning(folder),
    ]
    return " ".join(part for part in told if part)


def _none_better(found: Sequence[Need]) -> str:
    """What the tests against the baseline say where no choice is better than it."""
    wholes = [one.whole for need in found for one in need.comparisons]
    known = wholes[0].catalog
    base = known.label(known.baseline) if known.baseline else "a baseline"
    if all(map(why_untested, wholes)):
        return f"Nothing is tested against {base}: {_reasons(wholes)}."
    better = [one for need in found for one in need.comparisons if _better_by_plan(one)]
    if not better:
        return f"No variant is significantly better than {base}."
    shown = better if len(better) <= MOST_NAMED + 1 else better[:MOST_NAMED]
    told = [_who_is_better(one, base) for one in shown]
    if len(shown) < len(better):
        rest = len(better) - len(shown)
        told.append(f"On {rest} more tests a variant is significantly better than {base}.")
    return " ".join(told)


def _reasons(wholes: Sequence[Comparison]) -> str:
    """Why nothing is tested against the baseline; with the tasks where reasons differ."""
    tasks: dict[str, list[str]] = {}
    for one in wholes:
        tasks.setdefault(why_untested(one), []).append(one.catalog.task_label(one.task))
    if len(tasks) == 1:
        return next(iter(tasks))
    return "; ".join(f"{why} on {join([*dict.fromkeys(on)])}" for why, on in tasks.items())


def _better_by_plan(comparison: Comparison) -> list[str]:
    """Contenders that are better than the baseline by the planned tests."""
    found, base = comparison.whole.primary.items(), comparison.whole.baseline
    return [
        asked.variant for asked, one in found if asked.reference == base and one.outcome == "better"
    ]


def _who_is_better(comparison: Comparison, base: str) -> str:
    """Who is better than the baseline and yet no choice, and what the baseline is worth."""
    known, whole = comparison.catalog, comparison.whole
    names = [known.label(name) for name in _better_by_plan(comparison)]
    are = "is" if len(names) == 1 else "are"
    on = f"{'' if whole is comparison else 'the whole test of '}{known.task_label(whole.task)}"
    told = f"On {on} {join(names, MOST_NAMED)} {are} significantly better than {base}"
    against = planned(whole, whole.baseline or "", whole.uniform_baseline)
    if against is None or against.outcome == "better":
        return f"{told}."
    below = "significantly below" if against.outcome == "worse" else "not significantly above"
    return f"{told}, which is itself {below} uniform attention."


def _named(need: Need) -> str:
    """A variant, the test of which it is the choice, and the two scores."""
    comparison = need.evidence
    catalog, base = comparison.catalog, comparison.baseline or ""
    told = f"{catalog.label(need.variant)} on {catalog.task_label(comparison.task)}"
    scores = f"{comparison.short_score(need.variant)} against {comparison.short_score(base)}"
    lacks = need.baseline_lacks_positions
    without = f" of {catalog.label(base)} without positions" if lacks else ""
    small = "".join(f"; {one}" for one in small_difference(comparison, need.variant, base))
    few = f", {comparison.most_seeds} seeds" if comparison.most_seeds < FEW_SEEDS else ""
    ended = "".join(f"; {one}" for one in after_training(comparison, need.variant, base))
    alike = "".join(f"; {one}" for one in equal_by_rules(need))
    title = uncapitalized(comparison.ranked_by.title)
    return f"{told} ({title} {scores}{without}{few}{small}{ended}{alike})"


def _nothing_yet(found: Sequence[Need]) -> str:
    """The uses in which no variant is above uniform attention, or nothing is decided."""
    below = [need for need in found if need.evidence.uniform_baseline is not None]
    parts = []
    if below:
        names = join([uncapitalized(need.title) for need in below], MOST_NAMED)
        longer = all(is_made(need.evidence.metric, "beyond_training") for need in below)
        where = ", on inputs longer than those of training" if longer else ""
        parts.append(f"No variant is significantly above uniform attention for {names}{where}.")
        if len(below) == 1:
            parts += _above_in_every_seed(below[0].evidence)
    if rest := [uncapitalized(need.title) for need in found if need not in below]:
        parts.append(f"Nothing is decided for {join(rest, MOST_NAMED)}.")
    return " ".join(parts)


def _above_in_every_seed(comparison: Comparison) -> list[str]:
    """Contenders whose every seed is above uniform attention, though the test does not say so."""
    uniform = comparison.uniform_baseline or ""
    # it has no steps to a threshold that it never reached
    shown = comparison if uniform in comparison.compared else comparison.whole
    above = shown.above_every_seed(uniform)
    names = [shown.catalog.label(name) for name in shown.contenders if name in above]
    if not names:
        return []
    are = "is" if len(names) == 1 else "are"
    return [f"In every seed {join(names, MOST_NAMED)} {are} above it."]


def _nothing_known_of_learning(folder: RunFolder) -> str:
    """Say so where no comparison tells whether attention does more than average."""
    if any(comparison.uniform_baseline is not None for comparison in folder.comparisons):
        return ""
    return "Uniform attention was not run, so nothing says whether the attention learned anything."


def _with_scores(comparison: Comparison, names: Sequence[str]) -> list[str]:
    """Names with what they score; the first one with the metric."""
    title = uncapitalized(comparison.ranked_by.title)
    return [
        f"{comparison.catalog.label(name)} ({'' if at else f'{title} '}"
        f"{comparison.short_score(name)})"
        for at, name in enumerate(names)
    ]


def _tied(found: Sequence[Need], *, other: bool = False) -> str:
    """What is tied with the best where nothing is better than the baseline."""
    if not found:
        return ""
    where = f"In the {'other ' if other else ''}{len(found)} uses at this size"
    if len(found) == 1:
        where = f"For {uncapitalized(found[0].title)} at this size"
    often = often_tied(found)
    if not often:
        return f"{where} no variant is tied with the best in half of them."
    # what is tied everywhere stands without what is not, and is counted
    everywhere = [name for name, count in often if count == len(found)]
    alone = found[0].evidence if len(found) == 1 and len(found[0].comparisons) == 1 else None
    if alone is not None:
        everywhere.sort(key=[*alone.compared].index)  # by their means, after the choice
        everywhere.sort(key=lambda name: name != found[0].variant)
    most = MOST_TIED + 1 if len(everywhere) == MOST_TIED + 1 else MOST_TIED
    named = everywhere[:most] or [name for name, _ in often[:MOST_TIED]]
    rest = len(everywhere[most:])
    label = found[0].evidence.catalog.label
    shown = [*map(label, named)] if alone is None else _with_scores(alone, named)
    names = join([*shown, *([counted(rest, "other")] if rest else [])])
    are = "is" if len(named) == 1 else "are"
    told = f"{where} {names} {are} {'' if everywhere else 'most often '}tied with the best"
    if alone is not None and alone.uniform_baseline in alone.compared:
        uniform = alone.uniform_baseline
        told += f", against {alone.short_score(uniform)} of {label(uniform)}"
    return f"{told}.{_cheapest(found, named, all_named=not rest)}"


def _cheapest(found: Sequence[Need], named: Sequence[str], *, all_named: bool) -> str:
    """Which of some tied variants costs least; empty where one is unknown or all are alike."""
    costs = {name: in_order(overall_cost(found, name), found[0].noise) for name in named}
    known = all(map(math.isfinite, costs.values()))
    shown = [f"{cost:.2g}" for cost in costs.values()]
    if not known or shown.count(min(shown, key=float)) > 1 or len(shown) < 2:
        return ""
    label = found[0].evidence.catalog.label
    cheap = label(min(named, key=costs.__getitem__))
    count, least = ("two", "cheaper") if len(named) == 2 else ("three", "cheapest")
    return f" Of the {'' if all_named else 'first '}{count}, {cheap} is the {least}."
