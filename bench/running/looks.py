"""More seeds where something is undecided: from a plan and its stored scores to further cells.

Pure like the plan itself (ADR 4, 24): what a look adds depends on the request and on the scores up
to the look before, and on no clock. So a run that was stopped finds the same cells again.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.running.plan import Plan
from bench.running.quality_cells import PlannedCell
from results.looks import Looks
from results.primary_tables import PrimaryTable
from results.statistics import Hypothesis


@dataclass
class Look:
    """What one look at the scores found, and the cells that it asks for."""

    hypotheses: int = 0
    """Primary hypotheses that are tested."""
    undecided: int = 0
    """Those of them that are not decided."""
    unaffordable: int = 0
    """Undecided ones whose next seeds do not fit the budget."""
    cells: list[PlannedCell] = field(default_factory=list)
    """Seeds for the others, seed by seed."""


@dataclass(frozen=True)
class _Open:
    """An undecided hypothesis, and the questions that get more seeds for it."""

    seeds_to_decide: float
    questions: tuple[PlannedCell, PlannedCell]


def after_look(made: Plan, tables: Sequence[PrimaryTable], looks: Looks, number: int) -> Look:
    """What is undecided after a look, and the cells of the next one.

    The budget goes first to what needs fewest seeds to be decided. A variant of which everything is
    decided gets no more seeds; a reference gets them as long as a contender does.

    Args:
        made: The plan with the cells of all looks up to now.
        tables: The comparisons with the scores of these cells; they may hold later ones, too.
        looks: When the run looks.
        number: Of the look, from 1.
    """
    asked = {one.cell.id: one for one in made.quality}
    look, left = Look(), made.room_s - sum(one.seconds for one in made.quality)
    opened: list[_Open] = []
    for table in tables:
        questions = {asked[id_].cell.variant: asked[id_] for id_ in table.cells & asked.keys()}
        for hypothesis, decision in table.decisions(looks, number).items():
            if not questions.keys() >= {*hypothesis}:  # of another run into the same folder
                continue
            look.hypotheses += 1
            if not decision.decided:
                look.undecided += 1
                opened.append(
                    _Open(decision.seeds_to_decide or math.inf, _pair(questions, hypothesis))
                )
    taken: dict[str, PlannedCell] = {}
    for one in sorted(opened, key=lambda one: one.seeds_to_decide):
        wanted = {
            cell.cell.id: cell
            for cell in _seeds(one.questions, looks.seeds(number + 1))
            if cell.cell.id not in asked and cell.cell.id not in taken
        }
        cost = sum(cell.seconds for cell in wanted.values())
        if cost <= left:
            left -= cost
            taken |= wanted
        else:
            look.unaffordable += 1
    look.cells = sorted(taken.values(), key=lambda one: one.cell.seed)
    return look


def _pair(
    questions: dict[str, PlannedCell], hypothesis: Hypothesis
) -> tuple[PlannedCell, PlannedCell]:
    return questions[hypothesis.variant], questions[hypothesis.reference]


def _seeds(questions: Sequence[PlannedCell], seeds: range) -> Iterator[PlannedCell]:
    return (one.at(seed) for seed in seeds for one in questions)
