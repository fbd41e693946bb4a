"""A figure and a paragraph for each comparison that is small and has enough seeds to be quoted."""

from collections.abc import Sequence
from statistics import fmean

from reports.blocks import Block, Paragraph, Section
from reports.catalog import capitalized, uncapitalized
from reports.evidence import stands_for
from reports.figures.scores import ScoreLine, scores_figure
from reports.folder import RunFolder
from reports.numbers import counted, least_to_most, p_text, plain
from reports.prose import join
from reports.quality_cost import seen_within
from reports.ranked_table.comparison import Comparison
from reports.sections.mixed_environments import shared_facts
from reports.tested import tested_comparisons
from results.statistics import Decision

LEAST_SEEDS, MOST_VARIANTS = 5, 24
"""Of a comparison that a paper could quote in one paragraph."""
SMALL_RUN = 8
"""Comparisons up to which a run has its paragraphs beside the choices, and not among details."""
LEAST_PRINTED = 0.001
"""Least p value that is printed, and the step between two that are below 0.1."""
OPENINGS = (
    ("better", "significantly better"),
    ("worse", "significantly worse"),
    ("equivalent", "equivalent"),
    ("undecided", "undecided"),
)
CAPTION = (
    "Means over {seeds} paired seeds with their 95% t intervals, or from the lowest to the highest "
    "seed where an interval would leave the range. The square is the baseline, the triangle a "
    "control. {test}."
)
NO_RED = " Variants with a red certificate are left out."


def quotable_section(folder: RunFolder) -> Section | None:
    """The comparisons with five seeds or more and not too many variants; None without any."""
    tested = tested_comparisons(folder)
    found = [one for one in tested if _is_quotable(one)]
    blocks: list[Block] = []
    for at, comparison in enumerate(found, start=1):
        blocks += [_figure(at, comparison), Paragraph(_paragraph(folder, comparison))]
    if not blocks:
        return None
    return Section(
        key="quotable",
        title="In a paragraph",
        blocks=tuple(blocks),
        group="summary" if len(tested) <= SMALL_RUN else "details",
    )


def _is_quotable(comparison: Comparison) -> bool:
    few = [len(comparison.scores[name]) for name in comparison.contenders]
    return bool(few) and min(few) >= LEAST_SEEDS and len(_ordered(comparison)) <= MOST_VARIANTS


def _ordered(comparison: Comparison) -> list[str]:
    """Variants with a score and no red certificate, best mean first."""
    sign = 1.0 if comparison.better == "lower" else -1.0
    means = {
        name: fmean(found.values())
        for name, found in comparison.scores.items()
        if found and name not in comparison.red
    }
    return sorted(means, key=lambda name: sign * means[name])


def _figure(at: int, comparison: Comparison) -> Block:
    known, metric = comparison.catalog, comparison.ranked_by
    lines = []
    for name in _ordered(comparison):
        mean = seen_within(comparison.scores[name].values(), metric.limits)
        control = "control" if known.variant(name).is_control else "variant"
        kind = "baseline" if name == known.baseline else control
        one = ScoreLine(
            name=known.label(name), kind=kind, mean=mean.estimate, low=mean.low, high=mean.high
        )
        lines.append(one)
    test = stands_for(comparison)
    caption = CAPTION.format(seeds=_many(comparison), test=capitalized(test))
    if comparison.red.keys() & comparison.scores.keys():
        caption += NO_RED
    said = (f"{metric.title}: {comparison.title}", caption, metric.axis)
    return scores_figure(f"quotable-{at}", said, lines, metric.limits)


def _many(comparison: Comparison) -> str:
    """Seeds of the variants that are shown: one number, or the least and the most."""
    return least_to_most([len(comparison.scores[name]) for name in _ordered(comparison)])


def _paragraph(folder: RunFolder, comparison: Comparison) -> str:
    metric = comparison.ranked_by
    parts = [
        f"{comparison.title}: {uncapitalized(metric.title)} ({metric.unit}; {comparison.better} is "
        f"better), means over {_many(comparison)} paired seeds with 95% t intervals, or with the "
        "lowest and the highest seed where an interval would leave the range."
    ]
    told: set[str] = set()
    for reference in (comparison.baseline, comparison.uniform_baseline):
        if reference is not None:
            parts += _against(comparison, reference, told)
    shared = shared_facts(folder, comparison)
    where = f" ({', '.join(shared)})" if shared else ""
    parts.append(
        "Moderated t tests on common seeds, with Holm's correction over "
        f"{counted(len(comparison.primary), 'hypothesis', 'hypotheses')} "
        f"fixed before the run{where}."
    )
    return " ".join(parts)


def _against(comparison: Comparison, reference: str, told: set[str]) -> list[str]:
    """A sentence on what was tested against one reference; none where nothing was.

    Args:
        comparison: What is quoted.
        reference: The baseline, or uniform attention.
        told: Variants whose scores were said before; grows.
    """
    found = {
        asked.variant: decision
        for asked, decision in comparison.primary.items()
        if asked.reference == reference
    }
    margin = comparison.ranked_by.margin
    parts, known = list[str](), ""
    for outcome, words in OPENINGS:
        names = [
            name
            for name in _ordered(comparison)
            if name in found and found[name].outcome == outcome
        ]
        if not names:
            continue
        # the reference is scored first, but only where something is said of it
        known = known or _scored(comparison, reference, told)
        within = f" within {plain(margin)}" if outcome == "equivalent" and margin else ""
        listed = join([_scored(comparison, name, told) for name in names], len(names))
        parts.append(f"{words}{within}: {listed}{_tested(outcome, [found[one] for one in names])}")
    return [f"Against {known}, {'; '.join(parts)}."] if parts else []


def _scored(comparison: Comparison, name: str, told: set[str]) -> str:
    """A name, with its score where that was not said before."""
    label = comparison.catalog.label(name)
    if name in told:
        return label
    told.add(name)
    return f"{label} {comparison.score_text(name)}"


def _tested(outcome: str, decisions: Sequence[Decision]) -> str:
    """The p value of a significant difference, or the largest of several."""
    if outcome not in ("better", "worse"):
        return ""
    most = max(one.p_adjusted for one in decisions)
    if len(decisions) == 1:
        return f" ({p_text(most)})"
    # a bound is rounded up to the digits that are printed, or it would be none
    bound = round(most, 3) if most >= LEAST_PRINTED else most
    text = p_text(bound if bound >= most else bound + LEAST_PRINTED)
    return f" (each {text.replace('=', '≤')})"
