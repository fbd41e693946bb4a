"""Nyström attention: softmax attention through a few landmarks, means of segments of the sequence.

Xiong et al., 2021, "Nyströmformer: a Nyström-based algorithm for approximating self-attention",
https://arxiv.org/abs/2102.03902, section 3.

Deviations: queries may come one at a time, so their landmarks are means of another projection of
the states and not of the queries themselves. Where a sequence does not divide, its segments differ
by one token; one of fewer tokens than landmarks has a landmark for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, Read
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, Tree, leaf
from variants.mechanisms.turned import Turned
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.precision import at_least_single

ONE_SEQUENCE = "its landmarks are those of queries and keys of one sequence"


@dataclass(frozen=True, kw_only=True)
class NystromConfig(Config):
    """Options of Nyström attention."""

    landmarks: Annotated[int, IntRange(2, 256, log=True)] = 32
    """m, segments of the sequence."""
    iterations: Annotated[int, IntRange(1, 24)] = 6
    """Steps towards the inverse of the matrix between landmarks."""
    kernel: Annotated[int, IntRange(1, 65)] = 33
    """Tokens that the convolution of the values sees, an odd number."""

    def __post_init__(self) -> None:
        """Check all three."""
        if min(self.landmarks, self.iterations, self.kernel) < 1 or not self.kernel % 2:
            raise InvalidConfig(
                "nystrom: landmarks, iterations and kernel must be at least 1 and the kernel odd, "
                f"got {self.landmarks}, {self.iterations} and {self.kernel}."
            )


@register(
    "mechanism",
    "nystrom",
    title="Nyström attention",
    config=NystromConfig,
    citation=Citation(
        text="Xiong et al., 2021", url="https://arxiv.org/abs/2102.03902", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(
        task="transduction[rule=reverse]", backbone="transformer_seq2seq", slot="self"
    ),
)
class Nystrom(Turned):
    """softmax(Q K~') softmax(Q~ K~')^+ softmax(Q~ K') V + conv(V), with landmarks Q~ and K~.

    All energies are divided by sqrt(E); ^+ is the pseudo-inverse. Time O((L + S) m E) per head.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": ONE_SEQUENCE,
        "pool": ONE_SEQUENCE,
        "causal": "its landmarks are means over tokens, later ones among them",
    }
    time_exponent = 1.0
    memory_exponent = 1.0

    def __init__(self, config: NystromConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.config = config
        self.scale = dims.key_width**-0.5
        self.key_inputs = {"landmark": SlotInput(dims.query_width)}
        bound = config.kernel**-0.5
        self.taps = nn.Parameter(torch.empty(dims.heads, config.kernel).uniform_(-bound, bound))

    def prepare(self, source: Source) -> Memory:
        """Landmarks, and what each of them reads, once per source."""
        mask = source.key_mask()
        real = mask[:, None, :, None]
        # they ask like queries, so positions turn them before their means are taken, as keys are
        landmark = self.turn(leaf(source.extras, "landmark"), 0)
        asking, key, value = (
            torch.where(real, at_least_single(expand_heads(x, self.dims.heads)), 0.0)
            for x in (landmark, source.key, source.value)
        )
        segment = self._segments(mask).to(key.dtype)
        size = segment.sum(1)[:, None, :, None]
        some = size > 0
        asking_mean, key_mean = (segment.mT[:, None] @ x / size.clamp(min=1) for x in (asking, key))
        middle = self._weights(asking_mean, key_mean, some & some.mT)
        read = self._weights(asking_mean, key, some & real.mT) @ value
        found = _pseudo_inverse(middle, self.config.iterations) @ read
        parts = {"key": key_mean, "value": found, "some": some, "mixed": self._convolved(value)}
        return Memory(replace(source, mask=mask), parts)

    def _segments(self, mask: Bool[Tensor, "B S"]) -> Bool[Tensor, "B S m"]:
        """Which segment each token belongs to; none where it is padding."""
        real = mask.sum(1, keepdim=True)
        count = real.clamp(max=self.config.landmarks)
        # one segment after the other, of which no two differ by more than a token
        number = (mask.long().cumsum(1) - 1) * count // real.clamp(min=1)
        # further segments would have no token in any row, and their matrices would be zeros
        each = torch.arange(min(self.config.landmarks, max(1, mask.shape[1])), device=mask.device)
        return (number.unsqueeze(2) == each) & mask.unsqueeze(2)

    def _weights(
        self,
        query: Float[Tensor, "B H n E"],
        key: Float[Tensor, "B H k E"],
        allowed: Bool[Tensor, "B 1 #n k"],
    ) -> Float[Tensor, "B H n k"]:
        return masked_softmax(self.scale * query @ key.mT, allowed)

    def _convolved(self, value: Float[Tensor, "B H S Ev"]) -> Float[Tensor, "B H S Ev"]:
        """Each unit of the values, convolved along the sequence by the taps of its head."""
        taps = self.taps.to(value.dtype)[:, None, :, None]
        padding = self.config.kernel // 2, 0
        # heads as channels of a plane are several times as fast as a row of channels for each unit
        return functional.conv2d(value, taps, padding=padding, groups=self.dims.heads)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read what the landmarks have read."""
        names = ("key", "value", "some", "mixed")
        key, value, some, mixed = (leaf(call.memory.parts, name) for name in names)
        weights = self._weights(at_least_single(call.query), key, some.mT)
        length = call.query.shape[2]
        output = weights @ value + mixed[:, :, call.offset : call.offset + length]
        return MixResult(output.to(call.query.dtype), None, carried, {})

    def turn_by_loops(
        self, query: Float[Tensor, "Hq L Eq"], source: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Source]:
        """Landmarks of queries are turned like queries."""
        asking, _ = super().turn_by_loops(leaf(source.extras, "landmark")[0], source)
        query, turned = super().turn_by_loops(query, source)
        return query, replace(turned, extras={**source.extras, "landmark": asking.unsqueeze(0)})

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Segment by segment, then query by query."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        asking = leaf(source.extras, "landmark")
        length = source.num_keys
        count = min(self.config.landmarks, length)
        ends = [-(-length * segment // count) for segment in range(count + 1)]
        segments = [slice(*both) for both in pairwise(ends)]
        found = []
        for head in range(query.shape[0]):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            asked = [_oracle_mean(asking[0, head // group, some]) for some in segments]
            keys = [_oracle_mean(key[some]) for some in segments]
            middle = torch.stack([self._oracle_row(a, keys) for a in asked])
            inverse = middle.T / middle.sum(0).max() / middle.sum(1).max()
            one = torch.eye(len(keys), dtype=middle.dtype, device=middle.device)
            for _ in range(self.config.iterations):
                near = middle @ inverse
                inverse = inverse @ (13 * one - near @ (15 * one - near @ (7 * one - near))) / 4
            landed = inverse @ torch.stack([self._oracle_row(a, list(key)) @ value for a in asked])
            for place in range(query.shape[1]):
                output = self._oracle_row(query[head, place], keys) @ landed
                for tap in range(self.config.kernel):
                    s = place + tap - self.config.kernel // 2
                    if 0 <= s < length:
                        output = output + self.taps[head, tap] * value[s]
                found.append(output)
        return torch.stack(found).unflatten(0, query.shape[:2]), None

    def _oracle_row(self, query: Float[Tensor, " E"], keys: list[Tensor]) -> Float[Tensor, " n"]:
        """Softmax of one row of energies."""
        energy = torch.stack([self.scale * (query * key).sum() for key in keys])
        return oracle_softmax(energy, [True] * len(keys))


def _pseudo_inverse(matrix: Float[Tensor, "B H m m"], iterations: int) -> Float[Tensor, "B H m m"]:
    """The pseudo-inverse of each matrix, by the iteration of the paper.

    Rows and columns of zeros, where there is no landmark, stay so.
    """
    columns = matrix.sum(-2).amax(-1)[..., None, None]
    rows = matrix.sum(-1).amax(-1)[..., None, None]
    inverse = matrix.mT / torch.where(columns > 0, columns * rows, 1.0)
    one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for _ in range(iterations):
        near = matrix @ inverse
        inverse = inverse @ (13 * one - near @ (15 * one - near @ (7 * one - near))) / 4
    return inverse


def _oracle_mean(x: Float[Tensor, "n E"]) -> Float[Tensor, " E"]:
    total = torch.zeros_like(x[0])
    for row in x:
        total = total + row
    return total / len(x)
