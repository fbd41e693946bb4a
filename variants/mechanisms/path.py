"""PaTH: positions are products of reflections, one of every token between a key and its query.

Yang, Shen, Wen, Tan, Mishra, Ren, Panda & Kim, 2025, "PaTH attention: position encoding via
accumulating Householder transformations", https://arxiv.org/abs/2505.16381, sections 3.1 to 3.3.

Deviations: directions pass no short convolution unless `convolution` says so; that of the authors
sees three tokens and has SiLU behind it, which ours has not. Their map has rank 32 as in the paper,
also where query heads share keys, where the authors' layer takes a full map. Query heads that share
a key head share its forget gate, whose bias starts at 4, as that of `fox` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape, Read
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads, last_real
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf, leaves
from bench.api.variant import Variant
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.precision import wide_format

RANK = 32
"""Width of the vector between the two maps of directions (section 3.1)."""
FORGET = 4.0
"""Bias of the forget gate at the start, that of `fox`."""


@dataclass(frozen=True, kw_only=True)
class PathConfig(Config):
    """Options of PaTH."""

    chunk: Annotated[int, IntRange(2, 256, log=True)] = 64
    """Tokens whose transformations are applied at once; bounds memory, changes no result."""
    forget: bool = False
    """Whether energies also fall by forget gates, as in `fox` (PaTH-FoX)."""

    convolution: Annotated[int, Choices((0, 3))] = 0
    """Tokens of which each unit of a direction is a weighted sum, its own among them, before
    directions are made one long; 0 for no such sum, 3 in the paper."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.convolution < 0:
            raise InvalidConfig(f"path: convolution must not be negative, got {self.convolution}.")
        if self.chunk < 1:
            raise InvalidConfig(f"path: chunk must be at least 1, got {self.chunk}.")


