"""Locality-sensitive hashing: a query sees the keys that fall into its bucket in any hash round.

Kitaev, Kaiser & Levskaya, 2020, "Reformer: the efficient transformer",
https://arxiv.org/abs/2001.04451, section 2 ("LSH attention", "multi-round LSH attention", "causal
masking for shared-QK attention") and appendix A, where a pair that meets in several rounds counts
once.

Deviations: a mask and no sorting, so time stays quadratic, and every key of a bucket is read: the
paper sorts by bucket, cuts the sorted keys into chunks, and a query reads its own chunk and the one
before, so that keys of a large bucket may be lost. Rotations are drawn once for each layer and head
of keys, from the option `seed`, and not again during training. Positions that turn keys turn them
before they are hashed. `reformer_lsh` divides products of queries and unit keys by sqrt(E), as
equation 1 does; the authors' code does not, for its keys have the length sqrt(E) before that.
`reformer_lsh[score=dot]` computes their energies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.mask import Mask
from bench.api.noise import Noise
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed
from bench.api.source import Source, Tree, leaf

MOST_BUCKETS = 2**15
"""Numbers of buckets are kept in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class LshConfig(Config):
    """Options of the hashes."""

    rounds: Annotated[int, IntRange(1, 8)] = 4
    """Hashes, each with rotations of its own."""
    buckets: Annotated[int, Choices((2, 4, 8, 16, 32, 64))] = 8
    """Buckets of a round, an even number."""
    seed: int = 0
    """Seed from which the rotations are drawn."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.rounds < 1:
            raise InvalidConfig(f"lsh: rounds must be at least 1, got {self.rounds}.")
        if self.buckets % 2 or not 2 <= self.buckets <= MOST_BUCKETS:
            raise InvalidConfig(
                f"lsh: buckets must be even and from 2 to {MOST_BUCKETS}, got {self.buckets}."
            )


@register(
    "mask",
    "lsh",
    title="Keys of the same hash bucket",
    config=LshConfig,
    citation=Citation(
        text="Kitaev et al., 2020",
        url="https://arxiv.org/abs/2001.04451",
        where="section 2, appendix A",
    ),
)
class LshMask(Mask):
    """Keys j with h_r(k_j) = h_r(q_i) in a round r; the own key where there is no other.

    h_r(x) = argmax [x R_r; -x R_r], R_r of E rows and half as many columns as there are buckets.
    The paper weights rounds by their sums of exponentials and divides by the number of rounds in
    which a pair meets, which is the softmax over the union of the rounds. No gradient goes through
    the hash. The memory holds the buckets of each key, 2 bytes a round. Time O(L S (E + rounds)).
    """

    removes = frozenset({"stream"})
    gives = frozenset({"jumps"})
    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "a query without a bucket mate reads its own key, which is in another sequence",
        "pool": "a query without a bucket mate reads its own key, and that of pooling has none",
    }
    rotations: Float[Tensor, "Hk R E b"]

    def __init__(self, config: LshConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.group = dims.heads // dims.kv_heads
        shape = (config.rounds, config.buckets // 2)
        drawn = Noise(config.seed).normal(
            f"lsh.rotations.{dims.layer}",
            1,
            dims.kv_heads,
            torch.arange(dims.key_width),
            shape[0] * shape[1],
        )
        self.register_buffer("rotations", drawn[0].unflatten(-1, shape).transpose(1, 2))

    def prepare(self, source: Source) -> Tree:
        """Buckets of the keys."""
        return {"buckets": self._buckets(source.key, 1)}

    def window(self, call: Call) -> tuple[Allowed, None]:
        """Round by round; then the own key of those that have no other."""
        of_query = self._buckets(call.query, self.group)
        of_key = leaf(call.memory.parts, self.branch, "buckets")
        of_key = expand_heads(of_key, of_query.shape[1]).transpose(2, 3)
        meets = torch.zeros((), dtype=torch.bool, device=of_key.device)
        for one in range(of_key.shape[2]):
            meets = meets | (of_query[..., one, None] == of_key[:, :, one, None])
        own = call.key_position == call.position[:, None]
        others = meets & ~own
        allowed = call.allowed
        if allowed is not None:
            others, own = others & allowed, own & allowed
        return others | (own & ~others.any(-1, keepdim=True)), None

    def _buckets(self, x: Float[Tensor, "B H n E"], group: int) -> Int[Tensor, "B H n R"]:
        """The bucket of every vector in every round."""
        rotations = self.rotations.to(x.dtype).repeat_interleave(group, 0)
        turned = torch.einsum("bhne,hrec->bhnrc", x.detach(), rotations)
        return torch.cat((turned, -turned), -1).argmax(-1).to(torch.int16)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Key by key and round by round."""
        asked = self._oracle_buckets(one.query, one.head)
        others = []
        for s in range(one.num_keys):
            if s != one.position and one.visible(s):
                of_key = self._oracle_buckets(one.key[s], one.head)
                if any(a == b for a, b in zip(asked, of_key, strict=True)):
                    others.append(s)
        seen = others or [one.position]
        return [s in seen for s in range(one.num_keys)], [1.0] * one.num_keys

    def _oracle_buckets(self, x: Float[Tensor, " E"], head: int) -> list[int]:
        """The place of the largest of the products with all directions and their opposites."""
        numbers, found = x.detach().tolist(), []
        for rotation in self.rotations[head // self.group].tolist():
            best, largest = 0, float("-inf")
            for bucket in range(2 * len(rotation[0])):
                half, opposite = bucket % len(rotation[0]), bucket >= len(rotation[0])
                along = sum(n * row[half] for n, row in zip(numbers, rotation, strict=True))
                if (-along if opposite else along) > largest:
                    best, largest = bucket, -along if opposite else along
            found.append(best)
        return found


register_recipe(
    "reformer_lsh",
    Recipe(axes={"head": "shared_qk", "mask": "lsh", "score": "scaled_dot"}, main="mask"),
    module=__name__,
    title="Hash buckets of shared queries and keys (Reformer)",
    citation=Citation(
        text="Kitaev et al., 2020", url="https://arxiv.org/abs/2001.04451", where="section 2"
    ),
    cost=1.6,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Kitaev et al. report the quality of full attention in less time and memory, for sequences "
        "of up to 64 thousand tokens. Here buckets are a mask, which saves no time. Sequences of "
        "this task have at most 128 symbols."
    ),
)
