"""Monotonic walks over keys: the hard one, the expected one in several ways, and what is read.

With stop probabilities p and the normalizer a' of the query before, q_s = (1 - p_{s-1}) q_{s-1} +
a'_s and a_s = p_s q_s (Raffel et al., 2017, section 2.3). Every way is sequential in the queries.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api import registry
from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.component import Normalized, Normalizer, OneQuery, Score
from bench.api.config import Config, FloatRange, OfAxis
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import Selector
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Memory, Source, Tree, branch, leaf
from variants._math import masked_softmax, oracle_softmax

Computation = Literal["auto", "wavefront", "doubling", "pairwise", "recursive", "parallel"]
Previous = Float[Tensor, "B H S"]

FEW_QUERIES = 5
"""Below this, doubling query by query beats a wavefront (measured, 30 keys, one CPU core)."""


def expected_alignment(stop: Weights, previous: Previous, computation: Computation) -> Weights:
    """Expected normalizer of every query.

    Args:
        stop: Probability of stopping at a key once there; 0 at keys that may not be read.
        previous: Normalizer of the query before the first one.
        computation: `wavefront` takes L + S rounds, `doubling` log2(S) rounds a query, `pairwise`
            O(S^2) memory and time a query, `recursive` S rounds a query; all are exact. `auto` is
            `doubling` for few queries, else `wavefront`. `parallel` is the published closed form,
            which is not exact.
    """
    if computation == "wavefront" or (computation == "auto" and stop.shape[2] >= FEW_QUERIES):
        return _wavefront(stop, previous)
    by_row = {"pairwise": _pairwise, "recursive": _recursive, "parallel": _closed_form}
    advance = by_row.get(computation, _doubling)
    rows = []
    for row in stop.unbind(2):
        previous = advance(row, previous)
        rows.append(previous)
    return torch.stack(rows, 2)


def hard_walk(stop: Weights, previous: Previous) -> Weights:
    """First key from the last stop on that is likelier to stop than not; none once off the end."""
    stops = (stop > 0.5).detach()
    place = previous > 0.5
    found = []
    for row in stops.unbind(2):
        ahead = row & (place.cumsum(-1) > 0)
        place = ahead & (ahead.cumsum(-1) == 1)
        found.append(place)
    return torch.stack(found, 2).to(stop.dtype)


def _wavefront(stop: Weights, previous: Previous) -> Weights:
    """All (query, key) with equal query + key at once: L + S rounds, the additions of the scan."""
    length, num_keys = stop.shape[2:]
    stops = _skew(stop).unbind(-1)
    entering = functional.pad(previous, (0, length - 1)).unbind(-1)
    reached = functional.pad(entering[0].unsqueeze(-1), (0, length - 1))
    found = [stops[0] * reached]
    for at in range(1, len(stops)):
        arriving = torch.cat((entering[at].unsqueeze(-1), found[-1][..., :-1]), -1)
        reached = (1 - stops[at - 1]) * reached + arriving
        found.append(stops[at] * reached)
    skewed = torch.stack(found, -1).flatten(-2)
    return functional.pad(skewed, (0, length)).unflatten(-1, (length, -1))[..., :num_keys]


def _skew(x: Weights) -> Float[Tensor, "B H L D"]:
    """Move row t right by t, zeros around it: out[t, t + s] = x[t, s]."""
    length, num_keys = x.shape[2:]
    width = length + num_keys - 1
    flat = functional.pad(x, (0, length)).flatten(-2)
    return flat[..., : length * width].unflatten(-1, (length, width))


def _doubling(stop: Previous, previous: Previous) -> Previous:
    """Prefix scan over keys: each round doubles the stretch that a walk has been summed over."""
    return stop * scan(functional.pad(1 - stop[..., :-1], (1, 0)), previous)


def scan(kept: Float[Tensor, "*n S"], added: Float[Tensor, "*n S"]) -> Float[Tensor, "*n S"]:
    """x_s = kept_s x_{s-1} + added_s by prefix doubling, in log2(S) rounds without a division."""
    step = 1
    while step < kept.shape[-1]:
        more = added[..., step:] + kept[..., step:] * added[..., :-step]
        longer = kept[..., step:] * kept[..., :-step]
        added = torch.cat((added[..., :step], more), -1)
        kept = torch.cat((kept[..., :step], longer), -1)
        step *= 2
    return added


def _pairwise(stop: Previous, previous: Previous) -> Previous:
    """Probability of walking from every key to every later one; O(S^2) memory."""
    num_keys = stop.shape[-1]
    later = torch.ones(num_keys, num_keys, dtype=torch.bool, device=stop.device).triu()
    pass_before = functional.pad(1 - stop[..., :-1], (1, 0), value=1.0).unsqueeze(-2)
    walk = torch.where(later.triu(1), pass_before, 1.0).cumprod(-1)
    walk = torch.where(later, walk, 0.0)
    return stop * (previous.unsqueeze(-2) @ walk).squeeze(-2)


def _recursive(stop: Previous, previous: Previous) -> Previous:
    """The definition: a scan over keys."""
    reached = previous[..., 0]
    found = [stop[..., 0] * reached]
    for s in range(1, stop.shape[-1]):
        reached = (1 - stop[..., s - 1]) * reached + previous[..., s]
        found.append(stop[..., s] * reached)
    return torch.stack(found, -1)


def _closed_form(stop: Previous, previous: Previous) -> Previous:
    """The published quotient of sums and products, clipped; loses mass where it clips."""
    passed = functional.pad(1 - stop[..., :-1], (1, 0), value=1.0).cumprod(-1)
    return stop * passed * (previous / passed.clamp(1e-10, 1.0)).cumsum(-1)


@dataclass(frozen=True, kw_only=True)
class MonotonicConfig(Config):
    """Options that every monotonic alignment has."""

    offset: Annotated[float, FloatRange(-5.0, 0.0)] = -1.0
    """Initial r, added to the energy and learned (logits); lower reads further at first."""
    noise: Annotated[float, FloatRange(0.0, 4.0)] = 1.0
    """Standard deviation of the noise on the energy in training (logits)."""
    computation: Computation = "auto"
    """Code of the expected normalizer; all are exact but `parallel`, which is not certified."""
    end: Literal["nothing", "last"] = "nothing"
    """What a walk that runs off the end reads: the zero vector, or as if it stopped at the last
    key (mass preservation)."""

    def __post_init__(self) -> None:
        """Check the noise."""
        if self.noise < 0:
            raise InvalidConfig(f"monotonic walk: noise must be at least 0, got {self.noise}.")


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

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Walk, then read; keys that may not be read never stop the walk."""
        rows, heads, _, num_keys = energy.shape
        if call.read == "train" and self.walk.noise:
            draws = call.drawing.normal(self.stream_name, rows, heads, call.position, num_keys)
            energy = energy + self.walk.noise * draws.to(energy.dtype)
        stop = self.stop_probability(energy)
        if allowed is not None:
            stop = torch.where(allowed, stop, 0.0)
        previous = leaf(state, "alpha").to(stop.dtype)
        if call.read == "hard":
            stops = hard_walk(stop, previous)
        else:
            stops = expected_alignment(stop, previous, self.walk.computation)
        after = {"alpha": stops[:, :, -1]}
        terms = delays(stops, call)
        if self.stays_at_end:
            lost = (1 - stops.sum(-1, keepdim=True)).clamp(min=0)
            stops = stops + lost * last_allowed(stops, allowed)
        return Normalized(self.spread(stops, allowed, call), after, terms)

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
        if self.stays_at_end and any(allowed):
            last = max(s for s, open_ in enumerate(allowed) if open_)
            stops[last] = stops[last] + 1 - sum(stops)
        return self.oracle_spread(stops, allowed, one)

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
    """Keys read before the answer; off the end, all of them were.

    `expected_delay` averages over heads, `delay_leading` leans to heads that have read further by
    a softmax of their delays, `delay_variance` is how far heads are apart, and `touched` is the
    count of the head that has read most, which is how long a decoder waits.
    """
    length = call.memory.source.length.to(stops.dtype)[:, None, None]
    read = stops @ (call.key_position + 1).to(stops.dtype)
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


