"""Talking heads: heads mix their energies before the softmax, and their weights after it.

Shazeer et al., 2020, "Talking-heads attention", https://arxiv.org/abs/2003.02436.

Deviations: there are as many heads of keys, of energies and of values, where the paper allows three
numbers. Both maps start as the identity, which is multi-head attention. Positions that add to
energies add to those of each head before heads are mixed, as in a chain; the authors' code adds its
bias behind the mixing.
"""

from collections.abc import Sequence
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Source, Tree
from variants.mechanisms.biased import Biased, biased
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax


@register(
    "mechanism",
    "talking_heads",
    title="Talking-heads attention",
    citation=Citation(text="Shazeer et al., 2020", url="https://arxiv.org/abs/2003.02436"),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Shazeer et al. report lower perplexity of masked words and better answers to questions, "
        "with networks such as the base form of T5 (220 million parameters). It is meant for many "
        "narrow heads. Here the baseline recalls nearly every pair, which leaves no room above it."
    ),
)
class TalkingHeads(Biased):
    """W softmax(M q.k / sqrt(E)), where M and W map heads to heads.

    A row of weights of head h sums to the sum of row h of W, and may hold weights of either sign.
    Time O(L S (E + Hq)) per head.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"signed", "weighted_sum", "key_local"})
    editable = True

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        identity = torch.eye(dims.heads)
        self.scale = dims.key_width**-0.5
        self.before = nn.Parameter(identity.clone())
        self.after = nn.Parameter(identity.clone())
        self.starts = {"before": identity, "after": identity}

    def row_sums(self) -> Float[Tensor, " Hq"]:
        """Each head's share of rows that sum to one."""
        return self.after.sum(1)

    def rows_alone(self) -> bool:
        """No query depends on another one."""
        return True

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Mix, normalize, mix again, read."""
        heads = self.dims.heads
        key = expand_heads(call.memory.source.key, heads)
        energy = self.scale * call.query @ key.transpose(2, 3)
        energy = biased(energy, self.position_energy(call))
        mixed = torch.einsum("gh,bhls->bgls", self.before, energy)
        # hidden after mixing, or one head's hidden energy would fill the others
        weights = masked_softmax(mixed, call.allowed)
        weights = torch.einsum("gh,bhls->bgls", self.after, weights)
        if call.edit is not None:
            weights = call.edit(weights, call)
        output = weights @ expand_heads(call.memory.source.value, heads)
        return MixResult(output, weights, carried, {})

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Query by query, with all heads of it."""
        heads, length, _ = query.shape
        num_keys = source.num_keys
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        rows = []
        for t in range(length):
            seen = [s <= t or self.dims.regime != "causal" for s in range(num_keys)]
            energies = [
                [
                    query[h, t] @ source.key[0, h // group, s] * self.scale + more[h, t, s]
                    for s in range(num_keys)
                ]
                for h in range(heads)
            ]
            single = [
                list(oracle_softmax(torch.stack(_mixed(self.before[g], energies)), seen))
                for g in range(heads)
            ]
            rows.append([torch.stack(_mixed(self.after[g], single)) for g in range(heads)])
        weights = torch.stack([torch.stack([row[h] for row in rows]) for h in range(heads)])
        outputs = [
            sum(
                (weights[h, t, s] * source.value[0, h // value_group, s] for s in range(num_keys)),
                torch.zeros_like(source.value[0, 0, 0]),
            )
            for h in range(heads)
            for t in range(length)
        ]
        return torch.stack(outputs).unflatten(0, (heads, length)), weights


def _mixed(shares: Float[Tensor, " Hq"], of_heads: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """One number for each key: the weighted sum of what each head has there."""
    num_keys = len(of_heads[0])
    return [
        sum((shares[h] * one[s] for h, one in enumerate(of_heads)), torch.zeros_like(shares[0]))
        for s in range(num_keys)
    ]
