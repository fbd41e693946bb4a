"""Backbones as the harness builds them, small, in float64, with every parameter drawn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch, Sizes, Text
from bench.api.build import build_slot
from bench.api.registry import DefaultTask
from bench.api.resolve import canonical_backbone, resolve
from bench.api.task import Task
from bench.api.trace import Trace
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble

TASK = "transduction[rule=reverse,min_length=1,max_length=5,vocab=6]"


class Built(NamedTuple):
    backbone: Backbone
    task: Task
    batch: Batch
    """Four training examples of mixed lengths."""


@pytest.fixture
def built() -> Callable[..., Built]:
    """`built(variant, task=.., backbone=.., slot=.., seed=..)` -> `Built`."""

    def make(
        variant: str = "additive",
        *,
        task: str = TASK,
        backbone: str = "",
        slot: str = "",
        seed: int = 0,
        rows: int = 4,
    ) -> Built:
        request = Request(preset="smoke", backbone=backbone, slot=slot)
        cell = quality_cell(request, resolve(variant), DefaultTask(task=task), seed).cell
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            made = assemble(cell, None)
        network = made.system.there.double()
        draw_parameters(network, seed)
        stream = made.task.training(rows, torch.Generator().manual_seed(seed))
        return Built(network, made.task, next(stream))

    return make


@pytest.fixture
def placed() -> Callable[..., Backbone]:
    """`placed(backbone, variant, sources, targets, slot=.., capabilities=..)`: a network alone.

    `sources` are source vocabularies, `targets` the target vocabulary; slots that do not hold the
    variant hold the plain one of their regime.
    """

    def make(
        backbone: str,
        variant: str,
        sources: tuple[int, ...],
        targets: int,
        *,
        slot: str = "",
        capabilities: frozenset[str] = frozenset(),
        max_length: int = 12,
        seed: int = 0,
    ) -> Backbone:
        spec = resolve(variant)
        parts = BackboneParts(
            sizes=Sizes(sources, targets, max_length),
            attach=lambda place: build_slot(spec, place),
            attach_default=lambda place: build_slot(resolve("scaled_dot"), place),
            attach_named=lambda named, place: build_slot(resolve(named), place),
            output=lambda sizes: registry.make("output", spec.axes["output"][0], sizes),
            slot=slot,
            capabilities=capabilities | {"padding", "stepwise"},
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            made = registry.make("backbone", canonical_backbone(backbone, {}), parts).double()
        draw_parameters(made, seed + 1)
        return made

    return make


def draw_parameters(network: torch.nn.Module, seed: int) -> None:
    """No parameter stays at a zero where it began, not even the padding's embedding."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            drawn = torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype)
            parameter.add_(0.3 * drawn)


@pytest.fixture
def draw() -> Callable[[torch.nn.Module, int], None]:
    return draw_parameters


@pytest.fixture
def alone() -> Callable[[Batch, int], Batch]:
    """`alone(batch, row)` -> the example by itself, without any padding."""

    def cut(batch: Batch, row: int) -> Batch:
        texts = []
        for text in batch.sources:
            real = slice(None) if text.mask is None else text.mask[row]
            texts.append(Text(text.tokens[row : row + 1, real], None))
        kept = batch.mask[row]
        source = slice(None) if batch.sources[0].mask is None else batch.sources[0].mask[row]
        return replace(
            batch,
            sources=tuple(texts),
            inputs=batch.inputs[row : row + 1, kept],
            targets=batch.targets[row : row + 1, kept],
            mask=batch.mask[row : row + 1, kept],
            extended=None if batch.extended is None else batch.extended[row : row + 1, source],
            gold=None,
        )

    return cut


@pytest.fixture
def logits() -> Callable[[Backbone, Trace], torch.Tensor]:
    """What the vocabulary projection says, in the network's own precision."""

    def emit(backbone: Backbone, trace: Trace) -> Any:
        return backbone.emit(trace.states, trace.context, trace.embedded)

    return emit


@pytest.fixture
def near() -> Callable[..., None]:
    def check(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-10) -> None:
        assert found.shape == expected.shape
        assert ((found - expected).abs() < tolerance).all()

    return check
