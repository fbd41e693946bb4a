"""A small decoder's run, drawn in float64, for outputs that are tested without a backbone."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.output import OutputSizes
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace

ROWS, STEPS, KEYS, VOCAB, EXTRA, UNK = 3, 4, 5, 7, 2, 3
STATES, CONTEXT, EMBEDDED = 4, 6, 2


class Scene:
    """Three rows, four steps, five keys (the last rows padded), seven words and two copied ones."""

    rows, steps, keys, vocab, extra, unk = ROWS, STEPS, KEYS, VOCAB, EXTRA, UNK

    @staticmethod
    def normal(*shape: int, seed: int = 0) -> torch.Tensor:
        rng = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    @staticmethod
    def sizes(**changes: int) -> OutputSizes:
        given = {
            "vocab": VOCAB,
            "states": STATES,
            "context": CONTEXT,
            "embedded": EMBEDDED,
            "unk": UNK,
            "source": CONTEXT,
            "source_vocab": VOCAB,
        }
        return OutputSizes(**{**given, **changes})

    def output(self, selector: str, seed: int = 1, **sizes: int) -> Any:
        made = make("output", parse(selector), self.sizes(**sizes)).double()
        with torch.no_grad():
            for index, parameter in enumerate(made.parameters()):
                parameter.copy_(0.7 * self.normal(*parameter.shape, seed=seed + 10 * index))
        return made

    def emit(
        self, states: torch.Tensor, context: torch.Tensor, embedded: torch.Tensor
    ) -> torch.Tensor:
        hidden = states @ self.normal(STATES, 8, seed=1) + embedded @ self.normal(2, 8, seed=3)
        if context.shape[-1]:
            hidden = hidden + context @ self.normal(CONTEXT, 8, seed=2)
        return torch.tanh(hidden) @ self.normal(8, VOCAB, seed=4)

    def trace(self, *, heads: int = 1, real: tuple[int, ...] = (5, 4, 2), seed: int = 0) -> Trace:
        mask = torch.arange(KEYS) < torch.tensor(real)[:, None]
        value = self.normal(ROWS, heads, KEYS, CONTEXT, seed=seed + 5)
        energy = self.normal(ROWS, heads, STEPS, KEYS, seed=seed + 6)
        weights = torch.softmax(energy.masked_fill(~mask[:, None, None], -1e30), -1)
        weights = torch.where(mask[:, None, None], weights, 0.0)
        context = (weights @ value).mean(1)
        attended = Attended(context[:, None], weights, State(), {})
        states = self.normal(ROWS, STEPS, STATES, seed=seed + 7)
        embedded = self.normal(ROWS, STEPS, EMBEDDED, seed=seed + 8)
        return Trace(states, context, embedded, (attended,), (Memory(Source(value, value, mask)),))

    def batch(self, **changes: Any) -> Batch:
        """Row 0 repeats word 5 and holds both extra ids; row 2 is two words and padding."""
        extended = torch.tensor([[5, 7, 5, 8, 4], [7, 6, 7, 4, 0], [4, 5, 0, 0, 0]])
        source = torch.where(extended >= VOCAB, UNK, extended)
        targets = torch.tensor([[5, 7, 8, 2], [7, 6, 2, 0], [4, 2, 0, 0]])
        mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=torch.bool)
        seen = torch.where(targets >= VOCAB, UNK, targets)
        inputs = torch.cat((torch.ones(ROWS, 1, dtype=torch.int64), seen[:, :-1]), 1)
        real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], dtype=torch.bool)
        given = {
            "sources": (Text(source, real),),
            "inputs": inputs,
            "targets": targets,
            "mask": mask,
            "extended": extended,
            "num_extra": EXTRA,
        }
        return Batch(**{**given, **changes})

    @staticmethod
    def at_targets(log_probs: torch.Tensor, batch: Batch) -> torch.Tensor:
        chosen = log_probs.gather(-1, batch.targets[..., None])[..., 0]
        return torch.where(batch.mask, -chosen, 0.0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def example():
    """`example(trace, batch, row)`: one row alone, without the keys that are padding."""

    def alone(trace: Trace, batch: Batch, row: int) -> tuple[Trace, Batch]:
        at, (memory,), (attended,) = slice(row, row + 1), trace.memories, trace.attended
        real = slice(None) if memory is None else memory.source.key_mask()[row]
        if memory is not None:
            memory = Memory(
                Source(memory.source.key[at][:, :, real], memory.source.value[at][:, :, real])
            )
        found = attended._replace(weights=attended.weights[at][..., real])
        one = batch.select(torch.tensor([row]))
        if one.extended is not None:
            one = replace(one, extended=one.extended[:, real])
        return Trace(*(x[at] for x in trace[:3]), (found,), (memory,)), one

    return alone
