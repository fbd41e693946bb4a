"""DeepSeek sparse attention: softmax over the keys that a small, cheap indexer scores highest.

DeepSeek-AI, 2025, "DeepSeek-V3.2: pushing the frontier of open large language models",
https://arxiv.org/abs/2512.02556, section 2.1, equations 1 to 4. The heads share the choice.

Deviations: training is from scratch. For its first share all keys are read, as in the paper's
warm-up, but nothing is frozen; after it they are chosen. The indexer has no norm and no rotary
positions, and computes in the precision of the rest. The heads are those of the slot; `head=mla`
has the paper's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.mask import Windows
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy
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
    listed,
    oracle_best,
    oracle_divergence,
    oracle_index,
)
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class DsaConfig(IndexerConfig):
    """Options of the indexer and of its choice."""

    owner = "dsa"
    chosen: Annotated[int, IntRange(2, 2048, log=True)] = 8
    """Keys that a query reads, k; the paper has 2048."""

    def __post_init__(self) -> None:
        """Check the number that is chosen, and the indexer."""
        super().__post_init__()
        if self.chosen < 1:
            raise InvalidConfig(f"dsa: chosen must be at least 1, got {self.chosen}.")


PAPER = Citation(
    text="DeepSeek-AI, 2025", url="https://arxiv.org/abs/2512.02556", where="section 2.1"
)


@register("normalizer", "dsa", config=DsaConfig, citation=PAPER)
class DsaNormalizer(Normalizer):
    """softmax(e) over the k keys of the highest I = sum_j w_j ReLU(q_j . k) / sqrt(J w).

    The term `indexer_kl` is the divergence of softmax(I) from the heads' mean weights, over the
    keys that are read. It alone teaches the indexer, and teaches nothing else. Time O(L S) for the
    indexer and O(L k E) for the rest on long sequences, else O(L S E).
    """

    gives = frozenset({"simplex", "jumps", "indexer"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: DsaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.window_width = config.chosen
        self.query_inputs = inputs_of_queries(config.index_heads, config.index_width)
        self.key_inputs = {KEY: input_of_keys(config.index_width)}

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Score all keys, read the best, and say how far scores and weights are apart."""
        allowed = call.written_allowed if allowed is None else allowed
        index = at_least_single(index_scores(call, leaf(call.memory.source.extras, KEY).squeeze(1)))
        warm = call.progress < self.config.warm_up
        read = allowed if warm else best_keys(index, allowed, self.config.chosen)
        weights = masked_softmax(energy, read)
        apart = divergence(index, at_least_single(weights), read)
        return Normalized(weights, terms={KL: apart.to(energy.dtype)})

    def gather(self, call: Call, allowed: Allowed | None) -> Windows | None:
        """The keys of the highest scores; nothing while everything is read.

        Nor where heads may see other keys, because the index key of a copied window is one of all
        heads.
        """
        if call.progress < self.config.warm_up:
            return None
        allowed = call.written_allowed if allowed is None else allowed
        if allowed.shape[1] > 1:
            return None
        index = at_least_single(index_scores(call, leaf(call.memory.source.extras, KEY).squeeze(1)))
        return listed(best_keys(index, allowed, self.config.chosen), self.config.chosen)

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Key by key."""
        index = oracle_index(one.extras[QUERY], one.extras[WEIGHT], list(one.key_extras[KEY]))
        read = allowed
        if one.progress >= self.config.warm_up:
            read = oracle_best(index, allowed, self.config.chosen)
        weights = oracle_softmax(energy, read)
        one.said["index"] = torch.stack(index)
        one.said["read"] = torch.tensor(read)
        one.said["weights"] = weights.detach()
        return weights

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """The divergence from all heads together."""
        index = list(said[0]["index"])
        read = [any(bool(head["read"][s]) for head in said) for s in range(len(index))]
        return {KL: oracle_divergence(index, [head["weights"].tolist() for head in said], read)}


register_recipe(
    "dsa",
    Recipe(axes={"normalizer": "dsa", "loss": "indexer_kl"}, main="normalizer"),
    module=__name__,
    title="DeepSeek sparse attention (DSA)",
    citation=PAPER,
    cost=2.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "DeepSeek-AI report the quality of full attention at a fraction of its time for texts of "
        "128 thousand tokens. Sequences of this task have at most 128 symbols, so nothing has to "
        "be left out. Costs are in the tables of speed."
    ),
)
