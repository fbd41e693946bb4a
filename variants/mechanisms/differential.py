"""Differential attention: the difference of two softmax maps, normalized in every head.

Ye et al., 2025, "Differential transformer", https://arxiv.org/abs/2410.05258, section 2.1.

Deviations: lambda starts near 0.8 in every layer, which the paper has as its second strategy; its
first one grows with the layer (`by_layer=true`). One query and key of a head are cut into the two
pairs, so that the width of a head here is that of a value, twice the paper's d. The last unit of an
odd width belongs to both pairs, and no position turns or scales it. Rotary positions are those that
`position=rope` asks for, and turn each of the pairs by the same angles. Other positions add to the
energies of each map, by the same tables, and read the query and the key of that map.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.config import Choices, Config, FloatRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.fused import read_softmax
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy, Mixed
from bench.api.source import Source, Tree
from variants.mechanisms.biased import Biased, biased
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.precision import at_least_single

EPS = 1e-5
"""Added to the mean square of an output, as in the authors' code."""
START = 0.8
"""lambda_init of all layers, or the one that it approaches with depth."""
DEVIATION = 0.1
"""Of the vectors from which lambda is made, before training."""


@dataclass(frozen=True, kw_only=True)
class DifferentialConfig(Config):
    """Options of differential attention."""

    start: Annotated[float, FloatRange(0.1, 0.9), Legal(0)] = START
    """lambda_init, about which lambda starts (dimensionless)."""
    by_layer: Annotated[bool, Choices((True, False))] = False
    """Whether lambda_init is 0.8 - 0.6 exp(-0.3 l) in layer l, counted from 0; without `start`."""
    norm: Annotated[bool, Choices((True, False))] = True
    """Whether outputs of a head are divided by their root mean square, and scaled."""

    def __post_init__(self) -> None:
        """Check where lambda starts."""
        if self.by_layer and self.start != START:
            raise InvalidConfig(
                "differential: by_layer=true says where lambda starts, so leave start out."
            )
        if not 0 <= self.start < 1:
            raise InvalidConfig(
                f"differential: start must be at least 0 and below 1, got {self.start}."
            )