@register(
    "mechanism",
    "path",
    title="Accumulated Householder products (PaTH)",
    config=PathConfig,
    citation=Citation(
        text="Yang et al., 2025",
        url="https://arxiv.org/abs/2505.16381",
        where="sections 3.1 to 3.3",
    ),
    cost=1.7,
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
)
class Path(Variant):
    """softmax over j of q_i . (H_i ... H_(j+1) k_j) / sqrt(E), H_t = I - b_t w_t w_t'.

    w_t is a unit vector and b_t = 2 sigmoid(v . x_t + c). The state holds transformed keys in
    float32 at least, and every token transforms those before it. Time O(L S E + L S C) per head
    for chunks of C, memory O(S (E + C)).
    """

    needs = frozenset({"equal_width"})
    remembers_keys = False
    gives = frozenset({"weights", "simplex", "places"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "its products run over the tokens between key and query, in one sequence",
        "self": "its products run from a key to a later query",
        "pool": "its products run over the tokens between key and query, in one sequence",
    }
    memory_exponent = 1.0

    def __init__(self, config: PathConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.chunk = config.chunk
        self.key_inputs = {
            "direction": SlotInput(dims.key_width, rank=RANK),
            "strength": SlotInput(1),
        }
        self.bias = nn.Parameter(torch.zeros(dims.kv_heads))
        self.starts = {"bias": 0.0}
        self.forget_bias: nn.Parameter | None = None
        if config.forget:
            self.key_inputs["forget"] = SlotInput(1)
            self.forget_bias = nn.Parameter(torch.full((dims.kv_heads,), FORGET))
            self.starts = {"bias": 0.0, "forget_bias": FORGET}
        self.taps: nn.Parameter | None = None
        if config.convolution:
            bound = config.convolution**-0.5  # the start of a convolution in PyTorch
            taps = torch.empty(config.convolution, dims.kv_heads, dims.key_width)
            self.taps = nn.Parameter(nn.init.uniform_(taps, -bound, bound))

    def prepare(self, source: Source) -> Memory:
        """Directions, strengths and the logarithms of forget gates, in float32 at least."""
        direction = leaf(source.extras, "direction")
        wide = wide_format(direction.dtype)
        raw = leaf(source.extras, "strength").to(wide)
        strength = 2 * torch.sigmoid(raw + self.bias.to(wide)[:, None, None])
        parts = {"direction": direction.to(wide)}
        if self.forget_bias is not None:
            raw = leaf(source.extras, "forget").to(wide)
            log_gate = functional.logsigmoid(raw + self.forget_bias.to(wide)[:, None, None])
            parts["log_gate"] = _at_keys(source, log_gate)
        # padding transforms nothing, whatever its direction, and forgets nothing
        return Memory(source, {**parts, "strength": _at_keys(source, strength)})

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """No keys yet."""
        wide = wide_format(like.dtype)

        def empty(width: int, dtype: torch.dtype) -> Tensor:
            shape = (like.rows, like.heads, 0, width)
            return torch.zeros(shape, dtype=dtype, device=like.device)

        carried = {
            "key": empty(self.dims.key_width, wide),
            "value": empty(self.dims.value_width, like.dtype),
            "real": torch.zeros((like.rows, 0), dtype=torch.bool, device=like.device),
        }
        if self.forget_bias is not None:
            carried["kept"] = empty(1, wide)
        if self.taps is not None:
            tokens, heads, width = self.taps.shape
            shape = (like.rows, heads, tokens - 1, width)
            carried["before"] = torch.zeros(shape, dtype=wide, device=like.device)
        return State(carried=carried)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Answer the queries chunk by chunk, and transform the keys after each."""
        heads, source = call.query.shape[1], call.memory.source
        key = leaf(carried, "key")
        query = call.query.to(key.dtype) * self.dims.key_width**-0.5
        new_key = expand_heads(source.key.to(key.dtype), heads)
        own = leaves(call.memory.parts)
        convolved = self._convolve(own, source.mask, carried)
        unit = functional.normalize(own["direction"], dim=-1)
        parts = {n: expand_heads(x, heads) for n, x in (own | {"direction": unit}).items()}
        new = {"value": expand_heads(source.value, heads), "real": source.key_mask()}
        if self.forget_bias is not None:
            # the sum of the logarithms of all gates up to each key
            earlier = leaf(carried, "kept")
            base = earlier[:, :, -1:] if earlier.shape[2] else 0.0
            new["kept"] = base + parts["log_gate"].cumsum(2)
        joined = call.join(leaves(carried, new), new)
        value, real = joined["value"], joined["real"]
        after: dict[str, Tensor | Tree] = {**joined, **convolved}
        outputs, rows = [], []
        for at in range(0, query.shape[2], self.chunk):
            some = slice(at, at + self.chunk)
            first = key.shape[2]
            key = torch.cat((key, new_key[:, :, some]), 2)
            last = key.shape[2]
            strength, direction = parts["strength"][:, :, some], parts["direction"][:, :, some]
            energy, key = _transform(query[:, :, some], key, direction, strength)
            if self.forget_bias is not None:
                kept = leaf(after, "kept")[:, :, :last]
                energy = energy + kept[:, :, first:] - kept.transpose(-1, -2)
            weights = masked_softmax(energy, _seen(real, first, last)).to(value.dtype)
            outputs.append(weights @ value[:, :, :last])
            if want_weights:
                rows.append(functional.pad(weights, (0, value.shape[2] - last)))
        found = torch.cat(rows, 2) if want_weights else None
        return MixResult(torch.cat(outputs, 2), found, {**after, "key": key}, {})

    def _convolve(
        self, own: dict[str, Tensor], mask: Bool[Tensor, "B L"] | None, carried: Tree
    ) -> dict[str, Tensor]:
        """Put weighted sums in the place of directions; returns what the next call needs."""
        if self.taps is None:
            return {}
        wide = torch.cat((leaf(carried, "before"), own["direction"]), 2)
        taps = self.taps.to(wide.dtype).unsqueeze(2)
        length = own["direction"].shape[2]
        sums = [tap * wide[:, :, at : at + length] for at, tap in enumerate(taps)]
        own["direction"] = torch.stack(sums).sum(0)
        return {"before": last_real(wide, mask, len(self.taps) - 1)}

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Transform every earlier key at every token, then score them all."""
        heads, length, width = query.shape
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        outputs, rows = [], []
        for head in range(heads):
            kv, of_value = head // group, source.value[0, head // value_group]
            extras = {name: leaf(source.extras, name)[0, kv] for name in self.key_inputs}
            keys: list[Tensor] = []
            forgotten: list[Tensor] = []
            for place in range(length):
                direction = self._oracle_direction(extras["direction"], kv, place)
                unit = direction / direction.square().sum().sqrt()
                strength = 2 / (1 + torch.exp(-extras["strength"][place, 0] - self.bias[kv]))
                keys = [k - strength * unit * torch.dot(unit, k) for k in keys]
                keys.append(source.key[0, kv, place])
                gate = torch.zeros_like(strength)
                if self.forget_bias is not None:
                    raw = extras["forget"][place, 0] + self.forget_bias[kv]
                    gate = torch.log(1 / (1 + torch.exp(-raw)))
                forgotten = [*(f + gate for f in forgotten), torch.zeros_like(gate)]
                scores = [torch.dot(query[head, place], k) / width**0.5 for k in keys]
                scores = [s + f for s, f in zip(scores, forgotten, strict=True)]
                weights = oracle_softmax(torch.stack(scores), [True] * len(keys))
                total = torch.zeros_like(of_value[0])
                for s in range(len(keys)):
                    total = total + weights[s] * of_value[s]
                outputs.append(total)
                rows.append(functional.pad(weights, (0, source.num_keys - len(keys))))
        shape = (heads, length)
        return torch.stack(outputs).unflatten(0, shape), torch.stack(rows).unflatten(0, shape)

    def _oracle_direction(self, raw: Float[Tensor, "S E"], head: int, place: int) -> Tensor:
        """The direction of one token, before it is made one long."""
        if self.taps is None:
            return raw[place]
        total = torch.zeros_like(raw[place])
        for back in range(min(len(self.taps), place + 1)):
            total = total + self.taps[len(self.taps) - 1 - back, head] * raw[place - back]
        return total


def _at_keys(source: Source, x: Float[Tensor, "B Hk S w"]) -> Float[Tensor, "B Hk S w"]:
    """Numbers of real keys; zero where there is padding."""
    return x if source.mask is None else x.masked_fill(~source.mask[:, None, :, None], 0.0)


def _seen(real: Bool[Tensor, "B S"], first: int, last: int) -> Bool[Tensor, "B 1 C K"]:
    """Which of the keys before the last place the queries from the first place on may see."""
    places = torch.arange(last, device=real.device)
    return (places <= places[first:, None]) & real[:, None, None, :last]


def _transform(
    query: Float[Tensor, "B H C E"],
    key: Float[Tensor, "B H S E"],
    direction: Float[Tensor, "B H C E"],
    strength: Float[Tensor, "B H C 1"],
) -> tuple[Float[Tensor, "B H C S"], Float[Tensor, "B H S E"]]:
    """Energies of a chunk of queries, and all keys as they stand after it.

    The last C keys are those of the chunk. Token s takes u_s w_s away from a key, where u_s depends
    on what the tokens before it took: a triangular system for each key, all solved at once.
    """
    size, earlier = query.shape[2], key.shape[2] - query.shape[2]
    # a token transforms the keys before its own
    product = (direction @ key.transpose(-1, -2)).tril(earlier - 1)
    among = (direction @ direction.transpose(-1, -2)).tril(-1)
    system = torch.eye(size, dtype=key.dtype, device=key.device) + strength * among
    taken = torch.linalg.solve_triangular(
        system, strength * product, upper=False, unitriangular=True
    )
    read = (query @ direction.transpose(-1, -2)).tril()
    energy = query @ key.transpose(-1, -2) - read @ taken
    return energy, key - taken.transpose(-1, -2) @ direction
