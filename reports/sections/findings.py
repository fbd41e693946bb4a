"""What was found on each task: sentences made by rule from the statistics."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

import pandas as pd

from reports.blocks import Block, Bullets, Paragraph, Section
from reports.folder import RunFolder
from reports.numbers import percent, plain, with_interval
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.sections.data_sources import mixed_data, short_data
from results.statistics import Interval, Ranked

PARITY = 0.01
"""Parameter counts within 1% are called equal."""


def findings_section(folder: RunFolder) -> Section | None:
    """What was found on each task, in sentences; None where nothing is ranked."""
    ranked = [comparison for comparison in folder.comparisons if comparison.ranking]
    if not folder.catalog.ranks or not ranked:
        return None
    told = [(comparison.title, _task(comparison)) for comparison in ranked]
    told += speed_sentences(folder)
    blocks: tuple[Block, ...] = (
        Paragraph(_overall(folder.comparisons)),
        Bullets(tuple(text for _, text in told), tuple(head for head, _ in told)),
    )
    return Section(key="findings", title="Findings, task by task", blocks=blocks)


def warnings_section(folder: RunFolder) -> Section | None:
    """What a reader must know before any number; None where there is nothing."""
    told = [*mixed_data(folder).values(), *short_data(folder)]
    if not folder.catalog.ranks:
        told.insert(
            0,
            f"Choose nothing from this run: the preset “{folder.catalog.preset}” shows that "
            "everything works, and ranks nothing. Take a preset that ranks, with more seeds and a "
            "larger budget.",
        )
    red = sorted({name for comparison in folder.comparisons for name in comparison.red})
    if red:
        told.append(f"Not ranked, because a conformance check is red: {names(folder, red)}.")
    if not told:
        return None
    blocks = tuple(Paragraph(sentence, "warning") for sentence in told)
    return Section(key="warnings", title="Warnings", blocks=blocks, group="summary")


def names(folder: RunFolder, variants: Sequence[str]) -> str:
    """Join short names, no more than a sentence can carry."""
    return join([folder.catalog.label(name) for name in variants])


def _overall(comparisons: Sequence[Comparison]) -> str:
    ranked = [comparison for comparison in comparisons if comparison.ranking]
    tested = [comparison for comparison in ranked if _repeated(comparison)]
    if not tested:
        return "Choose nothing from this run: one seed each cannot show a significant difference."
    label = ranked[0].catalog.label
    count = f"{len(tested)} comparisons" if len(tested) > 1 else "the one comparison"
    entered = [
        {line.variant for line in comparison.ranking if not _control(comparison, line)}
        for comparison in tested
    ]
    everywhere = set.intersection(*entered)
    if len(everywhere) < 2 and len(tested) > 1:
        return (
            f"There is no overall choice: no two variants took part in every one of the {count}, "
            "because each variant ran where it shows what it is for. Read each task by itself."
        )
    first = [{line.variant for line in comparison.leading} for comparison in tested]
    always = sorted(everywhere.intersection(*first))
    if not always:
        return f"No variant is among the best in {count}, so the choice depends on the task."
    if len(always) == 1:
        return (
            f"Choose {label(always[0])}: no other variant is among the best in {count}. Ranks are "
            "about these tasks at this budget and size; elsewhere they may differ."
        )
    return (
        f"{join([label(name) for name in always])} are tied with the best in {count}. Choose among "
        "them by cost, or run more seeds."
    )


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
        first = f"One seed each cannot show a significant difference; the best mean is {best}."
        return " ".join(filter(None, (first, _learned(comparison), _holes(comparison))))
    sentences = [
        _leaders(comparison, leaders),
        _cheapest(comparison, [line.variant for line in leaders if not _control(comparison, line)]),
        _against_baseline(comparison),
        *_controls(comparison),
        _learned(comparison),
        _without(comparison),
        _parity(comparison, leaders),
        _holes(comparison),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _scored(comparison: Comparison, variant: str) -> str:
    """Mean score of a variant with its unit."""
    unit = comparison.catalog.metric(comparison.metric).unit
    return f"{comparison.score_text(variant)} {unit}".strip()


def _leaders(comparison: Comparison, leaders: Sequence[Ranked]) -> str:
    """Who leads, and who further down is tied with the best.

    Who never learned has a sentence of its own; who differs significantly is in none of them.
    """
    label, ranking = comparison.catalog.label, comparison.ranking
    best = ranking[0].variant
    lead = f"the best mean has {label(best)} with {_scored(comparison, best)}"
    behind = [line for line in ranking if line.differs_from_best]
    below = [
        label(line.variant)
        for line in ranking
        if line.rank > 1
        and not line.differs_from_best
        and not _control(comparison, line)
        and not comparison.lost_every_seed(line.variant)
    ]
    late = f"Lower, but also n.s. against {label(best)}: {join(below)}." if below else ""
    if len(leaders) > 1:
        together = join([label(line.variant) for line in leaders])
        return f"{together} are tied; {lead}. {late}".strip()
    hopeless = [line for line in ranking if comparison.lost_every_seed(line.variant)]
    alone = [line.variant for line in leaders] == [best]
    others = [line for line in ranking[1:] if line in behind or line not in hopeless]
    if alone and others and others == behind:
        rest = " that learned" if len(others) < len(ranking) - 1 else ""
        behind_ = f"ahead of all {len(others)} others" if len(others) > 1 else "ahead of the other"
        return f"Choose {label(best)}, {_scored(comparison, best)}, {behind_}{rest}."
    ahead = f", ahead of {len(behind)} of {len(ranking) - 1} others" if alone else ""
    return f"{lead[:1].upper()}{lead[1:]}{ahead}. {late}".strip()


def _cheapest(comparison: Comparison, variants: list[str]) -> str:
    """Name the shortest training step among equals, if it stands out."""
    steps = {name: comparison.trained(name, "train_step_time_ms") for name in variants}
    known = {name: step for name, step in steps.items() if math.isfinite(step.estimate)}
    if len(known) < 2:
        return ""
    first, *rest = sorted(known, key=lambda name: known[name].estimate)
    text = _step(known[first])
    if any(known[first].high >= known[name].low for name in rest):
        return ""
    label = comparison.catalog.label
    return f"Of these {label(first)} has the shortest step, {text}; it is the cheap choice."


def _step(step: Interval) -> str:
    return f"{with_interval(step.estimate, step.low, step.high)} ms"


def _against_baseline(comparison: Comparison) -> str:
    if comparison.baseline is None or comparison.baseline not in comparison.compared:
        return "The baseline has no score here, so no difference is tested."
    label = comparison.catalog.label
    better = [line.variant for line in comparison.ranking if line.better_than_baseline]
    worse = [line.variant for line in comparison.ranking if line.worse_than_baseline]
    base = label(comparison.baseline)
    parts = [
        f"On the test, better than {base}: {join([label(name) for name in better])}."
        if better
        else f"On the test, nothing is shown to be better than {base}."
    ]
    if worse:
        parts.append(f"Worse: {join([label(name) for name in worse])}.")
    widths = [
        line.difference.half_width
        for line in comparison.ranking
        if line.difference is not None
        and math.isfinite(line.difference.half_width)
        and line.difference.half_width > 1e-9 * abs(line.mean.estimate)
    ]
    open_ = [line for line in comparison.ranking if line.variant not in {*better, *worse}]
    if widths and len(open_) > 1:
        unit = comparison.catalog.metric(comparison.metric).unit
        known = f"Differences to {base} are known to {_widths(widths)} {unit}".strip()
        parts.append(f"{known}, before the correction for all pairs.")
    return " ".join(parts)


def _widths(widths: Sequence[float]) -> str:
    """Half widths of intervals, from the least to the greatest.

    >>> _widths([0.021, 0.2, 0.05]), _widths([0.021])
    ('±0.021 to ±0.2', '±0.021')
    """
    least, most = (f"±{width:.2g}" for width in (min(widths), max(widths)))
    return least if least == most else f"{least} to {most}"


def _control(comparison: Comparison, line: Ranked) -> bool:
    return comparison.catalog.flag(line.variant, "control")


def _controls(comparison: Comparison) -> list[str]:
    """What the controls say: the A/A control must be tied with the baseline, others must not."""
    label = comparison.catalog.label
    level = [
        line.variant
        for line in comparison.ranking
        if _control(comparison, line)
        and not line.differs_from_best
        and not line.worse_than_baseline
    ]
    aa_controls = [name for name in level if comparison.catalog.flag(name, "aa_control")]
    told = [
        f"{label(name)} is the baseline under another name, and ties as it must."
        for name in aa_controls[:1]
    ]
    first = {line.variant for line in comparison.leading}
    groups: dict[str, list[str]] = {}
    for name in level:
        if name not in aa_controls:
            place = "among the best" if name in first else "n.s. against the best"
            groups.setdefault(f"{place}{_beaten(comparison, name)}", []).append(label(name))
    for said, lazy in groups.items():
        many = len(lazy) > 1
        subject = f"The control{'s' if many else ''} {join(lazy)} {'are' if many else 'is'}"
        told.append(f"{subject} {said.format('each' if many else 'it')}.")
    return told


def _beaten(comparison: Comparison, control: str) -> str:
    """What scores say of a control where the tests say nothing."""
    fair = [name for name in comparison.contenders if name in comparison.compared]
    above = comparison.above_every_seed(control)
    if not above:
        return ": these seeds and this budget do not show what attention is for here"
    seeds = comparison.most_seeds
    if len(above) == len(fair):
        return (
            ", though every seed of every variant is better than every seed of {} on the test: "
            f"{seeds} seeds cannot show it after the correction for all pairs"
        )
    some = join([comparison.catalog.label(name) for name in above])
    return (
        f", though every seed of {some} is better than every seed of {{}} on the test: with "
        f"{seeds} seeds that shows nothing after the correction for all pairs"
    )


def _learned(comparison: Comparison) -> str:
    """Say who is no better than uniform attention, in every seed or in some."""
    if comparison.uniform_baseline is None:
        return ""
    label = comparison.catalog.label
    uniform_baseline = label(comparison.uniform_baseline)
    lost = {
        label(line.variant): comparison.lost_seeds(line.variant)
        for line in comparison.ranking
        if not _control(comparison, line)
    }
    never = [name for name, (bad, seeds) in lost.items() if seeds and bad == seeds]
    partly = [f"{name} ({bad} of {n})" for name, (bad, n) in lost.items() if 0 < bad < n]
    said = []
    if never:
        said.append(
            f"Failed to learn, with no seed above {uniform_baseline} on validation: {join(never)}."
        )
    if partly:
        said.append(f"Some seeds are not above {uniform_baseline} on validation: {join(partly)}.")
    return (
        " ".join(said) or f"On validation, every seed of every variant is above {uniform_baseline}."
    )


def _without(comparison: Comparison) -> str:
    """Say so where no network is needed to do as well."""
    if not comparison.without or not comparison.contenders or comparison.beats_the_rest:
        return ""
    best, by_seed = next(iter(comparison.without.items()))
    level = plain(fmean(by_seed.values()))
    return f"None is better in every seed than the non-neural baseline {best}: {level}."


def _parity(comparison: Comparison, leaders: Iterable[Ranked]) -> str:
    base = comparison.trained(comparison.catalog.baseline, "parameters_count").estimate
    unequal = []
    for line in leaders:
        count = comparison.trained(line.variant, "parameters_count").estimate
        if base and abs(count / base - 1) > PARITY:
            unequal.append(f"{comparison.catalog.label(line.variant)} {percent(count / base)}")
    return f"Parameters differ from the baseline: {join(unequal)}." if unequal else ""


def _holes(comparison: Comparison) -> str:
    empty = [
        comparison.catalog.label(name)
        for name in comparison.variants
        if name not in comparison.scores
    ]
    return f"Without a score: {join(empty)}." if empty else ""


def speed_sentences(folder: RunFolder) -> list[tuple[str, str]]:
    """Head and sentence for each timed quantity: who is faster beyond the A/A noise."""
    table = folder.speed_lines
    if table.empty:
        return []
    timed = table[table["verdict"] != ""]
    found = []
    for (slot, metric, _), group in timed.groupby(["slot", "metric", "shape"], sort=True):
        title = folder.catalog.metric(str(metric)).title
        found.append((f"{title}, {slot} slot", _verdicts(folder, group)))
    return found


def _verdicts(folder: RunFolder, group: pd.DataFrame) -> str:
    here = group[group["variant"] != folder.catalog.baseline]
    parts = []
    for verdict, text in (
        ("FAST", "faster than the baseline"),
        ("SLOW", "slower"),
        ("SAME", "the same within 2%"),
        ("AMBIGUOUS", "not decided"),
    ):
        mine = here[here["verdict"] == verdict].sort_values("ratio", kind="stable")
        if len(mine):
            times = [f"{line['name']} (×{line['ratio']:.3g})" for _, line in mine.iterrows()]
            parts.append(f"{text}: {join(times)}")
    told = "; ".join(parts) or "nothing to compare"
    return f"At the longest length of each, up to {group['length'].max():g}, {told}."