@register(
    "mechanism",
    "differential",
    title="Differential attention",
    config=DifferentialConfig,
    citation=Citation(
        text="Ye et al., 2025", url="https://arxiv.org/abs/2410.05258", where="section 2.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Ye et al. report language models of 0.8 to 13 billion parameters that need about 65% of "
        "the parameters for the same loss, and better retrieval from texts of up to 64 thousand "
        "tokens. At the size of quick the baseline finds nearly every value of this task, so there "
        "is little noise to cancel."
    ),
)
class Differential(Biased):
    """(softmax(q1.k1 / sqrt(E/2)) - lambda softmax(q2.k2 / sqrt(E/2))) V, then an RMS norm.

    lambda = exp(a.b) - exp(c.d) + lambda_init is one number for all heads. The norm has a learned
    gain and the factor 1 - lambda_init. Weights are those before the norm: a row sums to 1 - lambda
    and holds weights of either sign. Time O(L S E) per head.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"signed", "key_local"})

    def __init__(self, config: DifferentialConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        if dims.key_width < 2:
            raise Refused("differential needs heads of width 2 or more, one unit for each map.")
        self.begin = config.start
        if config.by_layer:
            self.begin = START - 0.6 * math.exp(-0.3 * dims.layer)
        self.map_width = width = dims.key_width // 2
        self.maps = (slice(0, width), slice(width, 2 * width))
        self.shares_last = dims.key_width % 2 == 1
        self.scale = (width + self.shares_last) ** -0.5
        self.added = nn.Parameter(DEVIATION * torch.randn(2, self.map_width))
        self.taken = nn.Parameter(DEVIATION * torch.randn(2, self.map_width))
        self.gain: nn.Parameter | None = None
        if config.norm:
            self.gain = nn.Parameter(torch.ones(dims.value_width))
            self.starts = {"gain": 1.0}

    @classmethod
    def position_dims(cls, dims: Dims, *, turns: bool) -> Dims:
        """Each map has queries and keys of its own, and positions see one of them at a time.

        Args:
            dims: Of both maps together.
            turns: Whether the position turns vectors.

        Raises:
            Refused: Heads have a part that is turned and one that is not, across both maps.
        """
        if turns and dims.turned_width:
            raise Refused(
                "differential turns both halves of a vector, and these heads leave a part unturned."
            )
        width = dims.key_width // 2
        return dims._replace(query_width=width, key_width=width)

    def turn(
        self, x: Float[Tensor, "B H n E"], offset: int, *, keys: bool = False
    ) -> Float[Tensor, "B H n E"]:
        """The queries or keys of both maps, turned by the same angles."""
        if not any(position.turns for position in self.positions):
            return x
        turned = [
            super(Differential, self).turn(x[..., part], offset, keys=keys) for part in self.maps
        ]
        return torch.cat((*turned, x[..., 2 * self.map_width :]), -1)

    def turn_by_loops(
        self, query: Float[Tensor, "Hq L Eq"], source: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Source]:
        """Map by map."""
        queries, keys = [], []
        for part in self.maps:
            one = source.with_key(source.key[..., part])
            turned, given = super().turn_by_loops(query[..., part], one)
            queries.append(turned)
            keys.append(given.key)
        rest = slice(2 * self.map_width, None)
        key = torch.cat((*keys, source.key[..., rest]), -1)
        return torch.cat((*queries, query[..., rest]), -1), source.with_key(key)

    def share(self) -> Float[Tensor, ""]:
        """lambda, what the second map counts."""
        added, taken = self.added.prod(0).sum(), self.taken.prod(0).sum()
        return added.exp() - taken.exp() + self.begin

    def row_sums(self) -> Float[Tensor, " Hq"]:
        """The difference of two rows that sum to one and to lambda."""
        return (1 - self.share()).expand(self.dims.heads)

    def rows_alone(self) -> bool:
        """Where positions add to energies; else fused code holds no number for each key."""
        return self.adds_to_energies

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Two maps, their difference, the values, the norm."""
        # a single query reads the values once, by the difference of its two rows of weights
        several = call.query.shape[2] > 1
        if several and self.impl == "auto" and not want_weights and not self.adds_to_energies:
            query, key, value = call.query, call.memory.source.key, call.memory.source.value
            read = ((self._read(x[..., m], x) for x in (query, key)) for m in self.maps)
            one, two = (read_softmax(call, q, k, value, self.scale) for q, k in read)
            output = one - self.share().to(one.dtype) * two
            return MixResult(self._normalized(output), None, carried, {})
        first, second = (
            masked_softmax(self._energy(call, part), call.allowed) for part in self.maps
        )
        weights = first - self.share().to(first.dtype) * second
        output = weights @ expand_heads(call.memory.source.value, self.dims.heads)
        return MixResult(self._normalized(output), weights, carried, {})

    def _energy(self, call: Call, part: slice) -> Energy:
        """Energies of one map, of its part of queries and keys."""
        source = call.memory.source
        memory = replace(call.memory, source=source.with_key(source.key[..., part]))
        one = replace(call, query=call.query[..., part], memory=memory)
        query = self._read(one.query, call.query)
        key = expand_heads(self._read(memory.source.key, source.key), self.dims.heads)
        energy = self.scale * query @ key.transpose(2, 3)
        return biased(energy, self.position_energy(one))

    def _read(
        self, half: Float[Tensor, "B H n D"], whole: Float[Tensor, "B H n E"]
    ) -> Float[Tensor, "B H n Em"]:
        """What a map reads of queries or keys: its half, and the last unit of an odd width."""
        return torch.cat((half, whole[..., -1:]), -1) if self.shares_last else half

    def _normalized(self, output: Mixed) -> Mixed:
        if self.gain is None:
            return output
        wide = at_least_single(output)
        level = wide * (wide.square().mean(-1, keepdim=True) + EPS).rsqrt()
        return (level * self.gain * (1 - self.begin)).to(output.dtype)

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Pair by pair, unit by unit."""
        heads, length, _ = query.shape
        num_keys = source.num_keys
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        share = self._oracle_share(query.new_zeros(()))
        more = [
            self.oracle_position_energy(
                query[..., part], source.with_key(source.key[..., part]), read, **call
            )
            for part in self.maps
        ]
        outputs, weights = [], []
        for head, t in ((h, t) for h in range(heads) for t in range(length)):
            seen = [s <= t or self.dims.regime != "causal" for s in range(num_keys)]
            key = source.key[0, head // group]
            maps = [
                self._oracle_map(query[head, t], key, part, added[head, t], seen)
                for part, added in zip(self.maps, more, strict=True)
            ]
            weights.append(maps[0] - share * maps[1])
            values = source.value[0, head // value_group]
            total = torch.zeros_like(values[0])
            for s in range(num_keys):
                total = total + weights[-1][s] * values[s]
            outputs.append(self._oracle_normalized(total))
        shape = (heads, length)
        return torch.stack(outputs).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)

    def _oracle_share(self, zero: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """`share`, unit by unit, in the precision of a zero."""
        one, two = (
            sum((pair[0, unit] * pair[1, unit] for unit in range(self.map_width)), zero)
            for pair in (self.added, self.taken)
        )
        return torch.exp(one) - torch.exp(two) + self.begin

    def _oracle_map(
        self,
        query: Float[Tensor, " E"],
        key: Float[Tensor, "S E"],
        part: slice,
        added: Float[Tensor, " S"],
        seen: list[bool],
    ) -> Float[Tensor, " S"]:
        """One map of one query, with what positions add, key by key."""
        zero, energies = query.new_zeros(()), []
        units = [*range(part.start, part.stop)]
        if len(query) % 2:
            units.append(len(query) - 1)
        for s in range(len(key)):
            products = (query[unit] * key[s, unit] for unit in units)
            energies.append(sum(products, zero) / len(units) ** 0.5 + added[s])
        return oracle_softmax(torch.stack(energies), seen)

    def _oracle_normalized(self, output: Float[Tensor, " Ev"]) -> Float[Tensor, " Ev"]:
        if self.gain is None:
            return output
        square = sum((x * x for x in output), torch.zeros_like(output[0])) / len(output)
        root = torch.sqrt(square + EPS)
        return torch.stack(
            [x / root * g * (1 - self.begin) for x, g in zip(output, self.gain, strict=True)]
        )
