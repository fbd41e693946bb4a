"""Monotonic walk over keys: its options, its state, and its delays.

`expected_alignment.py` computes where the walk stops, `chunk_read.py` reads keys before the stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Memory, Tree, leaf
from variants.normalizers.expected_alignment import Computation, expected_alignment, hard_walk
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.precision import at_least_single, wide_format


@dataclass(frozen=True, kw_only=True)
class MonotonicConfig(Config):
    """Options that every monotonic alignment has."""

    offset: Annotated[float, FloatRange(-5.0, 0.0)] = -1.0
    """Initial r, added to the energy and learned (logits); lower reads further at first."""
    noise: Annotated[float, FloatRange(0.0, 4.0)] = 1.0
    """Standard deviation of the noise on the energy in training (logits)."""
    computation: Computation = "auto"
    """Code of the expected alignment; all are exact but `parallel`, which is not certified."""
    end: Literal["nothing", "last"] = "nothing"
    """What a walk that runs off the end reads: the zero vector, or as if it stopped at the last
    key (mass preservation)."""
    warm_up: Annotated[float, FloatRange(0.0, 0.5)] = 0.0
    """Share of training in which every query reads by the softmax of its energies, from which the
    walk then learns where to stop (pre-training by soft attention)."""

    def __post_init__(self) -> None:
        """Check the noise and the length of the warm-up."""
        if self.noise < 0:
            raise InvalidConfig(f"monotonic walk: noise must be at least 0, got {self.noise}.")
        if not 0 <= self.warm_up < 1:
            raise InvalidConfig(f"monotonic walk: warm_up must be in [0, 1), got {self.warm_up}.")


class MonotonicNormalizer(Normalizer):
    """Walks on from where the last query stopped; p = sigmoid(e + r). Subclasses say what is read.

    A subclass that reads more than the key of the stop overrides `spread` and its oracle.
    """

    stream_name: ClassVar[str]
    """Stream of noise: the energy of a query and a key."""
    gives = frozenset({"stream", "delays"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "a monotonic walk needs the whole source before it, not keys that keep arriving.",
        "self": "a monotonic walk orders queries along another sequence, not along their own.",
        "pool": "a single query has nothing to be monotonic with.",
    }
    default_read = "hard"
    reads = ("train", "expected", "hard")

    def __init__(self, config: MonotonicConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.walk = config
        self.stays_at_end = config.end == "last"
        self.offset = nn.Parameter(torch.full((dims.heads, 1, 1), config.offset))
        self.starts = {"offset": config.offset}
        if config.computation == "pairwise":
            self.time_exponent = 3.0  # a matrix of pairs of keys for every query

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """All mass on the first key; where a head stopped, or nothing where it ran off the end."""
        assert memory is not None, "monotonic attention is cross attention"
        shape = (like.rows, like.heads, memory.num_keys)
        alpha = torch.zeros(shape, dtype=wide_format(like.dtype), device=like.device)
        alpha[..., 0] = 1.0
        return {"alpha": alpha}

    def stop_probability(self, energy: Energy) -> Energy:
        """Sigmoid of energy and offset, in float32 at least."""
        # in half precision 1 - p is 1 where p is small, and a walk would stop more often than once
        return torch.sigmoid(at_least_single(energy) + self.offset)

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Walk, then read; keys that may not be read never stop the walk."""
        if call.read != "hard" and call.progress < self.walk.warm_up:
            soft = masked_softmax(energy, allowed)
            return Normalized(soft, state, delays(soft, call))
        rows, heads, _, num_keys = energy.shape
        if call.read == "train" and self.walk.noise:
            draws = call.drawing.normal(self.stream_name, rows, heads, call.position, num_keys)
            energy = energy + self.walk.noise * draws.to(energy.dtype)
        stop = self.stop_probability(energy)
        if allowed is not None:
            stop = torch.where(allowed, stop, 0.0)
        previous = leaf(state, "alpha")
        if call.read == "hard":
            stops = hard_walk(stop, previous)
        else:
            stops = expected_alignment(stop, previous, self.walk.computation)
        after = {"alpha": stops[:, :, -1]}
        terms = delays(stops, call)
        if self.stays_at_end:
            lost = (1 - stops.sum(-1, keepdim=True)).clamp(min=0)
            stops = stops + lost * last_allowed(stops, allowed)
        return Normalized(self.spread(stops, allowed, call).to(energy.dtype), after, terms)

    def spread(self, stops: Weights, allowed: Allowed | None, call: Call) -> Weights:
        """Weights of the keys that are read when a walk stops with these probabilities."""
        return stops

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """The walk of one query by loops, and what it reads."""
        if one.read != "hard" and one.progress < self.walk.warm_up:
            soft = oracle_softmax(energy, allowed)
            read = sum((s * weight for s, weight in enumerate(soft, 1)), torch.zeros_like(soft[0]))
            one.said["delay"] = read if any(allowed) else read + len(soft)
            return soft
        energy = energy + self.offset[one.head, 0, 0]
        if one.read == "train" and self.walk.noise:
            assert one.noise is not None, "read='train' needs noise"
            place = torch.tensor([one.position])
            draws = one.noise.normal(
                self.stream_name, one.row + 1, one.head + 1, place, len(energy)
            )
            energy = energy + self.walk.noise * draws[one.row, one.head, 0].to(energy.dtype)
        walk = oracle_hard if one.read == "hard" else oracle_expected
        stops = walk(energy, allowed, state)
        ran_off = 1 - torch.stack(stops).sum()
        delay = ran_off * len(stops)
        for s, stopped in enumerate(stops):
            delay = delay + (s + 1) * stopped
        one.said["delay"] = delay
        if self.stays_at_end and any(allowed):
            last = max(s for s, open_ in enumerate(allowed) if open_)
            stops[last] = stops[last] + 1 - sum(stops)
        return self.oracle_spread(stops, allowed, one)

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """Delays of the heads, joined in four ways; see `delays`."""
        heads = [head["delay"] for head in said]
        count, total = len(heads), sum(heads[1:], heads[0])
        raised = [torch.exp(delay) for delay in heads]
        leading = sum((r * d for r, d in zip(raised, heads, strict=True)), 0 * total)
        mean = total / count
        return {
            "expected_delay": mean,
            "delay_leading": leading / sum(raised),
            "delay_variance": sum(((d - mean) ** 2 for d in heads), 0 * total) / count,
            "touched": max(heads, key=lambda delay: float(delay.detach())),
        }

    def oracle_spread(
        self, stops: list[Tensor], allowed: list[bool], one: OneQuery
    ) -> Float[Tensor, " S"]:
        """`spread` of one query."""
        return torch.stack(stops)


