"""The evidence for a choice in words: against what it was measured, and what else is as good."""

from statistics import fmean

from reports.blocks import clean
from reports.catalog import uncapitalized
from reports.needs import Need, tied_with_best
from reports.numbers import counted, p_text, plain
from reports.positions import has_positions
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.steps_to_threshold import STEPS
from reports.training_cost import differs, relative_cost


def evidence_text(need: Need) -> str:
    """Score of the chosen variant, what it was compared with, and what is tied with it."""
    if not need.variant:
        return "no variant has learned the task"
    parts = [_nothing_yet(need) if need.is_open else _compared(need)]
    parts += [part for part in (_non_neural(need), _ties(need)) if part]
    return "; ".join(parts)


def lacks_positions(need: Need) -> bool:
    """Whether the choice has positions of its own and the baseline has none."""
    catalog, base = need.evidence.catalog, need.evidence.baseline
    known = base is not None and has_positions(catalog, need.variant)
    return known and not has_positions(catalog, base or "")


def stands_for(comparison: Comparison) -> str:
    """The test behind a choice, in words: the task, whether it is generated, and what it asks."""
    known = comparison.catalog
    task = known.task_label(comparison.task)
    title = clean(known.task(comparison.task).title)
    kind = "generated test " if known.is_generated(comparison.task) else ""
    return f"{kind}{task}, “{title}”" if title else f"{kind}{task}"


def _nothing_yet(need: Need) -> str:
    comparison, uniform = need.evidence, need.evidence.uniform_baseline or ""
    label = comparison.catalog.label(uniform)
    seeds = counted(comparison.most_seeds, "seed")
    if uniform not in comparison.compared:
        return f"no variant is significantly above {label}, {seeds}"
    score = comparison.short_score(uniform)
    title = uncapitalized(comparison.ranked_by.title)
    told = f"no variant is significantly above {label}, which has {title} {score}, {seeds}"
    found = comparison.primary.items()
    worse = sum(one.reference == uniform and made.outcome == "worse" for one, made in found)
    count = len(comparison.contenders)
    return f"{told}; {worse} of {count} variants are significantly worse" if worse else told


def _compared(need: Need) -> str:
    comparison, variant = need.evidence, need.variant
    mine = _measured(comparison, variant)
    base, uniform = comparison.baseline, comparison.uniform_baseline
    if need.beats_baseline and base:
        without = ", which has no positions" if lacks_positions(need) else ""
        p = p_text(need.p_baseline)
        seeds = _seeds(comparison, variant, base)
        return f"{mine} against {_reference(comparison, base)}{without}, {seeds}, {p}"
    tied = "" if variant == base or not base else f", n.s. against {_reference(comparison, base)}"
    seeds = counted(comparison.asked_seeds(variant), "seed")
    if need.beats_uniform and uniform:
        if uniform not in comparison.compared:
            return f"{mine}, not reached by {comparison.catalog.label(uniform)}, {seeds}{tied}"
        p = p_text(comparison.p_better(variant, uniform))
        seeds = _seeds(comparison, variant, uniform)
        return f"{mine} against {_reference(comparison, uniform)}, {seeds}, {p}{tied}"
    return f"{mine}, {seeds}{tied}"


def _seeds(comparison: Comparison, variant: str, other: str) -> str:
    """The seeds that both have; where one has more, what the test of pairs saw of them."""
    counts = [len(comparison.scores.get(name, ())) for name in (variant, other)]
    gaps = comparison.differences(variant, other)
    if len({*counts, len(gaps)}) == 1 or not gaps:
        return counted(comparison.asked_seeds(variant), "seed")
    return (
        f"{counts[0]} and {counts[1]} seeds; difference {plain(fmean(gaps))} on the "
        f"{len(gaps)} that both have"
    )


def _non_neural(need: Need) -> str:
    """The best non-neural baseline."""
    comparison = need.evidence
    if not comparison.without:
        return ""
    name, by_seed = next(iter(comparison.without.items()))
    return f"the non-neural baseline “{name}” gives {plain(fmean(by_seed.values()))}"


def _ties(need: Need) -> str:
    """How many others are as good, and why one with a better mean was not chosen."""
    tied = [] if need.is_open else tied_with_best(need.evidence)
    others = [name for name in tied if name != need.variant]
    if not others:
        return ""
    first, comparison = tied[0], need.evidence
    better = first != need.variant and comparison.short_score(first) != comparison.short_score(
        need.variant
    )
    if not better:
        return f"tied with {counted(len(others), 'other')}"
    told = f"tied with {_better(need, first)}"
    return f"{told} and {counted(len(others) - 1, 'other')}" if len(others) > 1 else told


def _better(need: Need, name: str) -> str:
    """A variant with a better mean that was not chosen, and why."""
    comparison = need.evidence
    told = f"{comparison.catalog.label(name)} ({comparison.short_score(name)}"
    cost = relative_cost([comparison], name, need.variant)
    if differs(cost, need.noise) and cost.estimate > 1:
        return f"{told}, which costs more)"
    if len(need.candidates[name]) < len(need.candidates[need.variant]):
        return f"{told}, which is among the best on fewer tests)"
    return f"{told})"


def _measured(comparison: Comparison, variant: str) -> str:
    """The score of a variant with its metric, as `accuracy 0.9` or `200 steps to accuracy 0.99`."""
    title, score = comparison.ranked_by.title, comparison.short_score(variant)
    if comparison.metric == STEPS:
        return f"{score} {uncapitalized(title)}"
    return f"{title} {score}"


def _reference(comparison: Comparison, name: str) -> str:
    return f"{comparison.short_score(name)} of {comparison.catalog.label(name)}"
