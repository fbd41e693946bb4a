"""The evidence for a choice: against what it was measured, and what is tied with the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.blocks import clean
from reports.catalog import uncapitalized
from reports.needs import Need, first_rank, tied_with_best
from reports.numbers import counted, p_text, plain
from reports.prose import join
from reports.ranked_table.comparison import LEVEL, Comparison
from reports.ranked_table.headline import at_the_end
from reports.ranked_table.marks import RULE_MARK
from reports.ranked_table.steps_to_threshold import STEPS, resolution
from reports.ranked_table.verdicts import why_untested
from reports.training_cost import differs, relative_cost

NOTHING_DECIDED = "nothing is decided"
MOST_TIED = 4
"""Tied variants that a cell names; more are counted."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The numbers behind a choice, one a column; empty where there is none."""

    score: str
    """Of the variant, with its metric."""
    against: str
    """Score of the baseline, or of uniform attention where the baseline is not beaten."""
    marks: tuple[str, ...] = ()
    """What the reference lacks or has not learned, whether the difference is below the margin,
    how the baseline stands where it is not the reference, and how both stand after training where
    an area along training is ranked. Where nothing is chosen, how many are worse."""
    p: float = math.nan
    """Of no difference to the reference; NaN where nothing was tested."""
    seeds: str
    """Of the variant and of the reference."""
    gap: str = ""
    """The mean difference on common seeds, where the two have different numbers of seeds."""
    non_neural: str
    """The best non-neural baseline."""
    tied: str
    """What is tied with the best."""
    unproved: tuple[str, ...] = ()
    """What has the same rank and is left out: nothing shows it to be above uniform attention."""


def evidence_of(need: Need) -> Evidence:
    """The numbers behind a choice, or behind the sentence that there is none yet."""
    comparison, variant = need.evidence, need.variant
    if need.is_open or not variant:
        return _evidence_of_nothing(need)
    beaten = _beaten(need)
    seeds, gap = _seeds(comparison, variant, beaten or variant)
    return Evidence(
        score=_measured(comparison, variant),
        against=_reference(comparison, beaten) if beaten else "",
        marks=_marks(need, beaten),
        p=comparison.p_better(variant, beaten) if beaten else math.nan,
        seeds=seeds,
        gap=gap,
        non_neural=_non_neural(need),
        tied=_ties(need),
        unproved=_unproved(need),
    )


def _evidence_of_nothing(need: Need) -> Evidence:
    """What there is where nothing is chosen: the level of uniform attention."""
    comparison, uniform = need.evidence, need.evidence.uniform_baseline
    known = uniform if uniform in comparison.compared else None
    return Evidence(
        score="",
        against=_reference(comparison, known) if known else "",
        marks=_worse_than_uniform(comparison),
        seeds=str(comparison.most_seeds),
        non_neural=_non_neural(need),
        tied="",
    )


def _beaten(need: Need) -> str | None:
    """The reference that the choice is better than: the baseline, or else uniform attention."""
    comparison = need.evidence
    if need.beats_baseline:
        found = comparison.baseline
    else:
        found = comparison.uniform_baseline if need.beats_uniform else None
    return found if found in comparison.compared else None


def _marks(need: Need, beaten: str | None) -> tuple[str, ...]:
    """What has to be known of the reference, and of the baseline where that is another one."""
    comparison, variant = need.evidence, need.variant
    base = comparison.baseline
    marks = []
    if need.beats_baseline:
        marks += [*about_baseline(need), *small_difference(comparison, variant, base or "")]
    elif base and base not in (variant, beaten):
        marks.append(_beside_baseline(comparison, variant, base))
    marks += after_training(comparison, variant, beaten) if beaten else []
    return tuple(marks)


def about_baseline(need: Need) -> list[str]:
    """What has to be known of a baseline that the choice is better than."""
    marks = ["which has no positions"] if need.baseline_lacks_positions else []
    return marks + (["which is not above uniform attention"] if need.baseline_is_uniform else [])


