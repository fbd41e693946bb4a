"""What stored rows say of claims, as data and as a page that is grouped by source document."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from bench.api.claim import Bound, Claim, Contrast
from reports.blocks import (
    Block,
    CodeBlock,
    Column,
    Document,
    Figure,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
)
from reports.figures.contrasts import ContrastLine, contrasts_figure
from results.statistics.verdicts import ClaimVerdict, Finding, Observed


@dataclass(frozen=True, kw_only=True)
class ContrastOutcome:
    """One contrast and what the seeds show of it."""

    contrast: Contrast
    seen: Observed
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class BoundOutcome:
    """One bound and the numbers that were computed for it."""

    bound: Bound
    values: Mapping[float | None, float]
    """Place on the axis -> number; empty where nothing is stored."""

    @property
    def low(self) -> float | None:
        """The least number; None where nothing is stored."""
        return min(self.values.values(), default=None)

    @property
    def high(self) -> float | None:
        """The greatest number; None where nothing is stored."""
        return max(self.values.values(), default=None)

    @property
    def holds(self) -> bool:
        """Whether numbers are stored and all of them lie inside."""
        return bool(self.values) and all(
            self.bound.low <= value <= self.bound.high for value in self.values.values()
        )


@dataclass(frozen=True, kw_only=True)
class ClaimOutcome:
    """A claim with its verdict and the numbers behind it."""

    claim: Claim
    verdict: ClaimVerdict
    contrasts: tuple[ContrastOutcome, ...]
    bounds: tuple[BoundOutcome, ...]
    minutes: float
    """Expected cost of what is trained for it, on one core."""

    @property
    def command(self) -> str:
        """What computes it again."""
        return f"python -m bench claims run {self.claim.key}"

    @property
    def ran(self) -> bool:
        """Whether any number of it is stored."""
        trained = any(one.finding.difference.count for one in self.contrasts)
        return trained or any(one.values for one in self.bounds)

    def reason(self) -> str:
        """Why it is undecided, and what would decide it; empty for other verdicts."""
        if self.verdict != "undecided":
            return ""
        if self.claim.missing:
            return self.claim.missing
        if not self.ran:
            return "It was not run; the command runs it."
        open_ = [one for one in self.contrasts if one.finding.verdict == "undecided"]
        few = [one.finding.difference.count for one in open_]
        if 0 in few:
            return "Some of its cells were not run or have no value; the command runs them."
        needed = [one.finding.seeds_to_decide for one in open_]
        known = [one for one in needed if one is not None]
        if len(known) < len(needed) or not known:
            return "The seeds so far do not tell how many would decide."
        return f"About {max(known)} seeds would decide (seen: {min(few)})."


def claims_document(outcomes: Sequence[ClaimOutcome]) -> Document:
    """The page: a table of all verdicts, then a section for each source document."""
    counts = {
        verdict: sum(one.verdict == verdict for one in outcomes)
        for verdict in ("supported", "contradicted", "equivalent", "undecided")
    }
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    by_source = sorted(outcomes, key=lambda one: (one.claim.source, one.claim.key))
    sections = [
        _section(source, list(group))
        for source, group in groupby(by_source, key=lambda one: one.claim.source)
    ]
    return Document(
        title="Attention bench: claims",
        lead=(
            "Sentences of the source documents, each with what decides it. Verdicts "
            "are computed from stored rows whenever this page is written. Trained claims use "
            "paired seeds from 200 on, which no other run uses, and hold for networks and tasks of "
            "this size alone."
        ),
        headline=f"{len(outcomes)} claims: {said}.",
        sections=(
            Section(
                key="verdicts", title="Verdicts", group="summary", blocks=(_summary(outcomes),)
            ),
            *sections,
        ),
        commands=("python -m bench claims run all",),
    )


def _summary(outcomes: Sequence[ClaimOutcome]) -> TableBlock:
    return TableBlock(
        key="claims",
        title="All claims",
        columns=tuple(Column(title=name) for name in ("Claim", "What it says", "Verdict", "Open")),
        rows=tuple(
            (
                TableCell(text=one.claim.key),
                TableCell(text=one.claim.title),
                TableCell(text=one.verdict),
                TableCell(text=one.reason()),
            )
            for one in outcomes
        ),
    )


def _section(source: str, outcomes: Sequence[ClaimOutcome]) -> Section:
    blocks = [block for one in outcomes for block in _blocks(one)]
    return Section(
        key=f"source-{source.split(maxsplit=1)[0].lower()}", title=source, blocks=tuple(blocks)
    )


def _blocks(one: ClaimOutcome) -> list[Block]:
    claim = one.claim
    blocks: list[Block] = [
        Paragraph(f"{claim.key}: {claim.title} Verdict: {one.verdict}. {one.reason()}".strip()),
        Paragraph(f"“{claim.quote}”"),
    ]
    if one.contrasts or one.bounds:
        blocks.append(_numbers(one))
    figure = _figure(one)
    if figure is not None:
        blocks.append(figure)
    if claim.note:
        blocks.append(Paragraph(claim.note, "note"))
    if claim.contrasts or claim.exact:
        blocks.append(CodeBlock(one.command))
    return blocks


def _numbers(one: ClaimOutcome) -> TableBlock:
    """What was expected, and what was seen."""
    rows = [
        (
            TableCell(text=part.contrast.title),
            TableCell(text=_expected(part.contrast)),
            TableCell(text=_seen(part.finding)),
            TableCell(text=part.finding.verdict),
        )
        for part in one.contrasts
    ]
    rows += [
        (
            TableCell(text=part.bound.metric),
            TableCell(text=_bound(part.bound)),
            TableCell(text=_range(part)),
            TableCell(text="inside" if part.holds else "outside" if part.values else "not run"),
        )
        for part in one.bounds
    ]
    heads = ("What", "Expected", "Seen", "Result")
    return TableBlock(
        key=f"{one.claim.key}-numbers",
        title=f"{one.claim.key}: {one.claim.needed} must hold" if len(rows) > 1 else one.claim.key,
        columns=tuple(Column(title=head) for head in heads),
        rows=tuple(rows),
    )


def _expected(contrast: Contrast) -> str:
    if contrast.expect == "equal":
        return f"within ±{contrast.margin:g}"
    sign = "+" if contrast.expect == "higher" else "-"
    if not contrast.margin:
        return "above 0" if sign == "+" else "below 0"
    return f"at least {sign}{contrast.margin:g}"


def _seen(finding: Finding) -> str:
    gap = finding.difference
    if not gap.count:
        return "not run"
    if not math.isfinite(gap.half_width):
        return f"{gap.estimate:+.3g}, no spread over {gap.count} seeds"
    return (
        f"{gap.estimate:+.3g} ({gap.low:+.3g} to {gap.high:+.3g}), {gap.count} seeds, "
        f"p = {finding.p:.2g}"
    )


def _bound(bound: Bound) -> str:
    if math.isinf(bound.high):
        return f"≥ {bound.low:g}"
    if math.isinf(bound.low):
        return f"≤ {bound.high:g}"
    return f"{bound.low:g} to {bound.high:g}"


def _range(part: BoundOutcome) -> str:
    if part.low is None or part.high is None:
        return "not run"
    if part.low == part.high:
        return f"{part.low:.4g}"
    return f"{part.low:.4g} to {part.high:.4g} over {len(part.values)} places"


def _figure(one: ClaimOutcome) -> Figure | None:
    """The differences with their intervals and margins; None where none is known."""
    lines = [
        ContrastLine(
            title=part.contrast.title,
            estimate=part.finding.difference.estimate,
            low=part.finding.difference.low,
            high=part.finding.difference.high,
            margin=part.contrast.margin,
            equal=part.contrast.expect == "equal",
            sign=-1.0 if part.contrast.expect == "lower" else 1.0,
        )
        for part in one.contrasts
        if part.finding.difference.count
    ]
    return contrasts_figure(one.claim.key.lower(), one.claim.title, lines) if lines else None
