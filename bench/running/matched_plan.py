"""`--match`: a plan whose networks have the size of the baseline's."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch

from bench.api import registry
from bench.api.cell import Cell, parse_label
from bench.api.errors import InvalidSelector, Refused
from bench.api.selector import Value, parse
from bench.running.code_of_cells import CodeOfCells
from bench.running.left_out import LeftOut, no_time_to_train, not_matched
from bench.running.machine_lock import machine_lock
from bench.running.plan import Plan
from bench.running.quality_cells import PlannedCell
from bench.running.worker import WorkerSettings
from bench.training.matching import BY_TIME, Matcher
from results.comparable import options_between
from results.environment import collect
from results.json_values import as_object, as_text
from results.pack import Pack
from results.store import Store

KEPT = "matched.json"
"""File of a run folder with the networks that were matched by time."""


def match_plan(
    made: Plan,
    data_dir: Path | None,
    store: Store | None = None,
    reused: Store | Pack | None = None,
) -> Plan:
    """Resize the networks of a plan; what cannot be matched is left out, with a sentence.

    Every network is compared with that of the baseline on the same task, in the same slot, at the
    first seed, and all seeds get the same width. Reads data and builds networks, which the planner
    does not: it stays pure, and this comes after it.

    Args:
        made: The plan.
        data_dir: Data directory.
        store: Run folder that keeps the networks that were found by time. The same command takes
            them from there, because a second timing might choose another width. Beside another
            baseline, with other code and on another machine they are found again.
        reused: Run whose cells are taken, and its networks with them, which a pack does not have.
    """
    timed = store if made.request.match == BY_TIME[0] else None
    if timed is not None and reused is not None:
        _take(timed, reused)
    trained: list[PlannedCell] = []
    with _threads_of_a_worker(), ExitStack() as held:
        matches = _Matches(made, Matcher(made.request.match, data_dir), held, timed)
        left = [matches.again(one) for one in made.left_out]
        for planned in made.quality:
            try:
                trained.append(replace(planned, cell=matches.of(planned.cell)))
            except Refused as error:
                left.append(not_matched(made.request, planned.cell, str(error)))
    return replace(made, quality=trained, left_out=left)


def _take(store: Store, reused: Store | Pack) -> None:
    """Keep the networks of another run, too; those that the run folder has stay."""
    found = as_object(reused.read_json(KEPT))
    if found:
        store.update_json(KEPT, lambda held: {**found, **as_object(held)})


@contextmanager
def _threads_of_a_worker() -> Iterator[None]:
    """With all cores a step costs other networks other shares of the time of training."""
    before = torch.get_num_threads()
    torch.set_num_threads(WorkerSettings.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Matches:
    """Backbones that were found, by what asks for them; seeds share them."""

    def __init__(
        self, made: Plan, matcher: Matcher, held: ExitStack, store: Store | None = None
    ) -> None:
        """Take what is shared by all cells.

        Args:
            made: The plan.
            matcher: Finds a network.
            held: Where the lock of the machine goes, once anything is timed.
            store: Where networks are kept; None for nowhere.
        """
        self.request = made.request
        self.matcher = matcher
        self.store = store
        self._held = held
        self._alone = matcher.by != BY_TIME[0]
        self.baseline = made.baseline.canonical.show()
        left = (_left_cell(one) for one in made.left_out)
        every = [*(one.cell for one in made.quality), *(one for one in left if one is not None)]
        self._first = {_place(one): one for one in reversed(every)}
        self._baselines = [one for one in every if one.variant == self.baseline]
        self._found: dict[Cell, str | Refused] = {}
        self._kept = as_object(store.read_json(KEPT) or {}) if store is not None else {}

    def of(self, cell: Cell) -> Cell:
        """The cell in a network of the baseline's size.

        Raises:
            Refused: There is none, or no baseline beside it.
        """
        first = self._first.get(_place(cell), cell)
        if first not in self._found:
            try:
                self._found[first] = self._backbone(first)
            except Refused as error:
                self._found[first] = error
        found = self._found[first]
        if isinstance(found, Refused):
            raise found
        return replace(cell, backbone=found)

    def again(self, left: LeftOut) -> LeftOut:
        """What the budget left out, with the network that it would have had."""
        cell = _left_cell(left)
        if cell is None:
            return left
        try:
            return no_time_to_train(self.request, self.of(cell))
        except Refused as error:
            return not_matched(self.request, cell, str(error))

    def _backbone(self, cell: Cell) -> str:
        if cell.variant == self.baseline:
            return cell.backbone
        like = self._like(cell)
        key = self._key(cell, like)
        if key in self._kept:
            return as_text(self._kept[key])
        if not self._alone:
            instead = "--match flops times nothing"
            self._held.enter_context(machine_lock(exclusive=True, say=_tell, instead=instead))
            self._alone = True
        # a refusal is not kept, for a quiet machine may find a network
        found = self.matcher.matched(cell, like).backbone
        if self.store is not None:
            self.store.update_json(KEPT, lambda held: {**as_object(held or {}), key: found})
        return found

    def _key(self, cell: Cell, like: Cell) -> str:
        """Everything that decides which network takes the time of another one."""
        if self.store is None:
            return ""
        # a network chooses its heads by name while it is built
        heads = [f"head:{name}" for name in registry.registrations("head")]
        told = (f"{one.label} (code {self._code.digest(one, heads)})" for one in (cell, like))
        # what trains a cell does not reach what times a step
        timing = self._code.source.digest((Matcher,))
        return f"{' beside '.join(told)} on {self._machine} (code {timing})"

    @cached_property
    def _code(self) -> CodeOfCells:
        return CodeOfCells()

    @cached_property
    def _machine(self) -> str:
        return collect(WorkerSettings.threads).machine

    def _like(self, cell: Cell) -> Cell:
        """The baseline's cell beside a cell: in the nearest network, of the same seed if it can.

        Raises:
            Refused: There is none.
        """
        beside = [
            one
            for one in self._baselines
            if (one.task, one.slot) == (cell.task, cell.slot)
            and _without_rate(one.protocol) == _without_rate(cell.protocol)
            and parse(one.backbone).name == parse(cell.backbone).name
        ]
        if not beside:
            raise Refused(
                f"the plan holds no {self.baseline} on this task to have the size of; name the "
                "task with --tasks."
            )
        # as reports compare: within the network that differs in fewest options
        mine = parse(cell.backbone)
        return min(
            beside,
            key=lambda one: (options_between(mine, parse(one.backbone)), one.seed != cell.seed),
        )


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _left_cell(left: LeftOut) -> Cell | None:
    """The cell that was left out; None for the timing of a variant, or a task without data."""
    try:
        return parse_label(left.label)
    except InvalidSelector:
        return None


def _without_rate(protocol: str) -> dict[str, Value]:
    """Training options but for the learning rate, which calibration chooses for each variant."""
    return {key: value for key, value in parse(protocol).options.items() if key != "lr"}


def _place(cell: Cell) -> Cell:
    """All that is asked but the seed."""
    return replace(cell, seed=0)
