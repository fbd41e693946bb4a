"""Which cheap diagnostics order variants as the tasks on real data do."""

import math
import zlib

import numpy as np

from reports.blocks import Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.numbers import counted, plain, probability
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from results.statistics import LEAST_VARIANTS, Agreement, holm, rank_agreement

HOW_TO_READ = (
    "A generated task is a cheap diagnostic. The table compares it with a task on real data, by "
    "Spearman's rank correlation of mean scores over the variants that both share. 1 is the same "
    "order of variants, -1 the opposite one. Controls and the baseline are included, and pipeline "
    "checks are left out. Intervals are 95% percentile bounds of a bootstrap over variants and "
    "seeds. The p values come from permutations, with Holm's correction over {count} of the table."
)
WIDE = (
    "With few variants these intervals are wide, and a bootstrap still makes them too narrow. A "
    "pair without a small p does not show that a diagnostic is bad."
)
ALPHA = 0.05
"""Largest adjusted p of a pair that is called significant."""


def agreement_section(folder: RunFolder) -> Section | None:
    """Correlations of every generated task with every real one; None where no pair has one."""
    known = folder.catalog
    evidence = [one for one in folder.comparisons if not one.pipeline_check]
    cheap = _largest([c for c in evidence if known.is_generated(c.task) and known.family(c.task)])
    real = _largest([c for c in evidence if not known.is_generated(c.task)])
    pairs = [(one, other) for one in cheap for other in real if one.task != other.task]
    found = [(one, other, _agreement(one, other)) for one, other in pairs]
    told = [line for line in found if math.isfinite(line[2].correlation)]
    if not told:
        return None
    few = [line for line in found if line[2].variants < LEAST_VARIANTS]
    count = f"all {len(told)} pairs" if len(told) != 1 else "the one pair"
    adjusted = holm([agreement.p for _, _, agreement in told])
    lines = sorted(zip(told, adjusted, strict=True), key=lambda line: -line[0][2].correlation)
    blocks: list[Block] = [
        Paragraph(_answer(lines)),
        Paragraph(HOW_TO_READ.format(count=count)),
        Paragraph(WIDE),
        _table(lines),
    ]
    if few:
        blocks.append(_too_few(few))
    title = "Which diagnostics predict tasks on real data"
    return Section(key="agreement", title=title, blocks=tuple(blocks))


AgreementLine = tuple[Comparison, Comparison, Agreement]
AgreementLines = list[tuple[AgreementLine, float]]
"""Pairs with their adjusted p, best correlation first."""


def _answer(lines: AgreementLines) -> str:
    """Which diagnostics predict which tasks, in words: those whose correlation has a small p."""
    shown = [line for line, p in lines if p < ALPHA]
    with_it = [line for line in shown if line[2].correlation > 0]
    against = [line for line in shown if line[2].correlation < 0]
    rest = len(lines) - len(with_it) - len(against)
    said = [
        f"Significant agreement: {_named(with_it)}."
        if with_it
        else "No diagnostic agrees significantly with a task on real data."
    ]
    if against:
        said.append(f"Significant opposite order: {_named(against)}.")
    if rest:
        other = "other " if shown else ""
        said.append(f"The {other}{f'{rest} pairs are' if rest > 1 else 'pair is'} n.s.")
    return " ".join(said)


def _named(found: list[AgreementLine]) -> str:
    """Each diagnostic with the tasks that it tells something about."""
    tasks: dict[str, list[str]] = {}
    for one, other, _ in found:
        tasks.setdefault(one.title, []).append(other.title)
    return "; ".join(f"{name} for {join(others)}" for name, others in tasks.items())


def _largest(found: list[Comparison]) -> list[Comparison]:
    """The comparison with most scores of each task."""
    best: dict[str, Comparison] = {}
    for comparison in found:
        if comparison.better != "none" and comparison.scores:
            now = best.setdefault(comparison.task, comparison)
            if len(comparison.scores) > len(now.scores):
                best[comparison.task] = comparison
    return [*best.values()]


def _agreement(one: Comparison, other: Comparison) -> Agreement:
    # the draws of a pair depend on its names alone, so that a report is the same each time
    seed = zlib.crc32(f"{one.task} {other.task}".encode())
    return rank_agreement(_oriented(one), _oriented(other), np.random.default_rng(seed))


def _oriented(comparison: Comparison) -> dict[str, dict[int, float]]:
    """Scores of fair variants, larger is better."""
    sign = -1.0 if comparison.better == "lower" else 1.0
    return {
        name: {seed: sign * value for seed, value in by_seed.items()}
        for name, by_seed in comparison.scores.items()
        if name not in comparison.red
    }


def _table(lines: AgreementLines) -> TableBlock:
    return TableBlock(
        key="agreement-table",
        title="Rank correlation of diagnostics with tasks on real data",
        columns=(
            Column(title="Diagnostic"),
            Column(title="Task on real data"),
            Column(title="Variants", numeric=True),
            Column(title="Correlation", unit="95% interval", numeric=True, better="higher"),
            Column(title="p", unit="Holm", numeric=True, help="Of no association of the ranks."),
        ),
        rows=tuple(
            (
                TableCell(text=one.title),
                TableCell(text=other.title),
                TableCell(text=str(agreement.variants), sort=agreement.variants),
                TableCell(text=_text(agreement), sort=agreement.correlation),
                TableCell(text=probability(p), sort=p),
            )
            for (one, other, agreement), p in lines
        ),
    )


def _text(agreement: Agreement) -> str:
    value, low, high = (
        plain(bound, 2) for bound in (agreement.correlation, agreement.low, agreement.high)
    )
    return f"{value} [{low}, {high}]"


def _too_few(found: list[AgreementLine]) -> Paragraph:
    """What the table leaves out, counted; a line for each of hundreds would tell no more."""
    tasks = len({one.task for one, _, _ in found})
    return Paragraph(
        f"{counted(len(found), 'further pair')} of a diagnostic and a task on real data "
        f"{'has' if len(found) == 1 else 'have'} no number, for want of {LEAST_VARIANTS} shared "
        f"variants. This concerns {counted(tasks, 'diagnostic')}.",
        "note",
    )
