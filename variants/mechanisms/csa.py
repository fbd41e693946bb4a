"""Compressed sparse attention: an indexer chooses entries of short blocks, beside a near window.

DeepSeek-AI, 2026, "DeepSeek-V4: towards highly efficient million-token context intelligence",
https://arxiv.org/abs/2606.19348, section 2.3.1. An entry is made of its block and of the
one before.

Deviations: those of `hca`; both halves of an entry compress the same keys and values, with gates of
their own. By default 4 entries are chosen beside a window of 8 keys; the authors' networks choose
hundreds, and their window has 128 keys. How the indexer is trained is ours: as that of `dsa`, by
its divergence from the heads' mean weights of the entries that are read, and with a share of
training that reads all of them. It has no norm and no rotary positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, OracleOptions
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed
from bench.api.source import Tree, leaf
from variants.lightning_indexer import (
    KEY,
    KL,
    QUERY,
    WEIGHT,
    IndexerConfig,
    best_keys,
    divergence,
    index_scores,
    input_of_keys,
    inputs_of_queries,
    oracle_best,
    oracle_divergence,
    oracle_index,
)
from variants.mechanisms.compressed_entries import Choice, CompressedEntries
from variants.precision import at_least_single

INDEX_GATE = f"{KEY}_gate"
"""Input of each key: the gates of the indexer's keys, which are compressed, too."""


@dataclass(frozen=True, kw_only=True)
class CsaConfig(IndexerConfig):
    """Options of compressed sparse attention."""

    owner = "csa"
    block: Annotated[int, IntRange(2, 64, log=True)] = 4
    """Keys of a block; as in the paper."""
    chosen: Annotated[int, IntRange(2, 1024, log=True)] = 4
    """Entries that a query reads."""
    window: Annotated[int, IntRange(2, 512, log=True)] = 8
    """Last keys that are read as they are, the query's own among them (keys)."""

    def __post_init__(self) -> None:
        """Check the number that is chosen, and the indexer."""
        super().__post_init__()
        if self.chosen < 1:
            raise InvalidConfig(f"csa: chosen must be at least 1, got {self.chosen}.")


@register(
    "mechanism",
    "csa",
    title="Compressed sparse attention (CSA)",
    config=CsaConfig,
    citation=Citation(
        text="DeepSeek-AI, 2026", url="https://arxiv.org/abs/2606.19348", where="section 2.3.1"
    ),
    cost=2.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "DeepSeek-AI report a tenth of the cache and about a quarter of the operations of their "
        "earlier network for 1 million tokens, with 1.6 trillion parameters. Here entries that are "
        "not chosen are masked, which saves no time, and sequences have at most 128 symbols."
    ),
)
class Csa(CompressedEntries):
    """softmax over the window and the k entries of the highest I = sum_j w_j ReLU(q_j . k).

    I is divided by the root of J w, for J heads that are w wide. The indexer's keys are compressed
    as keys and values are. Its term `indexer_kl` is that of `dsa`, over entries.
    """

    gives = frozenset({"jumps", "indexer"})
    usual_loss = "indexer_kl"
    series = 2

    def __init__(self, config: CsaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__("csa", dims, impl, block=config.block, window=config.window)
        self.config = config
        width = config.index_width
        self.query_inputs = inputs_of_queries(config.index_heads, width)
        self.key_inputs = {
            **self.key_inputs,
            KEY: input_of_keys(width),
            INDEX_GATE: SlotInput(self.series * width, shared=True, detached=True),
        }
        self.index_bias = nn.Parameter(torch.zeros(1, config.block, self.series, width))
        self.starts = {**self.starts, "index_bias": 0.0}

    def biases(self) -> dict[str, Tensor]:
        """Keys, values, and keys of the indexer."""
        return super().biases() | {KEY: self.index_bias}

    def choose(self, call: Call, entries: Tree, closed: Allowed) -> Choice:
        """Score entries and read the best."""
        index = at_least_single(index_scores(call, leaf(entries, KEY).squeeze(1)))
        warm = call.progress < self.config.warm_up
        return Choice(closed if warm else best_keys(index, closed, self.config.chosen), index)

    def terms(
        self, choice: Choice, weights: Float[Tensor, "B Hq L N"]
    ) -> dict[str, Float[Tensor, "B L"]]:
        """How far the indexer is from what entries weigh."""
        assert choice.scores is not None, "this mechanism chooses by scores"
        apart = divergence(choice.scores, at_least_single(weights), choice.read)
        return {KL: apart.to(weights.dtype)}

    def oracle_choose(
        self,
        t: int,
        entries: Mapping[str, list[list[Tensor]]],
        closed: list[bool],
        call: OracleOptions,
    ) -> tuple[list[bool], list[Tensor]]:
        """Entry by entry."""
        given = call.get("extras") or {}
        index = oracle_index(given[QUERY][t, 0], given[WEIGHT][t, 0], entries[KEY][0])
        if call.get("progress", 1.0) < self.config.warm_up:
            return closed, index
        return oracle_best(index, closed, self.config.chosen), index

    def oracle_terms(
        self, index: list[Tensor], heads: list[list[float]], chosen: list[bool]
    ) -> dict[str, Tensor]:
        """The divergence from all heads together."""
        if not index:
            return {KL: torch.zeros((), dtype=self.key_bias.dtype)}
        return {KL: oracle_divergence(index, heads, chosen)}
