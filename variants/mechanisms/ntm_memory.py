"""Memory that is written: each step erases and adds at addressed slots, then reads others.

Graves, Wayne & Danihelka, 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401,
sections 3.1 to 3.3, equations 2 to 9.

Deviations: what the controller emits is linear in what the heads project: parameters of the reading
head in the query, those of the writing head in the key, and the vector that is added is the value.
The paper does not order writing and reading within a step; here a step reads what it has just
written. The memory starts at zero, both heads on the first slot. In the cosine, norms are at least
0.01: the direction of a slot that is almost empty is noise, and so is its gradient. What is read
does not return to the controller. A step whose token is padding writes nothing and moves no head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape, Read
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf
from bench.api.variant import Variant
from variants.normalizers.ntm_addressing import sharpened, shifted
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.precision import at_least_single, wide_format

LEAST_NORM = 1e-2
"""Of a key and of a slot in the cosine; an empty slot has cosine zero with everything."""
SCALARS = 3
"""Strength, gate and sharpness, in this order."""

Focus = Float[Tensor, "B H N"]
"""Weights of a head over the slots."""
Slots = Float[Tensor, "B H N W"]


@dataclass(frozen=True, kw_only=True)
class NtmMemoryConfig(Config):
    """Options of the memory."""

    slots: Annotated[int, IntRange(4, 256, log=True)] = 32
    """Vectors that the memory holds, N."""
    reach: Annotated[int, IntRange(1, 5), Legal(0)] = 1
    """Longest shift in one step, to either side (slots)."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.slots < 1 or self.reach < 0:
            raise InvalidConfig(
                "ntm_memory: slots must be at least 1 and reach at least 0, "
                f"got {self.slots}, {self.reach}."
            )


class Controls(NamedTuple):
    """What the controller says to a head at one step."""

    content: Float[Tensor, "B H W"]
    """k, what is looked for."""
    strength: Float[Tensor, "B H 1"]
    gate: Float[Tensor, "B H 1"]
    sharpness: Float[Tensor, "B H 1"]
    shift: Float[Tensor, "B H taps"]


