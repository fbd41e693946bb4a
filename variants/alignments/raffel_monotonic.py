"""Monotonic attention: walk over the keys from where the last query stopped, until one stops you.

Raffel et al., 2017, "Online and linear-time attention by enforcing monotonic alignments",
https://arxiv.org/abs/1704.00784, sections 2.2 (hard walk), 2.3 (expected alignment), 2.4 (energy)
and 2.5 (noise).

Deviations: the direction v of an additive score is not normalized (g only rescales it), and r is
added to any score; each head has its own r. Expected alignments are computed exactly; the
published closed form is `computation=parallel`, is not certified, and misses up to 0.04 of a weight
in float32.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, QueryShape
from bench.api.component import Aligned, Alignment, OneQuery
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Memory, Tree, leaf
from variants._monotonic import Computation, expected_alignment, hard_walk

NOISE = "raffel_monotonic.energy"
"""Stream of noise: the energy of a query and a key."""


@dataclass(frozen=True, kw_only=True)
class RaffelMonotonicConfig(Config):
    """Options of monotonic attention."""

    offset: Annotated[float, FloatRange(-5.0, 0.0)] = -1.0
    """Initial r, added to the energy and learned (logits); lower reads further at first."""
    noise: Annotated[float, FloatRange(0.0, 4.0)] = 1.0
    """Standard deviation of the noise on the energy in training (logits)."""
    computation: Computation = "auto"
    """Code of the expected alignment; all are exact but `parallel`, which is not certified."""

    def __post_init__(self) -> None:
        """Check the noise."""
        if self.noise < 0:
            raise InvalidConfig(f"raffel_monotonic: noise must be at least 0, got {self.noise}.")


@register(
    "alignment",
    "raffel_monotonic",
    config=RaffelMonotonicConfig,
    citation=Citation(
        text="Raffel et al., 2017",
        url="https://arxiv.org/abs/1704.00784",
        where="sections 2.2 to 2.5",
    ),
)
class RaffelMonotonicAlignment(Alignment):
    """p = sigmoid(e + r); weights sum to at most one, the rest ran off the end and reads zero."""

    gives = frozenset({"stream"})
    cannot = {
        "causal": "a monotonic walk needs the whole source before it, not keys that keep arriving.",
        "self": "a monotonic walk orders queries along another sequence, not along their own.",
        "pool": "a single query has nothing to be monotonic with.",
    }
    default_read = "hard"
    reads = ("train", "expected", "hard")

    def __init__(self, config: RaffelMonotonicConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.offset = nn.Parameter(torch.full((dims.heads, 1, 1), config.offset))

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """All mass on the first key; where a head stopped, or nothing where it ran off the end."""
        assert memory is not None, "monotonic attention is cross attention"
        num_keys = memory.source.key.shape[2]
        alpha = torch.zeros(like.rows, like.heads, num_keys, dtype=like.dtype, device=like.device)
        alpha[..., 0] = 1.0
        return {"alpha": alpha}

    def stop_probability(self, energy: Energy) -> Energy:
        """Sigmoid of energy and offset."""
        return torch.sigmoid(energy + self.offset)

    def align(self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call) -> Aligned:
        """Walk; keys that may not be read never stop the walk."""
        rows, heads, _, num_keys = energy.shape
        if call.read == "train" and self.config.noise:
            draws = call.drawing.normal(NOISE, rows, heads, call.position, num_keys)
            energy = energy + self.config.noise * draws.to(energy.dtype)
        stop = self.stop_probability(energy)
        if allowed is not None:
            stop = torch.where(allowed, stop, 0.0)
        previous = leaf(state, "alpha").to(stop.dtype)
        if call.read == "hard":
            weights = hard_walk(stop, previous)
        else:
            weights = expected_alignment(stop, previous, self.config.computation)
        return Aligned(
            weights, {"alpha": weights[:, :, -1]}, {"expected_delay": _delay(weights, call)}
        )

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Sum over pairs of stops, the last query's and this one's; the walk itself when hard."""
        energy = energy + self.offset[one.head, 0, 0]
        if one.read == "train" and self.config.noise:
            assert one.noise is not None, "read='train' needs noise"
            place = torch.tensor([one.position])
            draws = one.noise.normal(NOISE, one.row + 1, one.head + 1, place, one.num_keys)
            energy = energy + self.config.noise * draws[one.row, one.head, 0].to(energy.dtype)
        zero = torch.zeros_like(energy[0])
        found = [zero] * one.num_keys
        if one.read == "hard":
            at = state.get("pointer", 0)
            while at < one.num_keys and not (allowed[at] and float(energy[at].detach()) > 0):
                at += 1
            state["pointer"] = at
            return torch.stack([zero + float(s == at) for s in range(one.num_keys)])
        before = state.get("alpha", [zero + 1] + [zero] * (one.num_keys - 1))
        for start in range(one.num_keys):
            mass = before[start]
            for s in range(start, one.num_keys):
                p = 1 / (1 + torch.exp(-energy[s])) if allowed[s] else zero
                found[s] = found[s] + mass * p
                mass = mass * (1 - p)
        state["alpha"] = found
        return torch.stack(found)


def _delay(weights: Weights, call: Call) -> Float[Tensor, "B L"]:
    """Keys read before the answer, averaged over heads; off the end, all of them were."""
    length = call.memory.source.length.to(weights.dtype)[:, None, None]
    read = weights @ (call.key_position + 1).to(weights.dtype)
    return (read + (1 - weights.sum(-1)) * length).mean(1)