def _beside_baseline(comparison: Comparison, variant: str, base: str) -> str:
    """How a choice compares with the baseline that it is not better than."""
    reference = _reference(comparison, base)
    if base not in comparison.compared:
        return f"not tested against {reference}, for {why_untested(comparison)}"
    worse = comparison.p_better(base, variant) < LEVEL
    return f"{'worse than' if worse else 'n.s. against'} {reference}"


def evidence_text(need: Need) -> str:
    """The same as a sentence."""
    if not need.variant:
        return "no variant has learned the task"
    found = evidence_of(need)
    parts = _open_parts(need, found) if need.is_open else _chosen_parts(found)
    if found.tied:
        parts.append(f"tied with {found.tied}")
    parts += found.unproved
    if found.non_neural:
        parts.append(f"non-neural baseline {found.non_neural}")
    return "; ".join(parts)


def _open_parts(need: Need, found: Evidence) -> list[str]:
    """That nothing is chosen, and how many variants are worse than uniform attention."""
    comparison, uniform = need.evidence, need.evidence.uniform_baseline
    name = comparison.catalog.label(uniform) if uniform else ""
    told = f"no variant is significantly above {name}" if name else NOTHING_DECIDED
    if found.against:
        title = uncapitalized(comparison.ranked_by.title)
        told += f", which has {title} {comparison.short_score(uniform or '')}"
    return [f"{told}, {_seeds_text(found)}", *found.marks]


def _chosen_parts(found: Evidence) -> list[str]:
    """The score of the choice and of its reference, with the test between them."""
    against = f" against {found.against}" if found.against else ""
    p = p_text(found.p) if math.isfinite(found.p) else ""
    told = ", ".join(filter(None, (found.score + against, *found.marks, _seeds_text(found), p)))
    return [told, found.gap] if found.gap else [told]


def _seeds_text(found: Evidence) -> str:
    return f"{found.seeds} {'seed' if found.seeds == '1' else 'seeds'}"


def equal_by_rules(need: Need) -> tuple[str, ...]:
    """How many variants no rule tells from the choice."""
    count = len(need.alike)
    if not count:
        return ()
    named = need.evidence.catalog.label(need.alike[0]) if count == 1 else f"{count} others"
    return (f"equal to {named} by all rules",)


def stands_for(comparison: Comparison) -> str:
    """The test behind a choice, in words: the task, whether it is generated, and what it asks."""
    known = comparison.catalog
    task = known.task_label(comparison.task)
    title = clean(known.task(comparison.task).title)
    kind = "generated test " if known.is_generated(comparison.task) else ""
    told = f"{kind}{task}, “{title}”" if title else f"{kind}{task}"
    options = comparison.task.partition("[")[2].removesuffix("]")
    return f"{told} ({options.replace(',', ', ')})" if options and options not in task else told


def small_difference(comparison: Comparison, variant: str, other: str) -> list[str]:
    """Say so where a significant difference is below the margin, which is of no practical size."""
    tested, margin = comparison.tested(variant, other), comparison.ranked_by.margin
    if tested is None or margin is None or not abs(tested.estimate) < margin:
        return []
    return [f"a difference below the margin of {plain(margin)}"]


def after_training(comparison: Comparison, variant: str, other: str) -> list[str]:
    """What the two score when training has ended, where an area along training is ranked."""
    ended = at_the_end(comparison)
    if ended is None or not {variant, other} <= ended.compared.keys():
        return []
    shown = f"after training {ended.short_score(variant)} against {ended.short_score(other)}"
    pairs = ((variant, other), (other, variant))
    differ = any(ended.p_better(*pair) < LEVEL for pair in pairs)
    return [shown if differ else f"{shown}, n.s."]


