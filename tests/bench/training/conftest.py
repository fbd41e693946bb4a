"""Smoke cells, and a clock that nothing else moves."""

from collections.abc import Callable

import pytest

from bench.api.cell import Cell
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request

SMALL = "rnn_seq2seq[hidden=16,embedding=8]"


@pytest.fixture
def smoke() -> Callable[..., Cell]:
    """`smoke(variant, task=.., backbone=.., slot=.., protocol=.., seed=..)` -> a cell."""

    def make(
        variant: str = "additive",
        *,
        task: str = "transduction[evaluate=16]",
        backbone: str | None = None,
        slot: str = "",
        protocol: str = "adam[steps=4,batch=8,evaluate_every=2]",
        seed: int = 0,
    ) -> Cell:
        if backbone is None:
            backbone = SMALL if task.startswith(("transduction", "oov_copy")) else ""
        request = Request(preset="smoke", backbone=backbone, slot=slot, training=protocol)
        return quality_cell(request, resolve(variant), DefaultTask(task=task), seed).cell

    return make


class Ticking:
    """Every look takes one second, whatever the machine does."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock() -> Ticking:
    return Ticking()
