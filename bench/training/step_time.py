"""CPU time of a training step, beside one of another network: what `--match time` makes equal."""

import time
from collections.abc import Callable
from statistics import median

import torch

from bench.api.cell import Cell
from bench.api.errors import Refused
from bench.api.noise import Noise
from bench.api.task import Task
from bench.api.trace import Mode
from bench.training.precision import computing
from bench.training.protocol import read_protocol
from bench.training.system import System

ROUNDS = 16
"""Steps of each network; one of each in turn, so that both meet the same machine."""
UNIT = 1_000_000
"""What stands for the time of the other network: ratios are whole numbers of millionths."""
clock: Callable[[], float] = time.process_time


def step_seconds(system: System, task: Task, cell: Cell) -> Callable[[], float]:
    """A function that takes one step forward and backward, and returns its CPU time (s).

    The batch is the first one of training, the same in every step. The optimizer is left out.
    """
    generator = torch.Generator().manual_seed(cell.seed)
    batch = next(iter(task.training(read_protocol(cell.protocol).batch, generator)))
    system.train()

    def step() -> float:
        started = clock()
        # weights that training does not ask for may need other code, which takes longer
        mode = Mode(read="train", noise=Noise(cell.seed), want_weights=system.wants_weights)
        with computing(cell):
            terms, _ = system.losses(batch, mode, system.init_carry())
        torch.stack(tuple(terms.values())).sum().backward()
        spent = clock() - started
        system.zero_grad(set_to_none=True)
        return spent

    return step


def relative_time(mine: Callable[[], float], other: Callable[[], float]) -> int:
    """Time of a step in millionths of another's: median over rounds of the ratio of two steps.

    The two change places from round to round, and one round that is not counted comes first.
    """
    ratios = []
    for index in range(ROUNDS + 1):
        if index % 2:
            first = mine()
            second = other()
        else:
            second = other()
            first = mine()
        ratios.append(first / second if second else 1.0)
    return round(UNIT * median(ratios[1:]))


def refuse_noise(step: Callable[[], float], within: float) -> None:
    """Time a network beside itself, because what differs from itself cannot be matched.

    Raises:
        Refused: Its two times differ by more than networks that count as equal may.
    """
    off = relative_time(step, step) / UNIT - 1
    if abs(off) > within:
        raise Refused(
            f"two timings of the baseline's training step differ by {off:+.1%} on this machine, "
            f"and equal is within {within:.0%}; stop other work, or use --match flops."
        )
