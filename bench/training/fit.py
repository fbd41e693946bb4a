"""What an output counts in the training data before the first update: lexicons."""

from collections.abc import Iterator
from itertools import islice

import torch

from bench.api.batch import Batch
from bench.api.output import Pair
from bench.api.task import Task
from bench.training.evaluate import Clock
from bench.training.system import System


def fit_outputs(
    system: System, task: Task, batch_size: int, seed: int, clock: Clock
) -> float | None:
    """Show each output the training pairs it asks for.

    Returns:
        Seconds by the clock, drawing included; None where no output asks.
    """
    outputs = [backbone.output for backbone in (system.there, system.back) if backbone is not None]
    if not any(output.fit_pairs for output in outputs):
        return None
    start = clock()
    generator = torch.Generator().manual_seed(seed * 7919 + 5)
    stream = _pairs(task.training(batch_size, generator))
    pairs = list(islice(stream, max(output.fit_pairs for output in outputs)))
    system.there.output.fit(pairs)
    if system.back is not None:
        system.back.output.fit([(target, source) for source, target in pairs])
    return clock() - start


def _pairs(batches: Iterator[Batch]) -> Iterator[Pair]:
    """Rows of ids without padding; nothing where there is no source."""
    for batch in batches:
        text = batch.sources[0]
        real = torch.ones_like(text.tokens).bool() if text.mask is None else text.mask
        for source, kept, target, scored in zip(
            text.tokens, real, batch.targets, batch.mask, strict=True
        ):
            yield source[kept].tolist(), target[scored].tolist()
