"""Networks that were not trained, as probes see them; drawn parameters are good enough."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bench.api.probe import Subject
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.cli.registered import load_registry
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble

TASK = "transduction[rule=reverse,min_length=1,max_length=5,vocab=6]"


@pytest.fixture(autouse=True, scope="session")
def _everything_is_loaded():
    load_registry(())


@pytest.fixture
def subject() -> Callable[..., Subject]:
    """`subject(variant, task=.., backbone=.., slot=.., seed=.., batches=..)`, in float64."""

    def make(
        variant: str = "additive",
        *,
        task: str = TASK,
        backbone: str = "",
        slot: str = "",
        seed: int = 0,
        batches: int = 1,
    ) -> Subject:
        request = Request(preset="smoke", backbone=backbone, slot=slot)
        planned = quality_cell(request, resolve(variant), DefaultTask(task=task), seed)
        torch.manual_seed(seed)
        built = assemble(planned.cell, None)
        backbone_ = built.system.there.double().eval()
        backbone_.requires_grad_(requires_grad=False)
        found = tuple(map(backbone_.arrange, list(built.task.evaluation("test"))[:batches]))
        return Subject(backbone_, built.task, found, seed)

    return make


@pytest.fixture
def padded(subject: Callable[..., Subject]) -> Callable[..., Subject]:
    """`padded(variant)`: the same with one batch of sources of several lengths."""

    def make(variant: str = "additive") -> Subject:
        seen = subject(variant)
        batch = next(seen.task.training(6, torch.Generator().manual_seed(0)))
        (text,) = batch.sources
        assert text.mask is not None
        assert not text.mask.all()
        return replace(seen, batches=(seen.backbone.arrange(batch),))

    return make
