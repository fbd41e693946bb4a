"""Networks of equal size: a variant's backbone, made wider or narrower until it costs the same."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from bench.api import registry
from bench.api.backbone import BACKBONES
from bench.api.cell import Cell
from bench.api.config import build_config
from bench.api.errors import DataDamaged, DataUnavailable, InvalidConfig, Refused
from bench.api.options import canonical, complete
from bench.api.plain_text import named_message_of
from bench.api.selector import parse
from bench.api.task import TASKS, Task
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops, parameters
from bench.training.precision import place
from bench.training.step_time import UNIT, refuse_noise, relative_time, step_seconds
from bench.training.system import System

WITHIN = 0.02
"""Sizes that differ by a smaller share count as equal."""
WIDEST = 4
"""Most times the width that a task proposes."""
STEPS = (1, 2, 4, 8, 16)
"""Distances between widths that a network may have; heads must divide them."""

Measure = Callable[[System, Task, Cell], int]


MEASURES: dict[str, tuple[Measure, str]] = {
    "params": (parameters, "trained parameters"),
    "flops": (forward_flops, "forward FLOPs"),
}
"""What is counted, and how a sentence calls it."""
BY_TIME = ("time", "CPU time of a training step")
"""What is timed beside the baseline instead."""


@dataclass
class Matcher:
    """Resizes the networks of cells; a task is made once, and a size is measured once."""

    by: str
    """A key of `MEASURES`, or `time`."""
    data_dir: Path | None
    _tasks: dict[tuple[str, int], Task] = field(default_factory=dict)
    _sizes: dict[tuple[str, str], int | None] = field(default_factory=dict)
    _steps: dict[str, Callable[[], float]] = field(default_factory=dict)
    _noise: dict[str, Refused | None] = field(default_factory=dict)
    """Whether a baseline differs from itself, so that nothing is matched with it by time."""

    def matched(self, cell: Cell, like: Cell) -> Cell:
        """The cell with a backbone whose size is that of another cell's network, within 2%.

        A network that is near enough stays as it is, and so does a cell that cannot be trained:
        its row says why.

        Raises:
            Refused: The baseline cannot be trained, no width of this backbone comes near enough,
                or the machine is too busy to tell times apart.
        """
        if self._size(cell, cell) is None:
            return cell
        target = self._size(like, like)
        if target is None:
            raise Refused(
                "the baseline cannot be trained on this task, so there is nothing to match."
            )
        self._refuse_noise(like)
        mine = self._size(cell, like)
        if mine is None or _near(mine, target):
            return cell
        knobs = registry.find(BACKBONES, parse(cell.backbone).name).target.sized_by
        nearest = cell
        for knob in knobs:
            nearest = self._nearest(nearest, knob, target, like)
            if _near(self._size(nearest, like) or 0, target):
                return nearest
        raise Refused(self._why_not(nearest, knobs, target, like))

    def _refuse_noise(self, like: Cell) -> None:
        """Time a baseline beside itself, once, so that all its cells are matched or none."""
        if self.by != BY_TIME[0]:
            return
        if like.id not in self._noise:
            try:
                with torch.random.fork_rng(devices=()):
                    refuse_noise(self._step(like), WITHIN)
                self._noise[like.id] = None
            except Refused as error:
                self._noise[like.id] = error
        found = self._noise[like.id]
        if found is not None:
            raise found

    def _why_not(self, nearest: Cell, knobs: tuple[str, ...], target: int, like: Cell) -> str:
        what = BY_TIME[1] if self.by == BY_TIME[0] else MEASURES[self.by][1]
        name = parse(nearest.backbone).name
        if not knobs:
            return f"{name} declares no option that makes it wider or narrower (`sized_by`)."
        off = (self._size(nearest, like) or 0) / target - 1
        return (
            f"no {' or '.join(knobs)} of {name} gives it the {what} of the baseline within "
            f"{WITHIN:.0%}; the nearest has {off:+.1%}."
        )

    def _nearest(self, cell: Cell, knob: str, target: int, like: Cell) -> Cell:
        """The width whose size is nearest, by halving an interval; sizes grow with widths."""
        usual = _width(cell, knob)
        if usual is None:
            return cell
        found = {usual: cell}
        for step in STEPS:
            neighbor = _with(cell, knob, usual + step)
            if neighbor is not None and self._size(neighbor, like) is not None:
                found[usual + step] = neighbor
                break
        else:
            return cell
        low, high = -((usual - 1) // step), (WIDEST - 1) * usual // step
        while low < high:
            middle = (low + high) // 2
            width = usual + middle * step
            there = _with(cell, knob, width)
            size = self._size(there, like) if there is not None else None
            if there is None or size is None:
                break
            found[width] = there
            low, high = (middle + 1, high) if size < target else (low, middle)
        last = _with(cell, knob, usual + low * step)
        found |= {usual + low * step: last} if last is not None else {}
        return min(found.values(), key=lambda one: abs((self._size(one, like) or 0) - target))

    def _size(self, cell: Cell, like: Cell) -> int | None:
        """Measured at this seed; None for a cell that cannot be trained.

        A time is one beside the time of `like`; what is counted does not depend on it.
        """
        beside = like if self.by == BY_TIME[0] else cell
        key = (replace(cell, seed=0).id, replace(beside, seed=0).id)
        if key not in self._sizes:
            try:
                self._sizes[key] = self._measured(cell, like)
            except (Refused, InvalidConfig, DataUnavailable, DataDamaged):
                self._sizes[key] = None
            except Exception as error:  # a mistake of a plug-in, or memory that is lacking now
                raise Refused(
                    f"the size of {cell.variant} could not be measured: {named_message_of(error)}"
                ) from error
        return self._sizes[key]

    def _measured(self, cell: Cell, like: Cell) -> int:
        devices = [torch.device("cuda")] if cell.device == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            if self.by != BY_TIME[0]:
                measure, _ = MEASURES[self.by]
                return measure(*self._built(cell), cell)
            step = step_seconds(*self._built(cell), cell)
            if cell == like:
                step()  # one step shows whether it can be trained
                return UNIT
            return relative_time(step, self._step(like))

    def _step(self, cell: Cell) -> Callable[[], float]:
        """The step of a network that others are timed beside; it is built once."""
        if cell.id not in self._steps:
            self._steps[cell.id] = step_seconds(*self._built(cell), cell)
        return self._steps[cell.id]

    def _built(self, cell: Cell) -> tuple[System, Task]:
        drawn = (cell.task, cell.seed)
        if drawn not in self._tasks:
            self._tasks[drawn] = registry.make(TASKS, parse(cell.task), cell.seed, self.data_dir)
        torch.manual_seed(cell.seed)
        built = assemble(cell, self.data_dir, self._tasks[drawn])
        place(built.system, cell)
        return built.system, built.task


def _width(cell: Cell, knob: str) -> int | None:
    """What an option makes wide or narrow, as it is; None for nothing."""
    chosen = parse(cell.backbone)
    found = registry.find(BACKBONES, chosen.name)
    config = build_config(found.config, dict(chosen.options), chosen.name)
    width: object = getattr(config, found.target.size_of.get(knob, knob))
    return width if isinstance(width, int) and width > 0 else None


def _near(size: int, target: int) -> bool:
    return abs(size - target) <= WITHIN * target


def _with(cell: Cell, knob: str, width: int) -> Cell | None:
    """The cell with another width; None where the backbone refuses it."""
    backbone = complete(BACKBONES, parse(cell.backbone)).with_options(**{knob: width})
    try:
        return replace(cell, backbone=canonical(BACKBONES, backbone).show())
    except InvalidConfig:
        return None
