"""Multi-dimensional attention: every feature of the value has its own weights over the keys.

Shen et al., 2018, "DiSAN: directional self-attention network for RNN/CNN-free language
understanding", https://arxiv.org/abs/1709.04696, section 3.1 (multi-dimensional attention), section
3.2 (source2token) and section 4.1 (the bounded form of directional self-attention).

Deviations: the outer bias is left out, because softmax cancels it; causal self-attention includes
the query's own position, which the paper's directional masks take out; fusion gate and masks of
both directions are the network's, not the attention's; with several heads each has its own maps and
features.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, Read
from bench.api.config import Choices, Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from bench.api.source import Memory, Source, Tree, leaf
from bench.api.variant import Variant
from variants.per_head_linear import per_head_linear, xavier_per_head

CHUNK_ELEMENTS = 2**20
"""Largest tensor of hidden units computed at once: 4 MB in float32, so that it stays in cache."""

Form = Literal["full", "bounded", "source2token"]


@dataclass(frozen=True, kw_only=True)
class MultiDimensionalConfig(Config):
    """Options of multi-dimensional attention."""

    form: Annotated[Form, Choices(("full", "bounded", "source2token"))] = "full"
    """W elu(U k + V q + b); c tanh((U k + V q + b) / c); the first without a query."""
    width: Annotated[int, IntRange(8, 1024, log=True)] = 32
    """Hidden units, per head; the bounded form has one a feature instead."""
    bound: Annotated[float, FloatRange(1.0, 20.0)] = 5.0
    """Largest energy c of the bounded form (logits)."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.width < 1 or self.bound <= 0:
            raise InvalidConfig(
                "multi_dimensional: width must be at least 1 and bound positive, "
                f"got {self.width} and {self.bound}."
            )


@register(
    "mechanism",
    "multi_dimensional",
    title="Multi-dimensional attention",
    config=MultiDimensionalConfig,
    citation=Citation(
        text="Shen et al., 2018",
        url="https://arxiv.org/abs/1709.04696",
        where="sections 3.1, 3.2 and 4.1",
    ),
    cost=1.5,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class MultiDimensionalAttention(Variant):
    """o_f = sum_s softmax_s(e_sf) v_sf with an energy e_s of the value's width for each key.

    Time O(L S Ev d_a) per head, in chunks of queries; `source2token` O(S Ev d_a), once per source,
    but under causality. Weights are reported as their mean over features, as the bench reports the
    mean over heads: they sum to one, yet the output is not their sum of values.
    """

    gives = frozenset({"weights", "simplex", "key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: MultiDimensionalConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        heads, features = dims.heads, dims.value_width
        self.bound = config.bound
        hidden = features if config.form == "bounded" else config.width
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, hidden))
        self.bias = nn.Parameter(torch.zeros(heads, 1, hidden))
        self.query_map: nn.Parameter | None = None
        if config.form != "source2token":
            self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, hidden))
        self.feature_map: nn.Parameter | None = None
        if config.form != "bounded":
            self.feature_map = nn.Parameter(xavier_per_head(heads, hidden, features))

    def prepare(self, source: Source) -> Memory:
        """The key's part of the hidden units; without a query, the energies themselves."""
        key = expand_heads(source.key, self.dims.heads)
        found = per_head_linear(key, self.key_map) + self.bias
        return Memory(source, {"key": self._energy(found) if self.query_map is None else found})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Softmax over keys for every feature, in chunks of queries that fit the cache."""
        value = expand_heads(call.memory.source.value, self.dims.heads).unsqueeze(2)
        key, allowed = leaf(call.memory.parts, "key").unsqueeze(2), call.allowed
        length = call.query.shape[2]
        if self.query_map is None:
            # all queries see the same unless they see different keys
            energy = key.expand(-1, -1, length if call.causal else 1, -1, -1)
            output, weights = _read(energy, value, allowed)
            shape = (*call.query.shape[:3], -1)
            return MixResult(output.expand(shape), weights.expand(shape), carried, {})
        query = per_head_linear(call.query, self.query_map).unsqueeze(3)
        widest = max(key.shape[4], value.shape[4])
        step = max(1, CHUNK_ELEMENTS // max(1, key[..., 0].numel() * widest))
        found = []
        for at in range(0, length, step):
            some = slice(at, at + step)
            shown = allowed if allowed is None or allowed.shape[2] == 1 else allowed[:, :, some]
            found.append(_read(self._energy(query[:, :, some] + key), value, shown))
        output = torch.cat([part for part, _ in found], 2)
        return MixResult(output, torch.cat([part for _, part in found], 2), carried, {})

    def _energy(self, hidden: Float[Tensor, "B H *n W"]) -> Float[Tensor, "B H *n Ev"]:
        if self.feature_map is None:
            return self.bound * torch.tanh(hidden / self.bound)
        return per_head_linear(functional.elu(hidden), self.feature_map)

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Feature by feature and key by key."""
        heads, length, _ = query.shape
        num_keys = source.num_keys
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        outputs, weights = [], []
        for head, place in ((h, p) for h in range(heads) for p in range(length)):
            visible = place + 1 if self.dims.regime == "causal" else num_keys
            value = source.value[0, head // value_group]
            energies = [
                self._oracle_energy(head, query[head, place], source.key[0, head // group, s])
                for s in range(visible)
            ]
            mean = [query.new_zeros(()) for _ in range(num_keys)]
            features = []
            for f in range(value.shape[1]):
                terms = [torch.exp(energy[f]) for energy in energies]
                total = sum(terms, query.new_zeros(()))
                shares = [term / total for term in terms]
                output = query.new_zeros(())
                for s in range(visible):
                    output = output + shares[s] * value[s, f]
                    mean[s] = mean[s] + shares[s] / value.shape[1]
                features.append(output)
            outputs.append(torch.stack(features))
            weights.append(torch.stack(mean))
        shape = (heads, length)
        return torch.stack(outputs).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)

    def _oracle_energy(self, head: int, query: Tensor, key: Tensor) -> list[Tensor]:
        hidden = []
        for unit in range(self.key_map.shape[2]):
            inside = self.bias[head, 0, unit] + key @ self.key_map[head, :, unit]
            if self.query_map is not None:
                inside = inside + query @ self.query_map[head, :, unit]
            hidden.append(inside)
        if self.feature_map is None:
            return [self.bound * torch.tanh(x / self.bound) for x in hidden]
        active = [x if x > 0 else torch.exp(x) - 1 for x in hidden]
        width = self.feature_map.shape[2]
        return [
            sum(
                (x * self.feature_map[head, unit, f] for unit, x in enumerate(active)),
                key.new_zeros(()),
            )
            for f in range(width)
        ]


def _read(
    energy: Float[Tensor, "B H n S Ev"], value: Float[Tensor, "B H 1 S Ev"], allowed: Allowed | None
) -> tuple[Mixed, Weights]:
    """Softmax over allowed keys, and the values under it; zeros where no key is allowed."""
    if allowed is None:
        weights = torch.softmax(energy, -2)
    else:
        shown = allowed.unsqueeze(-1)
        fill = torch.finfo(energy.dtype).min
        weights = torch.softmax(torch.where(shown, energy, fill), -2)
        weights = torch.where(shown, weights, 0.0)
    return (weights * value).sum(-2), weights.mean(-1)
