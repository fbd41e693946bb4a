"""The page of claims: sources, a table of all verdicts, then a section for each source document."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from bench.api.claim import Side
from bench.api.selector import parse
from reports.blocks import (
    EXPLAINED,
    PROGRAM,
    Block,
    Bullets,
    CodeBlock,
    Column,
    Document,
    Figure,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
)
from reports.claim_words import (
    bounds_in_words,
    expected_in_words,
    networks_in_words,
    range_in_words,
    seen_in_words,
)
from reports.claims import BELOW, STANDINGS, ClaimOutcome, claims_command
from reports.figures.bounds import BoundPanel, bounds_figure
from reports.figures.contrasts import ContrastLine, contrasts_figure
from reports.numbers import counted
from reports.prose import join

ALWAYS = ("supported", "contradicted")
"""Standings that the headline counts even where no claim has them."""
HOW_DECIDED = (
    "A claim is cut into parts: contrasts of trained networks, and bounds of computed numbers. "
    "Each contrast has an expected direction and a margin, the least difference that counts. It "
    "is supported if the difference is significantly larger than the margin (p below 0.05 over "
    "paired seeds) in the expected direction. It is contradicted if it is significant in the "
    "other direction, or if it is shown to be smaller than the margin; where it has the expected "
    "sign, the line then says “below the margin”. A difference is not called too small where the "
    "right side lies within two margins of the end of its metric, for then there was little or no "
    "room for a larger one. Margins are those of this bench, for sources seldom name a size. Where "
    "sums are compared, as the difference of two differences is, the means are those of the sums; "
    "where spreads are, they are mean distances from the median of the seeds. A number that a "
    "contrast adds or subtracts beside two networks is in the difference and in no mean.",
    "Where equality is expected, a contrast holds if the difference is shown to be smaller than "
    "the margin. It is contradicted if the difference is significantly larger than the margin. "
    "Everything else is undecided, and so is a contrast without any difference in any seed where "
    "one was expected. Where a contrast says what its networks must have learned and they have "
    "not, it decides nothing. A second sample, and a claim that was written anew, decide at p "
    "below 0.025, so that both samples together are wrong in at most 7.5% of claims that have two; "
    "their intervals are of 97.5%, the others of 95%. Printed p values are those of no "
    "difference, before Holm's correction over the parts. Nothing is corrected over the claims: "
    "two or three verdicts of 50 would be wrong by chance. Where no seed of a contrast that "
    "expects equality differs, both sides may be at a limit of the metric.",
    "Margins of trained contrasts and bounds of computed numbers were fixed before the run, unless "
    "a note says otherwise.",
)


def claims_document(outcomes: Sequence[ClaimOutcome]) -> Document:
    """Say what the rows show of each claim, verdicts first."""
    by_source = sorted(outcomes, key=lambda one: (one.claim.source, one.claim.key))
    sections = [
        _section(source, list(group))
        for source, group in groupby(by_source, key=lambda one: one.claim.source)
    ]
    return Document(
        title=f"{PROGRAM}: claims",
        lead=(
            "Sentences of the source documents, without their emphasis and footnotes and with the "
            "items of lists joined, each with what decides it. Verdicts "
            "are computed from stored rows whenever this page is written. Trained claims use "
            "paired seeds that no other published run uses, from 200 on, and hold for networks "
            "and tasks of this size alone. What is measured is one reading of a sentence, and a "
            "verdict is about that. Where a first sample left a claim open, or a contrast "
            "was written after it, a second sample decides alone: fresh seeds from 300 on. Claims "
            "whose test did not measure the quoted sentence were written anew and are decided on "
            "seeds from 500 on, their second samples from 800 on; each says what it compared "
            f"before, and what that showed. {EXPLAINED}"
        ),
        headline=headline(outcomes),
        sections=(
            Section(key="sources", title="Sources", group="summary", blocks=(_sources(by_source),)),
            Section(
                key="verdicts",
                title="Verdicts",
                group="summary",
                blocks=(
                    *map(Paragraph, (*HOW_DECIDED, _rates(outcomes), *_written_anew(outcomes))),
                    _summary(outcomes),
                ),
            ),
            *sections,
        ),
        commands=(claims_command("all", outcomes[0].plugins if outcomes else ()),),
    )


def headline(outcomes: Sequence[ClaimOutcome]) -> str:
    """How many claims stand how; a claim that was not run is not counted as undecided."""
    counts = {name: sum(one.standing == name for one in outcomes) for name in STANDINGS}
    small = sum(one.falls_short for one in outcomes)
    told = f" ({small} by a difference of the claimed sign below the margin)" if small else ""
    said = ", ".join(
        f"{count} {name}{told if name == 'contradicted' else ''}"
        for name, count in counts.items()
        if count or name in ALWAYS
    )
    return f"{len(outcomes)} claims: {said}."


def _rates(outcomes: Sequence[ClaimOutcome]) -> str:
    """Which learning rates networks have: that of their task, unless a claim names another one."""
    own = [one.claim.key for one in outcomes if any(map(_has_own_rate, one.claim.sides))]
    usual = (
        "Sizes of tasks are those before calibration, so that `recall` at the size of `quick` is "
        "another test here than in the report `quick`. Both sides of a contrast need not have "
        "equally many parameters, and most claims have no negative control. Networks have the "
        "learning rate of their task, which was not tuned for them."
    )
    if not own:
        return usual
    return f"{usual} Those of {join(own)} have another one, which their list of networks names."


def _has_own_rate(side: Side) -> bool:
    return bool(side.training) and "lr" in parse(side.training).options


def _written_anew(outcomes: Sequence[ClaimOutcome]) -> tuple[str, ...]:
    """What the tests that were replaced said, and what the present ones say."""
    anew = [one for one in outcomes if one.claim.rewritten]
    if not anew:
        return ()
    supported = [one.standing == "supported" for one in anew]
    earlier = [one.claim.said_before == "supported" for one in anew]
    gained = sum(now and not then for now, then in zip(supported, earlier, strict=True))
    lost = sum(then and not now for now, then in zip(supported, earlier, strict=True))
    return (
        f"{len(anew)} of these {len(outcomes)} claims were written anew. The tests that were "
        f"replaced said: {_counts([one.claim.said_before for one in anew])}. The present ones say: "
        f"{_counts([one.standing for one in anew])}. So {gained} "
        "are supported by the present test alone, and "
        f"{lost or 'none'} that an earlier test supported {'is' if lost <= 1 else 'are'} not "
        "supported now.",
    )


def _counts(found: Sequence[str]) -> str:
    """How many claims stand how, in the order of the table."""
    counts = Counter(found)
    return join([f"{counts[name]} {name}" for name in STANDINGS if counts[name]])


def _standing(one: ClaimOutcome) -> str:
    if one.falls_short:
        return f"{one.standing} ({BELOW})"
    return one.standing


def short_source(source: str) -> tuple[str, str]:
    """The letter and number of a source document, and its title.

    >>> short_source("F1, a textbook, section 15"), short_source("My notes")
    (('F1', 'a textbook, section 15'), ('My notes', 'My notes'))
    """
    short, _, title = source.partition(", ")
    return short, title or source


def _sources(by_source: Sequence[ClaimOutcome]) -> Bullets:
    """What F0, F1 and so on stand for, and how many claims are of each."""
    heads, items = [], []
    for source, group in groupby(by_source, key=lambda one: one.claim.source):
        short, title = short_source(source)
        heads.append(short)
        count = len(list(group))
        items.append(f"{title}: {counted(count, 'claim')}")
    return Bullets(items=tuple(items), heads=tuple(heads))


def _summary(outcomes: Sequence[ClaimOutcome]) -> TableBlock:
    """All claims, grouped by how they stand."""
    heads = ("Claim", "What it says", "Verdict", "Why")
    return TableBlock(
        key="claims",
        title="All claims",
        columns=tuple(Column(title=name) for name in heads),
        rows=tuple(
            (
                TableCell(text=one.claim.key, href=f"#{_place(one)}" if one.parts else ""),
                TableCell(text=one.claim.title),
                TableCell(text=_standing(one), sort=float(STANDINGS.index(one.standing))),
                TableCell(text=one.reason() or one.grounds()),
            )
            for one in sorted(outcomes, key=lambda one: STANDINGS.index(one.standing))
        ),
    )


def _section(source: str, outcomes: Sequence[ClaimOutcome]) -> Section:
    short = re.sub(r"[^a-z0-9]+", "-", short_source(source)[0].lower()).strip("-")
    blocks = [block for one in outcomes for block in _blocks(one)]
    return Section(key=f"source-{short}", title=source, blocks=tuple(blocks))


def _blocks(one: ClaimOutcome) -> list[Block]:
    claim = one.claim
    blocks: list[Block] = [
        Paragraph(f"{claim.key}: {claim.title} Verdict: {_standing(one)}. {one.reason()}".strip()),
        Paragraph(f"“{claim.quote}”"),
    ]
    if one.parts:
        blocks.append(_numbers(one))
    if one.commits:
        blocks.append(Paragraph(_made_by(one.commits)))
    if networks := networks_in_words(claim):
        blocks.append(Paragraph("Networks that are trained, by task:"))
        blocks.append(Bullets(items=tuple(networks)))
    if one.first_sample:
        seen = "; ".join(part.seen_text() for part in one.first_sample)
        what = f"which decides nothing, with its {_interval(one.first_level)}"
        blocks.append(Paragraph(f"Second sample. The first one, {what}: {seen}."))
    blocks += _figures(one)
    if claim.note:
        blocks.append(Paragraph(claim.note, "note"))
    if claim.rewritten:
        blocks.append(Paragraph(f"Written anew. {claim.rewritten}", "note"))
    if claim.contrasts or claim.exact:
        blocks.append(Paragraph(_cost(one)))
        blocks.append(CodeBlock(one.command))
    return blocks


def _cost(one: ClaimOutcome) -> str:
    """How long it takes to run a claim again."""
    few = one.minutes < 1
    long = "less than a CPU minute" if few else f"about {counted(round(one.minutes), 'CPU minute')}"
    if one.timed:
        return f"Its trainings took {long}. To run it again:"
    return f"To run it again takes {long}:"


def _made_by(commits: Sequence[str]) -> str:
    """Which code computed the numbers of a claim."""
    if len(commits) == 1:
        return f"All numbers of this claim are of commit {commits[0]}."
    return f"The numbers of this claim are of {len(commits)} commits: {join(list(commits))}."


def _place(one: ClaimOutcome) -> str:
    """Place of a claim's numbers in the page."""
    return f"{one.claim.key}-numbers"


