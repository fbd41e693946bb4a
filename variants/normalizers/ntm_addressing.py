"""Addressing of the neural Turing machine: by content, or by a shift of the last weights.

Graves, Wayne & Danihelka, 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401,
section 3.3, equations 5 to 9.

Deviations: the memory is the source and is never written to; positions wrap around at the row's
true length. The paper does not say where the first query comes from: `start=first` is the first
key. Each head's strength, gate, shift and sharpness are linear in its query; softplus keeps
strength above 0 and sharpness above 1. With the score `cosine` this is the paper's addressing;
other scores work too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Tree, leaf
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.precision import at_least_single

Previous = Float[Tensor, "B Hq S"]


@dataclass(frozen=True, kw_only=True)
class NtmConfig(Config):
    """Options of Turing-machine addressing."""

    reach: Annotated[int, IntRange(1, 5), Legal(0)] = 1
    """Longest shift in one step, to either side (keys)."""
    start: Annotated[Literal["first", "uniform"], Choices(("first", "uniform"))] = "first"
    """The weights before the first query."""

    def __post_init__(self) -> None:
        """Check the reach."""
        if self.reach < 0:
            raise InvalidConfig(f"ntm_addressing: reach must be at least 0, got {self.reach}.")


class Controls(NamedTuple):
    """Parameters of the addressing, from the query, by head."""

    strength: Float[Tensor, "B Hq L 1"]
    """beta, of the content (dimensionless, above 0)."""
    gate: Float[Tensor, "B Hq L 1"]
    """g, the share of content; the rest stays where the last query was."""
    shift: Float[Tensor, "B Hq L taps"]
    """s, a distribution over shifts from -reach to reach."""
    sharpness: Float[Tensor, "B Hq L 1"]
    """gamma, at least 1."""


@register(
    "normalizer",
    "ntm_addressing",
    config=NtmConfig,
    citation=Citation(
        text="Graves et al., 2014",
        url="https://arxiv.org/abs/1410.5401",
        where="section 3.3, equations 5 to 9",
    ),
)
class NtmAddressing(Normalizer):
    """content = softmax(beta e); w = g content + (1 - g) w'; w(i) = sum_k w(i - k) s(k); w^gamma.

    w' are the weights of the query before, positions wrap around at the row's length, and the last
    step is divided by its sum. Sequential in the queries; time O(L S reach) per head.
    """

    gives = frozenset({"simplex", "ordered"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "positions wrap around at the end of a source that is still growing",
        "pool": "a single query has no query before it",
    }

    starts = {"bias": 0.0}

    def __init__(self, config: NtmConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.most_shift = config.reach
        self.begin = config.start
        self.taps = 2 * config.reach + 1
        width = self.taps + 3
        self.weight = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, width))
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, width))

    def controls(self, call: Call) -> Controls:
        """Compute the parameters of every query."""
        asked = at_least_single(per_head_linear(call.query, self.weight) + self.bias)
        strength, gate, sharpness, shift = asked.split([1, 1, 1, self.taps], -1)
        return Controls(
            functional.softplus(strength),
            torch.sigmoid(gate),
            torch.softmax(shift, -1),
            1 + functional.softplus(sharpness),
        )

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Move on from query to query."""
        asked = self.controls(call)
        content = masked_softmax(asked.strength * energy, allowed)
        previous = leaf(state, "weights") if state else self._first(call, content)
        origin = self._origins(call)
        kept = torch.ones_like(content) if allowed is None else allowed.expand_as(content)
        found = []
        for t in range(content.shape[2]):
            gate = asked.gate[:, :, t]
            mixed = gate * content[:, :, t] + (1 - gate) * previous
            moved = shifted(mixed, asked.shift[:, :, t], origin)
            previous = sharpened(moved * kept[:, :, t], asked.sharpness[:, :, t])
            found.append(previous)
        return Normalized(torch.stack(found, 2).to(energy.dtype), {"weights": previous})

    def _first(self, call: Call, like: Weights) -> Previous:
        """Weights before the first query; zero on rows without a key."""
        real = call.memory.source.key_mask()[:, None]
        if self.begin == "first":
            real = real & (real.cumsum(-1) == 1)
        share = real.to(like.dtype) / real.sum(-1, keepdim=True).clamp(min=1)
        return share.expand(-1, like.shape[1], -1)

    def _origins(self, call: Call) -> Int[Tensor, "B taps S"]:
        """Origin of the mass of each position, by shift; positions past the end stay there."""
        length = call.memory.source.end.clamp(min=1).view(-1, 1, 1)
        place = call.key_position
        shift = torch.arange(-self.most_shift, self.most_shift + 1, device=place.device)
        return (place - shift[:, None]) % length

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, list[Tensor]],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """The five equations, position by position."""
        num_keys, head = one.num_keys, one.head
        asked = []
        for unit in range(self.taps + 3):
            asked.append(one.query @ self.weight[head, :, unit] + self.bias[head, 0, unit])
        strength = torch.log(1 + torch.exp(asked[0]))
        gate = 1 / (1 + torch.exp(-asked[1]))
        sharpness = 1 + torch.log(1 + torch.exp(asked[2]))
        total = sum((torch.exp(a) for a in asked[3:]), torch.zeros_like(gate))
        share = {k: torch.exp(asked[3 + k + self.most_shift]) / total for k in self._shifts()}
        content = oracle_softmax(strength * energy, allowed)
        before = state.get("weights", self._oracle_first(num_keys, energy))
        mixed = [gate * content[s] + (1 - gate) * before[s] for s in range(num_keys)]
        raised = []
        for i in range(num_keys):
            moved = torch.zeros_like(gate)
            for k in self._shifts():
                moved = moved + mixed[(i - k) % num_keys] * share[k]
            raised.append(moved**sharpness if allowed[i] else torch.zeros_like(gate))
        whole = sum(raised, torch.zeros_like(gate))
        state["weights"] = [r / whole for r in raised]
        return torch.stack(state["weights"])

    def _shifts(self) -> range:
        return range(-self.most_shift, self.most_shift + 1)

    def _oracle_first(self, num_keys: int, like: Tensor) -> list[Tensor]:
        zero = torch.zeros_like(like[0])
        if self.begin == "uniform":
            return [zero + 1 / num_keys] * num_keys
        return [zero + float(s == 0) for s in range(num_keys)]


