"""Labeled edges: each token asks for the symbol at the end of one of its edges, by the label.

The tokens are nodes of a directed graph, whose edges have labels. Neither content nor distance says
where an edge leads, so that attention needs relations (Shaw et al., 2018, "Self-attention with
relative position representations", https://arxiv.org/abs/1803.02155, section 3.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import FIRST, ROSTER, Diagnostic

FEWEST = 0.5
"""Nodes of a training graph that must be asked in the mean, so that a batch has some."""


def asked_nodes(length: int, labels: int, hops: int) -> float:
    """Mean number of nodes of a graph whose chain of edges is whole, which are those asked.

    >>> asked_nodes(length=16, labels=3, hops=1), asked_nodes(length=8, labels=2, hops=20)
    (13.0, 0.0)
    """
    whole = [1.0] * length
    for _ in range(min(hops, length)):
        # an edge leads to any earlier node, and the first ones have no edges
        before = [0.0, *accumulate(whole)]
        whole = [before[node] / node if node >= labels else 0.0 for node in range(length)]
    return sum(whole)


@dataclass(frozen=True, kw_only=True)
class LabeledEdgesConfig(Config):
    """Options of labeled edges."""

    length: Annotated[int, IntRange(4, 256, log=True)] = 16
    """Nodes in training."""
    beyond: int = 32
    """Largest graph of the test (nodes)."""
    labels: Annotated[int, IntRange(1, 16)] = 3
    """Labels; each node has one edge of each, to an earlier node."""
    hops: Annotated[int, IntRange(1, 4)] = 1
    """Edges to follow, all of the label that is asked."""
    symbols: Annotated[int, IntRange(2, 100)] = 8
    """Symbols."""
    evaluate: int = 128
    """Examples of validation, and of each size of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if min(self.labels, self.hops, self.evaluate) < 1 or self.symbols < 2:
            raise InvalidConfig(
                "labeled_edges: labels, hops and evaluate must be at least 1 and symbols 2, got "
                f"{self.labels}, {self.hops}, {self.evaluate}, {self.symbols}."
            )
        if not 2 * self.labels < self.length <= self.beyond:
            raise InvalidConfig(
                "labeled_edges: 2 * labels < length <= beyond, "
                f"got {self.labels}, {self.length}, {self.beyond}."
            )
        asked = asked_nodes(self.length, self.labels, self.hops)
        if asked < FEWEST:
            raise InvalidConfig(
                f"labeled_edges: in a graph of {self.length} nodes with {self.labels} labels "
                f"{asked:.2g} nodes in the mean have a chain of hops={self.hops}, and at least "
                f"{FEWEST} must; give more nodes, fewer labels or fewer hops."
            )


@register("task", "labeled_edges", config=LabeledEdgesConfig)
class LabeledEdges(Diagnostic):
    """A token asks for a label; the answer is the symbol along that edge, seen by relations alone.

    >>> task = LabeledEdges(LabeledEdgesConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> node = batch.mask[0].tolist().index(True)
    >>> asked = (batch.inputs[0, node] - 4) % 3 + 1
    >>> (linked,) = (batch.relations[0, node] == asked).nonzero().flatten().tolist()
    >>> task.tokens(batch.targets[0, [node]].tolist(), source=False)
    ['w5']
    >>> task.tokens(batch.inputs[0, [linked]].tolist(), source=True)
    ['w5?r3']
    """

    capabilities = frozenset({"relations"})
    comparison = (Entry(variant="relation_aware"), *ROSTER)
    presets = {
        "smoke": TaskPreset(
            options="labeled_edges[length=8,beyond=10,labels=2,evaluate=16]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="labeled_edges",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=2.0,
        ),
        "standard": TaskPreset(
            options="labeled_edges[length=32,beyond=64,labels=4,hops=2,symbols=16]",
            backbone="transformer_decoder[width=64,layers=3]",
            protocol="adam[lr=0.003,steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=240.0,
        ),
    }

    def __init__(self, config: LabeledEdgesConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        self.start([config.length], [middle, config.beyond], config.evaluate)
        words = FIRST + config.symbols * config.labels
        self.sizes = Sizes((), words, config.beyond, relations=config.labels + 1)

    @classmethod
    def trained_to_of(cls, config: LabeledEdgesConfig) -> float:
        """The nodes of a graph in training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: LabeledEdgesConfig) -> float:
        """Any one symbol."""
        return 1 / config.symbols

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Graphs of one size; the first nodes have no edges and are not asked."""
        config, count = self.config, self.config.labels
        symbols = torch.randint(config.symbols, (rows, level), generator=generator)
        asked = torch.randint(count, (rows, level), generator=generator)
        # each node's edges go to different earlier nodes, drawn as the first of a random order
        order = torch.rand(rows, level, level, generator=generator)
        order = order.masked_fill(torch.ones(level, level, dtype=torch.bool).triu(), 2.0)
        linked = order.argsort(-1)[..., :count]
        relations = torch.zeros(rows, level, level, dtype=torch.int64)
        names = torch.arange(1, count + 1).expand(rows, level, -1)
        relations.scatter_(-1, linked, names)
        relations[:, :count] = 0
        found, mask = torch.arange(level).expand(rows, -1), torch.ones(rows, level) > 0
        for _ in range(config.hops):
            mask = mask & (found >= count)
            edges = linked.gather(1, found.unsqueeze(-1).expand(-1, -1, count))
            found = edges.gather(-1, asked.unsqueeze(-1)).squeeze(-1)
        inputs = FIRST + symbols * count + asked
        targets = torch.where(mask, FIRST + symbols.gather(1, found), 0)
        return Batch(sources=(), inputs=inputs, targets=targets, mask=mask, relations=relations)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number, in a source with the label that they ask for."""
        count = self.config.labels
        if not source:
            return [f"w{number - FIRST}" if number >= FIRST else "·" for number in ids]
        pairs = [divmod(number - FIRST, count) for number in ids]
        return [f"w{symbol}?r{label + 1}" for symbol, label in pairs]
