"""Linear attention: a product of feature maps replaces softmax, so that all keys become one matrix.

Katharopoulos et al., 2020, "Transformers are RNNs: fast autoregressive transformers with linear
attention", https://arxiv.org/abs/2006.16236, sections 3.2 to 3.4.

Deviations: none; 1e-6 is added to the normalizer as in the authors' code.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape, Read
from bench.api.component import expand_heads
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed
from bench.api.source import Memory, Source, State, Tree, leaf
from bench.api.variant import Impl, Variant

EPS = 1e-6
CHUNK = 64
"""Queries answered at once under causal self-attention; bounds memory, changes no result."""


@register(
    "mechanism",
    "linear_attention",
    title="Linear attention (elu + 1)",
    citation=Citation(
        text="Katharopoulos et al., 2020",
        url="https://arxiv.org/abs/2006.16236",
        where="sections 3.2 to 3.4",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Katharopoulos et al. report less time and memory over thousands of positions at a "
        "quality near that of softmax attention, and no gain of quality over it. Costs are in"
        " the tables of speed."
    ),
    rosters=("quick", "standard"),
)
class LinearAttention(Variant):
    """f(q).M / (f(q).z + eps), M = sum f(k) v, z = sum f(k), f(x) = elu(x) + 1.

    Time O((L + S) E Ev) per head. Cross attention keeps M and z in the memory, causal
    self-attention in the state, in float32 at least; nothing grows with the number of keys.
    """

    needs = frozenset({"equal_width"})
    remembers_keys = False
    time_exponent = 1.0
    memory_exponent = 1.0

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        if impl not in ("auto", "eager"):
            raise Refused(f"linear_attention has no impl={impl}; use auto or eager.")

    def prepare(self, source: Source) -> Memory:
        """Sum up the keys, once per source."""
        if self.dims.regime == "causal":
            return Memory(source)
        key, value = self._expand(source)
        matrix = key.transpose(-1, -2) @ value
        return Memory(source, {"matrix": matrix, "normalizer": key.sum(-2).unsqueeze(-1)})

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty matrix under causal self-attention."""
        if self.dims.regime != "causal":
            return State()
        dtype = torch.promote_types(like.dtype, torch.float32)
        shape = (like.rows, like.heads, self.dims.key_width)
        matrix = torch.zeros(*shape, self.dims.value_width, dtype=dtype, device=like.device)
        normalizer = torch.zeros(*shape, 1, dtype=dtype, device=like.device)
        return State(carried={"matrix": matrix, "normalizer": normalizer})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read the matrix; under causal self-attention read and write it, chunk by chunk."""
        query = _feature_map(call.query)
        tree = carried if call.causal else call.memory.parts
        matrix, normalizer = leaf(tree, "matrix"), leaf(tree, "normalizer")
        if not call.causal:
            output = (query @ matrix) / (query @ normalizer + EPS)
            return MixResult(output.to(call.query.dtype), None, carried, {})
        key, value = self._expand(call.memory.source)
        found = []
        for at in range(0, query.shape[2], CHUNK):
            chunk = slice(at, at + CHUNK)
            parts = query[:, :, chunk], key[:, :, chunk], value[:, :, chunk]
            found.append(_chunk(*parts, matrix, normalizer))
            matrix = matrix + parts[1].transpose(-1, -2) @ parts[2]
            normalizer = normalizer + parts[1].sum(-2).unsqueeze(-1)
        output = torch.cat(found, 2).to(call.query.dtype)
        return MixResult(output, None, {"matrix": matrix, "normalizer": normalizer}, {})

    def _expand(
        self, source: Source
    ) -> tuple[Float[Tensor, "B Hq S Ek"], Float[Tensor, "B Hq S Ev"]]:
        heads = self.dims.heads
        key = _feature_map(expand_heads(source.key, heads), source.mask)
        return key, expand_heads(source.value, heads).to(key.dtype)

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """The weighted mean of values under the product of features, pair by pair."""
        group = query.shape[0] // source.key.shape[1]
        found = []
        for head, place in ((h, p) for h in range(query.shape[0]) for p in range(query.shape[1])):
            total, mass = torch.zeros_like(source.value[0, 0, 0]), query.new_tensor(EPS)
            visible = place + 1 if self.dims.regime == "causal" else source.key.shape[2]
            for s in range(visible):
                similarity = query.new_zeros(())
                for unit in range(query.shape[2]):
                    one, two = query[head, place, unit], source.key[0, head // group, s, unit]
                    similarity = similarity + _oracle_feature(one) * _oracle_feature(two)
                total = total + similarity * source.value[0, head // group, s]
                mass = mass + similarity
            found.append(total / mass)
        return torch.stack(found).unflatten(0, query.shape[:2]), None


def _feature_map(
    x: Float[Tensor, "B H n E"], mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B H n E"]:
    """elu(x) + 1 in float32 at least; zero where a key is padding."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    features = functional.elu(wide) + 1
    return features if mask is None else features.masked_fill(~mask[:, None, :, None], 0.0)


def _oracle_feature(x: Tensor) -> Tensor:
    return x + 1 if x > 0 else torch.exp(x)


def _chunk(query: Tensor, key: Tensor, value: Tensor, matrix: Tensor, normalizer: Tensor) -> Mixed:
    """Answer a few queries from the matrix before them and the keys among them."""
    weights = (query @ key.transpose(-1, -2)).tril()
    mass = weights.sum(-1, keepdim=True) + query @ normalizer
    return (weights @ value + query @ matrix) / (mass + EPS)