def shifted(
    weights: Previous, shift: Float[Tensor, "B Hq taps"], origin: Int[Tensor, "B taps S"]
) -> Previous:
    """Mass carried around the ring, each shift's share of it."""
    rows, heads, num_keys = weights.shape
    taps = shift.shape[-1]
    index = origin.flatten(1)[:, None].expand(rows, heads, taps * num_keys)
    arriving = weights.gather(-1, index).unflatten(-1, (taps, num_keys))
    return (shift.unsqueeze(-1) * arriving).sum(2)


def sharpened(weights: Previous, sharpness: Float[Tensor, "B Hq 1"]) -> Previous:
    """Weights to a power, over their sum; relative to the largest, so that none is lost."""
    largest = weights.detach().amax(-1, keepdim=True)
    # a row without keys is divided by one, which keeps its gradient finite
    raised = (weights / torch.where(largest > 0, largest, 1.0)) ** sharpness
    total = raised.sum(-1, keepdim=True)
    return raised / torch.where(total > 0, total, 1.0)


register_recipe(
    "ntm_addressing",
    Recipe(
        axes={"score": "cosine[learned=false]", "normalizer": "ntm_addressing"}, main="normalizer"
    ),
    module=__name__,
    title="Content and location addressing of a Turing machine",
    citation=Citation(
        text="Graves et al., 2014", url="https://arxiv.org/abs/1410.5401", where="section 3.3"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    cost=1.7,
    deviations=(
        "those of the normalizer `ntm_addressing`. The query's strength multiplies the cosine "
        "score's fixed one, 10, because a strength near 1 cannot focus among many keys."
    ),
)
