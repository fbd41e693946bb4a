"""The Pro block of forgetting attention: shifted keys and values, norms, and a gate of the output.

Lin, Nikishin, He & Courville, 2025, "Forgetting transformer: softmax attention with a forget gate",
https://arxiv.org/abs/2503.02130, section 3, the architecture called Pro.

Deviations: the feed-forward layer stays the backbone's. Gains of the norms of queries and keys are
shared by the heads, as in the experiments of the paper. 1e-6 is added under their root, where the
authors' code has 1e-5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.heads import last_real, without_padding
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Query
from bench.api.source import Source, Tree, leaf
from variants.heads.grouped import NormedHeads
from variants.heads.projections import oracle_linear, split_heads, width_of_head
from variants.heads.query_key_norm import RmsNorm
from variants.precision import at_least_single

PAPER = Citation(text="Lin et al., 2025", url="https://arxiv.org/abs/2503.02130", where="section 3")
EPS = 1e-6
"""Added to the mean square in the norm of the output."""


@dataclass(frozen=True, kw_only=True)
class FoxProConfig(Config):
    """Options of the Pro block."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    shift: bool = True
    """Whether keys and values are means of this token's and of those of the token before."""
    qk_norm: bool = True
    """Whether queries and keys are divided by their root mean square, with gains."""
    norm: bool = True
    """Whether what a head reads is divided by its root mean square, with gains."""
    gate: bool = True
    """Whether what is read is multiplied by sigmoids of a map of the state that asks."""


@register("head", "fox_pro", config=FoxProConfig, citation=PAPER)
class FoxProHeads(NormedHeads):
    """k_t = norm(a_t W x_(t-1) + (1 - a_t) W x_t), a_t = sigmoid(w . x_t) for each head.

    Values are shifted alike, with shares of their own and no norm; output = gate * norm(read). The
    projected key and value of the last state that is no padding are kept.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = dict.fromkeys(
        ("cross", "self", "pool"),
        "its keys and values see the state before a state, so it needs a causal place",
    )

    def __init__(
        self,
        config: FoxProConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads = config.heads
        width = width_of_head("fox_pro", heads, query_width)
        dims = Dims(heads, heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=False)
        self.to_shares = nn.Linear(source_width, 2 * heads, bias=False) if config.shift else None
        self.norm = RmsNorm(width) if config.qk_norm else None
        self.gain = nn.Parameter(torch.ones(heads, width)) if config.norm else None
        self.starts = {"gain": 1.0} if config.norm else {}
        self.to_gate = nn.Linear(query_width, query_width, bias=False) if config.gate else None
        self.gates = config.norm or config.gate

    def start(self, like: QueryShape) -> Tree:
        """Zeros stand before the first state."""
        if self.to_shares is None:
            return {}
        shape = (like.rows, like.heads, 1, like.width)
        zeros = torch.zeros(shape, dtype=like.dtype, device=like.device)
        return {"key": zeros, "value": zeros}

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """Project, mix keys and values with those of the state before, normalize the keys."""
        real = without_padding(x, mask)
        key, value = self._split(self.to_key(real)), self._split(self.to_value(real))
        kept: Tree = {}
        if self.to_shares is not None:
            made = {"key": key, "value": value}
            kept = {name: _last(leaf(past, name), one, mask) for name, one in made.items()}
            of_keys, of_values = self.to_shares(real).sigmoid().mT.unsqueeze(-1).chunk(2, 1)
            key = _shifted(key, leaf(past, "key"), of_keys)
            value = _shifted(value, leaf(past, "value"), of_values)
        if self.norm is not None:
            key = self.norm.key(key)
        return self.query(x), Source(key, value, mask, tokens), kept

    def gate(
        self, output: Float[Tensor, "B H L E"], x: Float[Tensor, "B L D"]
    ) -> Float[Tensor, "B H L E"]:
        """Norm, then gate."""
        if self.gain is not None:
            wide = at_least_single(output)  # squares leave the range of float16
            size = (wide.square().mean(-1, keepdim=True) + EPS).rsqrt()
            output = (wide * size).to(output.dtype) * self.gain.unsqueeze(1)
        if self.to_gate is None:
            return output
        return output * split_heads(self.to_gate(x), self.dims.heads).sigmoid()

    def oracle_own(
        self, x: Float[Tensor, "L D"]
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "H L E"], Float[Tensor, "H L E"]]:
        """State by state and head by head."""
        heads = self.dims.heads
        keys, values = [], []
        for t, state in enumerate(x):
            made = list(self.oracle_source(state))
            if self.to_shares is not None:
                shares = [1 / (1 + torch.exp(-n)) for n in oracle_linear(self.to_shares, state)]
                before = [torch.zeros_like(one) for one in made]
                if t > 0:
                    before = list(self.oracle_source(x[t - 1]))
                for i, (old, new) in enumerate(zip(before, made, strict=True)):
                    mixed = []
                    for h in range(heads):
                        share = shares[i * heads + h]
                        mixed.append(share * old[h] + (1 - share) * new[h])
                    made[i] = torch.stack(mixed)
            if self.norm is not None:
                made[0] = torch.stack([self.norm.oracle_key(head) for head in made[0]])
            keys.append(made[0])
            values.append(made[1])
        query = torch.stack([self.oracle_query(state) for state in x], 1)
        return query, torch.stack(keys, 1), torch.stack(values, 1)

    def oracle_gate(
        self, output: Float[Tensor, "H E"], x: Float[Tensor, " D"]
    ) -> Float[Tensor, "H E"]:
        """One unit after the other."""
        heads, width = output.shape
        opened = [] if self.to_gate is None else oracle_linear(self.to_gate, x)
        found = []
        for h in range(heads):
            mean = sum((n * n for n in output[h]), start=x.new_zeros(())) / width
            for e in range(width):
                number = output[h, e]
                if self.gain is not None:
                    number = number / torch.sqrt(mean + EPS) * self.gain[h, e]
                if opened:
                    number = number / (1 + torch.exp(-opened[h * width + e]))
                found.append(number)
        return torch.stack(found).unflatten(0, (heads, width))


def _last(
    before: Float[Tensor, "B H 1 E"],
    made: Float[Tensor, "B H L E"],
    mask: Bool[Tensor, "B L"] | None,
) -> Float[Tensor, "B H 1 E"]:
    """The vector of the last state of each row that is no padding."""
    if mask is None:
        return made[:, :, -1:].clone()  # without the memory of the states before
    return last_real(torch.cat((before, made), 2), mask, 1)


def _shifted(
    made: Float[Tensor, "B H L E"],
    before: Float[Tensor, "B H 1 E"],
    share: Float[Tensor, "B H L 1"],
) -> Float[Tensor, "B H L E"]:
    """Means of vectors and of those before them."""
    earlier = torch.cat((before, made[:, :, :-1]), 2)
    return share * earlier + (1 - share) * made


register_recipe(
    "fox_pro",
    Recipe(axes={"head": "fox_pro", "position": "fox", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Forgetting attention in its Pro block (FoX Pro)",
    citation=PAPER,
    cost=1.3,
    default_task=DefaultTask(task="offset"),
    deviations="those of the head and of `fox`.",
)
