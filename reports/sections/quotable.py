"""A figure and a paragraph for each comparison that is small and has enough seeds to be quoted."""

from statistics import fmean

from reports.blocks import Block, Paragraph, Section
from reports.evidence import stands_for
from reports.figures.scores import ScoreLine, scores_figure
from reports.folder import RunFolder
from reports.numbers import least_to_most, p_text, plain
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


def quotable_section(folder: RunFolder) -> Section | None:
    """The comparisons with five seeds or more and not too many variants; None without any."""
    tested = tested_comparisons(folder)
    found = [one for one in tested if _is_quotable(one)]
    blocks: list[Block] = []
    for at, comparison in enumerate(found, start=1):
        blocks += [Paragraph(_paragraph(folder, comparison)), _figure(at, comparison)]
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
    return bool(few) and min(few) >= LEAST_SEEDS and len(comparison.scores) <= MOST_VARIANTS


def _ordered(comparison: Comparison) -> list[str]:
    sign = 1.0 if comparison.better == "lower" else -1.0
    means = {name: fmean(found.values()) for name, found in comparison.scores.items() if found}
    return sorted(means, key=lambda name: sign * means[name])


def _figure(at: int, comparison: Comparison) -> Block:
    known, metric = comparison.catalog, comparison.ranked_by
    lines = []
    for name in _ordered(comparison):
        mean = seen_within(comparison.scores[name].values(), metric.limits)
        control = "control" if known.flag(name, "control") else "variant"
        kind = "baseline" if name == known.baseline else control
        one = ScoreLine(
            name=known.label(name), kind=kind, mean=mean.estimate, low=mean.low, high=mean.high
        )
        lines.append(one)
    test = stands_for(comparison)
    caption = CAPTION.format(seeds=_many(comparison), test=test[:1].upper() + test[1:])
    said = (f"{metric.title}: {comparison.title}", caption, metric.axis)
    return scores_figure(f"quotable-{at}", said, lines, metric.limits)


def _many(comparison: Comparison) -> str:
    """Seeds of its variants: one number, or the least and the most."""
    return least_to_most([len(found) for found in comparison.scores.values() if found])


def _paragraph(folder: RunFolder, comparison: Comparison) -> str:
    known, metric = comparison.catalog, comparison.ranked_by
    scores = [f"{known.label(name)} {comparison.score_text(name)}" for name in _ordered(comparison)]
    parts = [
        f"{comparison.title}. {metric.title} ({metric.unit}, {comparison.better} is better), mean "
        f"and 95% t interval over {_many(comparison)} paired seeds, or the lowest and highest seed "
        f"where an interval would leave the range: {join(scores, len(scores))}."
    ]
    for reference in (comparison.baseline, comparison.uniform_baseline):
        if reference is not None:
            parts += _against(comparison, reference)
    shared = shared_facts(folder, comparison)
    where = f" ({', '.join(shared)})" if shared else ""
    parts.append(
        "Moderated t tests on common seeds, with Holm's correction over "
        f"{len(comparison.primary)} hypotheses that were fixed before the run{where}."
    )
    return " ".join(parts)


def _against(comparison: Comparison, reference: str) -> list[str]:
    """A sentence on what was tested against one reference; none where nothing was."""
    found = {
        asked.variant: decision
        for asked, decision in comparison.primary.items()
        if asked.reference == reference
    }
    margin = comparison.ranked_by.margin
    parts = []
    for outcome, words in OPENINGS:
        names = [name for name in _ordered(comparison) if name in found]
        told = [
            _told(comparison, one, found[one]) for one in names if found[one].outcome == outcome
        ]
        within = f" (within {plain(margin)})" if outcome == "equivalent" and margin else ""
        if told:
            parts.append(f"{words}{within}: {join(told, len(told))}")
    label = comparison.catalog.label(reference)
    return [f"Against {label}, {'; '.join(parts)}."] if parts else []


def _told(comparison: Comparison, name: str, decision: Decision) -> str:
    """A name with its difference, where there is one."""
    label = comparison.catalog.label(name)
    if decision.outcome not in ("better", "worse"):
        return label
    gap = decision.difference.estimate
    return f"{label} ({'+' if gap > 0 else ''}{plain(gap)}, {p_text(decision.p_adjusted)})"