def oracle_hard(
    energy: Float[Tensor, " S"], allowed: list[bool], state: dict[str, Any]
) -> list[Tensor]:
    """Go on to the next key until one stops the walk; carries the pointer."""
    at = state.get("pointer", 0)
    while at < len(allowed) and not (allowed[at] and float(energy[at].detach()) > 0):
        at += 1
    state["pointer"] = at
    zero = torch.zeros_like(energy[0])
    return [zero + float(s == at) for s in range(len(allowed))]


def oracle_expected(
    energy: Float[Tensor, " S"], allowed: list[bool], state: dict[str, Any]
) -> list[Tensor]:
    """Sum over pairs of stops, the last query's and this one's; carries the probabilities."""
    num_keys, zero = len(allowed), torch.zeros_like(energy[0])
    before = state.get("alpha", [zero + 1] + [zero] * (num_keys - 1))
    found = [zero] * num_keys
    for start in range(num_keys):
        mass = before[start]
        for s in range(start, num_keys):
            p = 1 / (1 + torch.exp(-energy[s])) if allowed[s] else zero
            found[s] = found[s] + mass * p
            mass = mass * (1 - p)
    state["alpha"] = list(found)
    return found


def last_allowed(stops: Weights, allowed: Allowed | None) -> Float[Tensor, "#B #Hq #L S"]:
    """One at the last key that may be read; zeros on rows without any."""
    if allowed is None:
        allowed = torch.ones_like(stops[:1, :1, :1], dtype=torch.bool)
    later = allowed.flip(-1).cumsum(-1).flip(-1)
    return (allowed & (later == 1)).to(stops.dtype)


def delays(stops: Weights, call: Call) -> dict[str, Float[Tensor, "B L"]]:
    """Real keys read before the answer; off the end, all of them were.

    `expected_delay` averages over heads, `delay_leading` favors heads that have read further by
    a softmax of their delays, `delay_variance` is the variance over heads, and `touched` is the
    count of the head that has read most, which is how long a decoder waits.
    """
    stops = at_least_single(stops)  # half precision has no count of some hundred keys
    source = call.memory.source
    length = source.length.to(stops.dtype)[:, None, None]
    read = (stops @ source.rank.to(stops.dtype)[:, None, :, None]).squeeze(-1)
    read = read + (1 - stops.sum(-1)) * length
    if read.shape[1] == 1:
        only = read[:, 0]
        apart = torch.zeros_like(only)
        return {
            "expected_delay": only,
            "delay_leading": only,
            "delay_variance": apart,
            "touched": only,
        }
    return {
        "expected_delay": read.mean(1),
        "delay_leading": (read.softmax(1) * read).sum(1),
        "delay_variance": read.var(1, correction=0),
        "touched": read.amax(1),
    }
