"""What was found on each task: sentences made by rule from the statistics."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from reports.blocks import Block, Bullets, Paragraph, Section
from reports.catalog import uncapitalized
from reports.folder import RunFolder
from reports.needs import beats, first_rank
from reports.numbers import percent, plain, with_interval
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import is_about_longer_inputs
from reports.ranked_table.verdicts import against_ranks, why_untested
from reports.sections.control_findings import controls, is_control, learned
from reports.sections.speed_findings import speed_sentences
from reports.tested import kinds_without_evidence
from results.statistics import Interval, Ranked

PARITY = 0.01
"""Parameter counts within 1% are called equal."""


def findings_section(folder: RunFolder) -> Section | None:
    """What was found on each task, in sentences; None where nothing is ranked."""
    ranked = [comparison for comparison in folder.headlines.values() if comparison.ranking]
    if not folder.catalog.ranks or not ranked:
        return None
    told = [(comparison.title, _task(comparison)) for comparison in ranked]
    told += speed_sentences(folder)
    blocks: tuple[Block, ...] = (
        Paragraph(_overall(folder.comparisons)),
        Bullets(tuple(text for _, text in told), tuple(head for head, _ in told)),
    )
    return Section(key="findings", title="Findings, task by task", blocks=blocks)


def _overall(comparisons: Sequence[Comparison]) -> str:
    everything = [comparison for comparison in comparisons if comparison.ranking]
    kinds = kinds_without_evidence(everything)
    ranked = [one for one in everything if one.was_to_decide]
    if not ranked:
        told = " or ".join(f"{kind}s" for kind in kinds)
        return f"Choose nothing from this run. All of its comparisons with scores are {told}."
    tested = [comparison for comparison in ranked if _repeated(comparison)]
    if not tested:
        return "Choose nothing from this run. One seed each cannot show a significant difference."
    many = len(tested) > 1
    count = f"{len(tested)} comparisons" if many else "the one comparison"
    if kinds:
        none = " and ".join(f"no {kind}{'s' if many else ''}" for kind in kinds)
        count += f" that {'are' if many else 'is'} {none}"
    entered = [
        {line.variant for line in comparison.ranking if not is_control(comparison, line)}
        for comparison in tested
    ]
    everywhere = set.intersection(*entered)
    if len(everywhere) < 2 and many:
        return (
            f"There is no overall choice, because no two variants took part in all {count}. "
            "Read each task by itself."
        )
    return _choice(tested, everywhere, f"all {count}" if many else count)


def _choice(tested: Sequence[Comparison], everywhere: set[str], where: str) -> str:
    """What to choose of the contenders that took part in all comparisons; often nothing.

    As in the table of choices, nothing is chosen where nothing is shown to be above uniform
    attention, or nothing is decided.

    Args:
        tested: Comparisons with several seeds, at least one.
        everywhere: Contenders that are ranked in each of them.
        where: All of them, in words.
    """
    many = len(tested) > 1
    best = sorted(everywhere.intersection(*map(first_rank, tested)))
    if not best and many:
        return f"No contender is among the best in {where}. The choice depends on the task."
    if not best:
        return f"Nothing is chosen: no contender is among the best in {where}."
    above = [name for name in best if all(_above_uniform(one, name) for one in tested)]
    if not above:
        return f"Nothing is chosen: {_none_above(tested, where)}."
    if not any(one.decided for comparison in tested for one in comparison.primary.values()):
        return f"Nothing is chosen: no primary hypothesis is decided in {where}."
    names = [tested[0].catalog.label(name) for name in above]
    if len(names) > 1:
        return (
            f"{join(names)} are tied with the best in {where}. Choose among them by cost, or run "
            "more seeds."
        )
    return _one_choice(names[0], where, many=many, alone=len(best) == 1)


def _one_choice(name: str, where: str, *, many: bool, alone: bool) -> str:
    """The one contender to choose.

    Args:
        name: Its label.
        where: The comparisons, in words.
        many: Whether there are several of them.
        alone: Whether no other contender is among the best in all of them.
    """
    others = f"No other of the best in {where} is significantly above uniform attention."
    if alone:
        others = f"No other contender is among the best in {where}."
    told = f"{others} This holds for these tasks at this budget and size."
    if not many:
        return f"Choose {name}. {told}"
    return (
        f"Choose {name} where one variant has to do for {where}. {told} For one of them alone the "
        "table of choices may name another."
    )


def _above_uniform(comparison: Comparison, variant: str) -> bool:
    """Whether a variant is significantly above uniform attention, where that has a score."""
    uniform = comparison.uniform_baseline
    return uniform is None or beats(comparison, variant, uniform)


def _none_above(tested: Sequence[Comparison], where: str) -> str:
    """Why nothing that is among the best everywhere is chosen, in a clause."""
    tied = [one for one in tested if one.uniform_baseline in {line.variant for line in one.leading}]
    many = len(tested) > 1
    if not tied:
        each = " in each that has it" if many else ""
        return f"none of the best in {where} is significantly above uniform attention{each}"
    some = f" in {len(tied)} of {len(tested)} comparisons" if many else ""
    return f"uniform attention is tied with the best{some}"


def _repeated(comparison: Comparison) -> bool:
    """Whether any variant has more than one seed, without which there is no interval."""
    return max((line.mean.count for line in comparison.ranking), default=0) > 1


def _task(comparison: Comparison) -> str:
    leaders = comparison.leading
    if len(comparison.ranking) == 1:
        alone = comparison.ranking[0].variant
        only = f"{comparison.catalog.label(alone)} alone, {_scored(comparison, alone)}"
        told = (f"{only}: there is nothing to compare it with.", _holes(comparison))
        return " ".join(filter(None, told))
    if not _repeated(comparison):
        best = _scored(comparison, comparison.ranking[0].variant)
        first = f"One seed each cannot show a significant difference. The best score is {best}."
        return " ".join(filter(None, (first, learned(comparison), _holes(comparison))))
    sentences = [
        _saturated(comparison),
        _leaders(comparison, leaders),
        _turned(comparison),
        _cheapest(
            comparison, [line.variant for line in leaders if not is_control(comparison, line)]
        ),
        _against_baseline(comparison),
        *controls(comparison),
        learned(comparison),
        _without(comparison),
        _parity(comparison, leaders),
        _holes(comparison),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _scored(comparison: Comparison, variant: str) -> str:
    """Mean score of a variant with its unit."""
    unit = comparison.ranked_by.unit
    return f"{comparison.score_text(variant)} {unit}".strip()


def _saturated(comparison: Comparison) -> str:
    """Say that a finding is about another metric than that of the whole test."""
    if comparison.plain is None:
        return ""
    what = comparison.part or uncapitalized(comparison.ranked_by.title)
    return f"The score of the whole test is saturated, so this compares {what}."


def _leaders(comparison: Comparison, leaders: Sequence[Ranked]) -> str:
    """Who leads, and who further down is tied with the best.

    Who never learned has a sentence of its own; who differs significantly is in none of them.
    """
    best = comparison.ranking[0].variant
    lead = f"{comparison.catalog.label(best)} has the best mean, {_scored(comparison, best)}"
    late = _tied_below(comparison, leaders)
    if len(leaders) > 1:
        return f"{_joined(comparison, leaders)} are tied. {lead}. {late}".strip()
    if leaders and leaders[0].variant == best:
        beaten, reason = _beaten(comparison), _no_choice(comparison, best)
        if beaten and reason:
            return f"{lead}, significantly better than {beaten}. {reason}"
        if beaten:
            return (
                f"Choose {comparison.catalog.label(best)}. Its mean is "
                f"{_scored(comparison, best)}, significantly better than {beaten}."
            )
        behind = sum(line.differs_from_best for line in comparison.ranking)
        others = len(comparison.ranking) - 1
        lead += f". It is significantly better than {behind} of {others} others"
    return f"{lead}. {late}".strip()


def _no_choice(comparison: Comparison, best: str) -> str:
    """Why what has the best mean is not chosen, a sentence; empty where it is."""
    if comparison.pipeline_check:
        return "This is a pipeline check, and no reason to choose a variant."
    if comparison.catalog.variant(best).is_control:
        return "It is a control, so nothing is chosen."
    if not _above_uniform(comparison, best):
        return "It is not significantly above uniform attention, so nothing is chosen."
    return ""


def _beaten(comparison: Comparison) -> str:
    """All that the best is better than, if that is whatever learned; empty where it is less."""
    behind = {line.variant for line in comparison.ranking if line.differs_from_best}
    others = [
        line.variant
        for line in comparison.ranking[1:]
        if line.variant in behind or not comparison.lost_every_seed(line.variant)
    ]
    if not others or set(others) != behind:
        return ""
    above = "are above uniform attention" if is_about_longer_inputs(comparison) else "learned"
    rest = f" that {above}" if len(others) < len(comparison.ranking) - 1 else ""
    return (f"all {len(others)} others" if len(others) > 1 else "the other") + rest


def _tied_below(comparison: Comparison, leaders: Sequence[Ranked]) -> str:
    """Who has a lower rank, and yet no significant difference from the best mean."""
    best = comparison.ranking[0].variant
    told = {best, *(line.variant for line in leaders), *comparison.turned(best)}
    below = [
        line
        for line in comparison.ranking
        if line.variant not in told
        and not line.differs_from_best
        and not is_control(comparison, line)
        and not comparison.lost_every_seed(line.variant)
    ]
    if not below:
        return ""
    label = comparison.catalog.label(best)
    return f"Lower, but also n.s. against {label}: {_joined(comparison, below)}."


def _joined(comparison: Comparison, lines: Sequence[Ranked]) -> str:
    """Names of variants, each with what the planned test says of it."""
    label = comparison.catalog.label
    return join([f"{label(line.variant)}{_planned(comparison, line.variant)}" for line in lines])


def _turned(comparison: Comparison) -> str:
    """Who is better than the best mean on common seeds, where seeds differ; mostly nobody."""
    best, label = comparison.ranking[0].variant, comparison.catalog.label
    turned = [label(name) for name in comparison.turned(best)]
    if not turned:
        return ""
    return f"On common seeds {label(best)} is significantly worse than {join(turned)}."


def _planned(comparison: Comparison, variant: str) -> str:
    """What the planned test says of a line that a stricter correction calls tied."""
    told = against_ranks(comparison, variant)
    base = comparison.catalog.label(comparison.baseline or "")
    return f" ({told} than {base} by the planned test)" if told else ""


def _cheapest(comparison: Comparison, variants: list[str]) -> str:
    """Name the shortest training step among equals, if it stands out."""
    steps = {name: comparison.cells.trained(name, "train_step_time_ms") for name in variants}
    known = {name: step for name, step in steps.items() if math.isfinite(step.estimate)}
    if len(known) < 2:
        return ""
    first, *rest = sorted(known, key=lambda name: known[name].estimate)
    text = _step(known[first])
    if any(known[first].high >= known[name].low for name in rest):
        return ""
    label = comparison.catalog.label
    return f"Of these, {label(first)} has the shortest training step, {text}."


def _step(step: Interval) -> str:
    return f"{with_interval(step.estimate, step.low, step.high)} ms"


def _against_baseline(comparison: Comparison) -> str:
    """What the planned tests say of all that has a score, whatever the table ranks by."""
    whole, label = comparison.whole, comparison.catalog.label
    if whole.baseline is None or whole.baseline not in whole.compared:
        base = label(comparison.catalog.baseline) or "a baseline"
        return f"Nothing is tested against {base}: {why_untested(whole)}."
    better = [line.variant for line in whole.ranking if line.better_than_baseline]
    worse = [line.variant for line in whole.ranking if line.worse_than_baseline]
    base = label(whole.baseline)
    parts = [
        f"Significantly better than {base}: {join([label(name) for name in better])}."
        if better
        else f"No variant is significantly better than {base}."
    ]
    if worse:
        parts.append(f"Significantly worse: {join([label(name) for name in worse])}.")
    widths = [
        line.difference.half_width
        for line in comparison.ranking
        if line.difference is not None
        and math.isfinite(line.difference.half_width)
        and line.difference.half_width > 1e-9 * abs(line.mean.estimate)
    ]
    open_ = [line for line in comparison.ranking if line.variant not in {*better, *worse}]
    if widths and len(open_) > 1:
        unit = comparison.ranked_by.unit
        known = f"The 95% intervals of differences to {base} are {_widths(widths)} {unit}".strip()
        parts.append(f"{known}, before correction.")
    return " ".join(parts)


def _widths(widths: Sequence[float]) -> str:
    """Half widths of intervals, from the least to the greatest.

    >>> _widths([0.021, 0.2, 0.05]), _widths([0.021])
    ('±0.021 to ±0.2', '±0.021')
    """
    least, most = (f"±{width:.2g}" for width in (min(widths), max(widths)))
    return least if least == most else f"{least} to {most}"


def _without(comparison: Comparison) -> str:
    """Say so where no network is needed to do as well, and the data are not made by that rule."""
    if not comparison.without or not comparison.contenders or comparison.beats_the_rest:
        return ""
    if comparison.ceiling:
        return ""
    best, by_seed = next(iter(comparison.without.items()))
    level = plain(fmean(by_seed.values()))
    return f"No variant is better than the non-neural baseline {best} ({level}) in every seed."


def _parity(comparison: Comparison, leaders: Iterable[Ranked]) -> str:
    base = comparison.cells.trained(comparison.catalog.baseline, "parameters_count").estimate
    unequal = []
    for line in leaders:
        count = comparison.cells.trained(line.variant, "parameters_count").estimate
        if base and abs(count / base - 1) > PARITY:
            unequal.append(f"{comparison.catalog.label(line.variant)} {percent(count / base)}")
    return f"Parameters relative to the baseline: {join(unequal)}." if unequal else ""


def _holes(comparison: Comparison) -> str:
    """Who has no score on the whole test; a table by another metric may have still fewer lines."""
    empty = [
        comparison.catalog.label(name)
        for name in comparison.variants
        if name not in comparison.whole.scores
    ]
    return f"Without a score: {join(empty)}." if empty else ""
