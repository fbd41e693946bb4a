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
from bench.api.noise import Noise
from bench.api.options import canonical, complete
from bench.api.selector import parse
from bench.api.task import TASKS, Task
from bench.api.trace import Mode
from bench.timing.flops import count_operations
from bench.training.assemble import assemble
from bench.training.protocol import read_protocol
from bench.training.system import System

WITHIN = 0.02
"""Sizes that differ by a smaller share count as equal."""
WIDEST = 4
"""Most times the width that a task proposes."""
STEPS = (1, 2, 4, 8, 16)
"""Distances between widths that a network may have; heads must divide them."""

Measure = Callable[[System, Task, Cell], int]


def parameters(system: System, task: Task, cell: Cell) -> int:
    """Trained parameters of the whole network."""
    return sum(one.numel() for one in system.parameters() if one.requires_grad)


def forward_flops(system: System, task: Task, cell: Cell) -> int:
    """FLOPs of the matrix products of one forward pass over the first batch of training."""
    generator = torch.Generator().manual_seed(cell.seed)
    batch = next(iter(task.training(read_protocol(cell.protocol).batch, generator)))
    mode = Mode(read="train", noise=Noise(cell.seed))
    return count_operations(lambda: system.losses(batch, mode, system.init_carry())).matmul_flops


MEASURES: dict[str, tuple[Measure, str]] = {
    "params": (parameters, "trained parameters"),
    "flops": (forward_flops, "forward FLOPs"),
}
"""What may be made equal, and how a sentence calls it."""


@dataclass
class Matcher:
    """Resizes the networks of cells; a task is made once, and a size is measured once."""

    by: str
    """A key of `MEASURES`."""
    data_dir: Path | None
    _tasks: dict[tuple[str, int], Task] = field(default_factory=dict)
    _sizes: dict[str, int | None] = field(default_factory=dict)

    def matched(self, cell: Cell, like: Cell) -> Cell:
        """The cell with a backbone whose size is that of another cell's network, within 2%.

        A network that is near enough stays as it is, and so does a cell that cannot be trained:
        its row says why.

        Raises:
            Refused: No width of this backbone comes near enough.
        """
        mine, target = self._size(cell), self._size(like)
        if mine is None or target is None or _near(mine, target):
            return cell
        knobs = registry.find(BACKBONES, parse(cell.backbone).name).target.sized_by
        nearest = cell
        for knob in knobs:
            nearest = self._nearest(nearest, knob, target)
            if _near(self._size(nearest) or 0, target):
                return nearest
        raise Refused(self._why_not(nearest, knobs, target))

    def _why_not(self, nearest: Cell, knobs: tuple[str, ...], target: int) -> str:
        what, name = MEASURES[self.by][1], parse(nearest.backbone).name
        if not knobs:
            return f"{name} declares no option that makes it wider or narrower (`sized_by`)."
        off = (self._size(nearest) or 0) / target - 1
        return (
            f"no {' or '.join(knobs)} of {name} gives it the {what} of the baseline within "
            f"{WITHIN:.0%}; the nearest has {off:+.1%}."
        )

    def _nearest(self, cell: Cell, knob: str, target: int) -> Cell:
        """The width whose size is nearest, by halving an interval; sizes grow with widths."""
        usual = _width(cell, knob)
        if usual is None:
            return cell
        found = {usual: cell}
        for step in STEPS:
            neighbor = _with(cell, knob, usual + step)
            if neighbor is not None and self._size(neighbor) is not None:
                found[usual + step] = neighbor
                break
        else:
            return cell
        low, high = -((usual - 1) // step), (WIDEST - 1) * usual // step
        while low < high:
            middle = (low + high) // 2
            width = usual + middle * step
            there = _with(cell, knob, width)
            size = self._size(there) if there is not None else None
            if there is None or size is None:
                break
            found[width] = there
            low, high = (middle + 1, high) if size < target else (low, middle)
        last = _with(cell, knob, usual + low * step)
        found |= {usual + low * step: last} if last is not None else {}
        return min(found.values(), key=lambda one: abs((self._size(one) or 0) - target))

    def _size(self, cell: Cell) -> int | None:
        """Measured at this seed; None for a cell that cannot be built."""
        key = replace(cell, seed=0).id
        if key not in self._sizes:
            try:
                self._sizes[key] = self._measured(cell)
            except (Refused, InvalidConfig, DataUnavailable, DataDamaged):
                self._sizes[key] = None
        return self._sizes[key]

    def _measured(self, cell: Cell) -> int:
        place = (cell.task, cell.seed)
        if place not in self._tasks:
            self._tasks[place] = registry.make(TASKS, parse(cell.task), cell.seed, self.data_dir)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(cell.seed)
            built = assemble(cell, self.data_dir, self._tasks[place])
            measure, _ = MEASURES[self.by]
            return measure(built.system, built.task, cell)


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