@dataclass(frozen=True, kw_only=True)
class ChunkConfig(MonotonicConfig):
    """Options of monotonic alignments that read softly before the stop."""

    chunk: Annotated[Selector, OfAxis("score")] = Selector("additive")
    """Score of the keys before the stop, against each other; a second one, with its own weights."""


class ChunkNormalizer(MonotonicNormalizer):
    """Reads the key of the stop and `lookback` keys before it by a softmax of a second score."""

    def __init__(self, config: ChunkConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.chunk: Score = registry.make("score", config.chunk, dims._replace(num_features=0))
        self.own_scores = (self.chunk,)
        if "key_local" not in self.chunk.gives:
            raise Refused(
                f"{config.chunk.name} does not look at one key at a time, and the score of a "
                "chunk must, for keys after the stop are not read."
            )

    def prepare(self, source: Source) -> Tree:
        """What the second score prepares."""
        return self.chunk.prepare(source)

    def chunk_energy(self, call: Call) -> Energy:
        """Energies of the second score, which finds its own branch where a score looks for it."""
        parts = {self.chunk.branch: branch(call.memory.parts, self.branch)}
        memory = Memory(call.memory.source, parts)
        return self.chunk.energy(replace(call, memory=memory), None)

    def stop_weights(self, call: Call, allowed: Allowed) -> Weights:
        """Softmax over the chunk."""
        return masked_softmax(self.chunk_energy(call), allowed)

    @abstractmethod
    def spread(self, stops: Weights, allowed: Allowed | None, call: Call) -> Weights:
        """Average of the chunk's softmax over places of the stop."""

    def oracle_spread(
        self, stops: list[Tensor], allowed: list[bool], one: OneQuery
    ) -> Float[Tensor, " S"]:
        """Stop by stop, a softmax of the keys up to it."""
        energy = self.chunk.oracle(one, None)
        found = torch.zeros_like(energy)
        for k, mass in enumerate(stops):
            first = 0 if self.lookback is None else max(0, k - self.lookback)
            inside = [allowed[s] and first <= s <= k for s in range(len(allowed))]
            found = found + mass * oracle_softmax(energy, inside)
        return found