@register(
    "mechanism",
    "ntm_memory",
    title="Memory with erase and add (Turing machine)",
    config=NtmMemoryConfig,
    citation=Citation(
        text="Graves et al., 2014",
        url="https://arxiv.org/abs/1410.5401",
        where="sections 3.1 to 3.3, equations 2 to 9",
    ),
    cost=9.0,
    default_task=DefaultTask(
        task="repeat_copy[repeats=1]", backbone="transformer_decoder[width=32,layers=1,heads=1]"
    ),
)
class NtmMemory(Variant):
    """M(i) = M(i) (1 - w(i) e) + w(i) a at the writing head's w; r = sum_i w'(i) M(i) at the other.

    Both heads are addressed by content, gate, shift and sharpening as in `ntm_addressing`. It is
    sequential in the steps; time O(L N (W + reach)) per head, W the width of values; the state
    holds N W numbers whatever the length.
    """

    remembers_keys = False
    time_exponent = 1.0
    memory_exponent = 1.0
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it reads what it wrote at its own earlier steps, and another sequence has none",
        "self": "it writes from left to right, and here keys lie on both sides",
        "pool": "it reads what it wrote at its own earlier steps, and a single query has none",
    }

    starts = {"reading_bias": 0.0, "writing_bias": 0.0}

    def __init__(self, config: NtmMemoryConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.slots, self.reach = config.slots, config.reach
        self.taps = 2 * config.reach + 1
        heads, self.width = dims.heads, dims.value_width
        said = self.width + SCALARS + self.taps
        self.reading = nn.Parameter(xavier_per_head(heads, dims.query_width, said))
        self.reading_bias = nn.Parameter(torch.zeros(heads, 1, said))
        # the writing head says what it erases, too
        self.writing = nn.Parameter(xavier_per_head(heads, dims.key_width, said + self.width))
        self.writing_bias = nn.Parameter(torch.zeros(heads, 1, said + self.width))

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty memory, and both heads on its first slot."""
        dtype = wide_format(like.dtype)
        shape = (like.rows, like.heads, self.slots)
        empty = torch.zeros(*shape, self.width, dtype=dtype, device=like.device)
        first = torch.zeros(shape, dtype=dtype, device=like.device)
        first[..., 0] = 1.0
        return State(carried={"memory": empty, "reads": first, "writes": first})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Write and read step by step."""
        source = call.memory.source
        key, value = (expand_heads(x, self.dims.heads) for x in (source.key, source.value))
        asked = per_head_linear(at_least_single(call.query), at_least_single(self.reading))
        wrote = per_head_linear(at_least_single(key), at_least_single(self.writing))
        asked, wrote = asked + self.reading_bias, wrote + self.writing_bias
        erased, wrote = wrote.split([self.width, wrote.shape[-1] - self.width], -1)
        steps = (asked, wrote, torch.sigmoid(erased), at_least_single(value))
        memory, reads, writes = (leaf(carried, name) for name in ("memory", "reads", "writes"))
        found = []
        # one split has one backward; an index a step would write a whole gradient each
        for place, step in enumerate(zip(*(x.unbind(2) for x in steps), strict=True)):
            real = None if source.mask is None else source.mask[:, place, None, None]
            memory, writes = self._write(memory, writes, step[1:], real)
            moved = self._addressed(memory, reads, step[0])
            # a head that moved at padding would carry its content to the tokens behind it
            reads = moved if real is None else torch.where(real, moved, reads)
            found.append(torch.einsum("bhn,bhnw->bhw", reads, memory))
        output = torch.stack(found, 2).to(call.query.dtype)
        after = {"memory": memory, "reads": reads, "writes": writes}
        return MixResult(output, None, after, {})

    def _write(
        self,
        memory: Slots,
        before: Focus,
        step: tuple[Float[Tensor, "B H P"], Float[Tensor, "B H W"], Float[Tensor, "B H W"]],
        real: Bool[Tensor, "B 1 1"] | None,
    ) -> tuple[Slots, Focus]:
        """Equations 3 and 4; where the token is padding, memory and head stay as they are."""
        said, erased, added = step
        moved = self._addressed(memory, before, said)
        focus = moved if real is None else torch.where(real, moved, 0.0)
        kept = 1 - focus.unsqueeze(-1) * erased.unsqueeze(-2)
        after = memory * kept + focus.unsqueeze(-1) * added.unsqueeze(-2)
        return after, moved if real is None else torch.where(real, moved, before)

    def _addressed(self, memory: Slots, before: Focus, said: Float[Tensor, "B H P"]) -> Focus:
        """Equations 5 to 9: by content, gated with the step before, shifted and sharpened."""
        asked = self._controls(said)
        products = torch.einsum("bhw,bhnw->bhn", asked.content, memory)
        cosine = products / (_norm(asked.content) * _norm(memory).squeeze(-1))
        content = torch.softmax(asked.strength * cosine, -1)
        mixed = asked.gate * content + (1 - asked.gate) * before
        place = torch.arange(self.slots, device=memory.device)
        shift = torch.arange(-self.reach, self.reach + 1, device=memory.device)
        origin = (place - shift[:, None]) % self.slots
        moved = shifted(mixed, asked.shift, origin.expand(len(memory), -1, -1))
        return sharpened(moved, asked.sharpness)

    def _controls(self, said: Float[Tensor, "B H P"]) -> Controls:
        content, strength, gate, sharpness, shift = said.split(
            [self.width, *[1] * SCALARS, self.taps], -1
        )
        return Controls(
            content,
            functional.softplus(strength),
            torch.sigmoid(gate),
            1 + functional.softplus(sharpness),
            torch.softmax(shift, -1),
        )

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """One head after the other, one step after the other, slot by slot."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        found = []
        for head in range(query.shape[0]):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            zero = value.new_zeros(())
            memory = [torch.zeros_like(value[0]) for _ in range(self.slots)]
            reads = writes = [zero + float(slot == 0) for slot in range(self.slots)]
            for place in range(query.shape[1]):
                wrote = key[place] @ self.writing[head] + self.writing_bias[head, 0]
                erased = 1 / (1 + torch.exp(-wrote[: self.width]))
                writes = self._oracle_address(memory, writes, wrote[self.width :])
                for slot in range(self.slots):
                    rest = memory[slot] * (1 - writes[slot] * erased)
                    memory[slot] = rest + writes[slot] * value[place]
                asked = query[head, place] @ self.reading[head] + self.reading_bias[head, 0]
                reads = self._oracle_address(memory, reads, asked)
                total = torch.zeros_like(value[0])
                for slot in range(self.slots):
                    total = total + reads[slot] * memory[slot]
                found.append(total)
        return torch.stack(found).unflatten(0, query.shape[:2]), None

    def _oracle_address(
        self, memory: list[Tensor], before: list[Tensor], said: Float[Tensor, " P"]
    ) -> list[Tensor]:
        content, scalars = said[: self.width], said[self.width :]
        strength = torch.log(1 + torch.exp(scalars[0]))
        gate = 1 / (1 + torch.exp(-scalars[1]))
        sharpness = 1 + torch.log(1 + torch.exp(scalars[2]))
        shares = [torch.exp(tap) for tap in scalars[SCALARS:]]
        alike = []
        for slot in memory:
            norms = [
                (x @ x) ** 0.5 if x @ x > LEAST_NORM**2 else LEAST_NORM for x in (content, slot)
            ]
            alike.append(torch.exp(strength * (content @ slot) / (norms[0] * norms[1])))
        mass, whole = sum(alike, 0 * gate), sum(shares, 0 * gate)
        mixed = [gate * a / mass + (1 - gate) * b for a, b in zip(alike, before, strict=True)]
        raised = []
        for i in range(self.slots):
            moved = 0 * gate
            for tap, share in enumerate(shares):
                moved = moved + mixed[(i - (tap - self.reach)) % self.slots] * share / whole
            raised.append(moved**sharpness)
        total = sum(raised, 0 * gate)
        return [r / total for r in raised]


def _norm(x: Float[Tensor, "*n W"]) -> Float[Tensor, "*n 1"]:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=LEAST_NORM)