def _numbers(one: ClaimOutcome) -> TableBlock:
    """What was expected, and what was seen."""
    rows: list[tuple[str, ...]] = [
        (
            part.contrast.title,
            expected_in_words(part.contrast),
            part.means(),
            seen_in_words(part.finding),
            part.result,
        )
        for part in one.contrasts
    ]
    rows += [
        (
            part.title,
            bounds_in_words(part.bound),
            "",
            range_in_words(part.values, part.axis),
            part.result,
        )
        for part in one.bounds
    ]
    seen = f"Seen, with its {_interval(one.level)}"
    heads: tuple[str, ...] = ("What", "Expected", "Means of both sides", seen, "Result")
    needed = "all must hold" if one.claim.needed == "all" else "one is enough"
    if not one.contrasts:
        heads = ("What", "Expected", "Seen", "Result")
        rows = [row[:2] + row[3:] for row in rows]
    return TableBlock(
        key=_place(one),
        title=f"{one.claim.key}: {needed}" if len(rows) > 1 else one.claim.key,
        columns=tuple(Column(title=head) for head in heads),
        rows=tuple(tuple(TableCell(text=text) for text in row) for row in rows),
    )


def _interval(level: float) -> str:
    """The interval that is printed with differences, which is the one that decides.

    >>> _interval(0.025)
    '97.5% interval'
    """
    return f"{100 * (1 - level):g}% interval"


def _figures(one: ClaimOutcome) -> list[Figure]:
    """What is known: differences with their margins, and computed numbers with their bounds."""
    key, title = one.claim.key.lower(), one.claim.title
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
        if part.ran
    ]
    numbers = [
        BoundPanel(
            title=part.title,
            expected=bounds_in_words(part.bound),
            axis=part.axis,
            values=part.values,
            low=part.bound.low,
            high=part.bound.high,
        )
        for part in one.bounds
        if part.ran
    ]
    found = [contrasts_figure(key, title, lines, _interval(one.level))] if lines else []
    return [*found, bounds_figure(key, title, numbers)] if numbers else found