def _worse_than_uniform(comparison: Comparison) -> tuple[str, ...]:
    """How many variants are worse than uniform attention, if any are."""
    uniform, found = comparison.uniform_baseline, comparison.primary.items()
    worse = sum(one.reference == uniform and made.outcome == "worse" for one, made in found)
    of_all = f"{worse} of {len(comparison.contenders)}"
    are = "is" if worse == 1 else "are"
    return (f"{of_all} {are} significantly worse",) if worse else ()


def _seeds(comparison: Comparison, variant: str, other: str) -> tuple[str, str]:
    """The seeds of both, and where one has more, what the test of pairs saw of them."""
    counts = [len(comparison.scores.get(name, ())) for name in (variant, other)]
    gaps = comparison.differences(variant, other)
    if len({*counts, len(gaps)}) == 1 or not gaps:
        return str(counts[0]), ""
    tested = comparison.tested(variant, other)
    mean, count = (tested.estimate, tested.count) if tested else (fmean(gaps), len(gaps))
    which = "shared" if count == len(gaps) else "shared and tested"
    return f"{counts[0]} and {counts[1]}", f"difference {plain(mean)} on the {count} {which} seeds"


def _non_neural(need: Need) -> str:
    """The best non-neural baseline and its score."""
    comparison = need.evidence
    if not comparison.without:
        return ""
    name, by_seed = next(iter(comparison.without.items()))
    rule = f", {RULE_MARK}" if comparison.ceiling else ""
    return f"{plain(fmean(by_seed.values()))} ({name}{rule})"


def _ties(need: Need) -> str:
    """Others that are tied with the best, one that has a better mean or costs less at the front."""
    tied = tied_with_best(need.evidence)
    others = [name for name in tied if name != need.variant]
    if not others:
        return ""
    first, comparison = tied[0], need.evidence
    better = first != need.variant and comparison.short_score(first) != comparison.short_score(
        need.variant
    )
    named = first if better else _cheaper(need, others)
    told = [_better(need, first) if better else _costs_less(need, named)] if named else []
    rest = [comparison.catalog.label(name) for name in others if name != named]
    if len(others) > MOST_TIED and rest:
        rest = [counted(len(rest), "other")]
    return join([*told, *rest])


def _costs_less(need: Need, name: str) -> str:
    comparison = need.evidence
    return f"{comparison.catalog.label(name)} ({comparison.short_score(name)}, which costs less)"


def _cheaper(need: Need, others: Sequence[str]) -> str:
    """The cheapest of some that cost clearly less than the choice; empty where none does."""
    comparison = need.evidence
    costs = {name: relative_cost([comparison], name, need.variant) for name in others}
    less = [name for name, cost in costs.items() if differs(cost, need.noise) and cost.estimate < 1]
    if not less:
        return ""
    return min(less, key=lambda one: costs[one].estimate)


def _unproved(need: Need) -> tuple[str, ...]:
    """What has the rank of the best and is left out; one that has the best mean is named."""
    comparison, tied = need.evidence, tied_with_best(need.evidence)
    first = first_rank(comparison)
    left = [name for name in first if name not in tied]
    if not left:
        return ()
    named, count = "", len(left)
    if first[0] == left[0]:
        label, count = comparison.catalog.label(left[0]), count - 1
        named = f"{label} ({comparison.short_score(left[0])}, the best mean)"
    rest = f"{count} more" if count else ""
    names = join([name for name in (named, rest) if name])
    are = "is" if len(left) == 1 else "are"
    return (f"{names} of the same rank {are} not significantly above uniform attention",)


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
    """The score of a variant with its metric, as `accuracy 0.9` or `200 steps to accuracy 0.99`.

    Of steps it says how fine they are known.
    """
    title, score = comparison.ranked_by.title, comparison.short_score(variant)
    if comparison.metric == STEPS and comparison.plain is not None:
        every = plain(resolution(comparison.plain), 0)
        return f"{score} {uncapitalized(title)}, validated every {every} steps"
    return f"{title} {score}"


def _reference(comparison: Comparison, name: str) -> str:
    return f"{comparison.short_score(name)} of {comparison.catalog.label(name)}"
