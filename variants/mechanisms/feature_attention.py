"""Attention by features: weights are products of features, so that all keys become one matrix.

Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, sections 3.2 to 3.4. What
`linear_attention`, `performer` and others share; each is a map from vectors to features.

Positions turn queries and keys before the map, so that features and weights stay positive. Weights
then depend on places, and on distances alone only in the mean over directions of `performer`. Su et
al., 2021, https://arxiv.org/abs/2104.09864, section 3.3, turn features instead, whose products may
be negative.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Call, Dims, MixResult, QueryShape, Read
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.shapes import Mixed
from bench.api.source import Memory, Source, State, Tree, leaf
from bench.api.variant import Variant
from variants.mechanisms.chunked_state import Steps, full_products, run
from variants.precision import at_least_single, wide_format

EPS = 1e-6
"""Added to the sum of weights, so that a row without any key is zero."""


class FeatureAttention(Variant):
    """f(q).M / (f(q).z + eps), M = sum f(k) v, z = sum f(k).

    Cross attention keeps M and z in the memory, causal self-attention in the state, in float32 at
    least; nothing grows with the number of keys.
    """

    needs = frozenset({"equal_width"})
    remembers_keys = False
    time_exponent = 1.0
    memory_exponent = 1.0
    eps: float = EPS
    num_maps: int
    """F, features of a query or key."""

    def __init__(self, dims: Dims, impl: Impl, num_maps: int) -> None:
        super().__init__(dims, impl)
        self.num_maps = num_maps

    @abstractmethod
    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """Features of keys at their places, not negative."""

    def of_queries(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """The same of queries."""
        return self.of_keys(x, place)

    @abstractmethod
    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """`of_keys` for one key of one head, by loops."""

    def oracle_of_query(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """`of_queries` for one query of one head, by loops."""
        return self.oracle_of_key(x, place, head)

    def prepare(self, source: Source) -> Memory:
        """Sum up the keys, once per source."""
        if self.dims.regime == "causal":
            return Memory(source)
        place = torch.arange(source.num_keys, device=source.key.device)
        # sums over many keys lose digits in half precision, and leave the range of float16
        with full_products(source.key):
            key, value = self._features(source, place)
            matrix = key.transpose(-1, -2) @ value
        return Memory(source, {"matrix": matrix, "normalizer": key.sum(-2).unsqueeze(-1)})

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty matrix under causal self-attention."""
        if self.dims.regime != "causal":
            return State()
        dtype = wide_format(like.dtype)
        shape = (like.rows, like.heads, self.num_maps)
        matrix = torch.zeros(*shape, self.dims.value_width, dtype=dtype, device=like.device)
        normalizer = torch.zeros(*shape, 1, dtype=dtype, device=like.device)
        return State(carried={"matrix": matrix, "normalizer": normalizer})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read the matrix; under causal self-attention read and write it, chunk by chunk."""
        with full_products(call.query):
            if call.causal:
                output, carried = self.in_order(call, carried)
            else:
                output = self._of_all(call)
        return MixResult(output.to(call.query.dtype), None, carried, {})

    def _of_all(self, call: Call) -> Mixed:
        """What queries read from all keys."""
        query = self.of_queries(at_least_single(call.query), call.position)
        matrix, normalizer = (leaf(call.memory.parts, name) for name in ("matrix", "normalizer"))
        return (query @ matrix) / (query @ normalizer + self.eps)

    def in_order(self, call: Call, carried: Tree) -> tuple[Mixed, Tree]:
        """What each query reads from the keys up to its own, and the matrix in the end."""
        query = self.of_queries(at_least_single(call.query), call.position)
        matrix, normalizer = leaf(carried, "matrix"), leaf(carried, "normalizer")
        key, value = self._features(call.memory.source, call.position)
        # values that are all 1 sum up the weights
        value = torch.cat((value, torch.ones_like(value[..., :1])), -1)
        both, state = run(Steps(query, key, value), torch.cat((matrix, normalizer), -1))
        output = both[..., :-1] / (both[..., -1:] + self.eps)
        return output, {"matrix": state[..., :-1], "normalizer": state[..., -1:]}

    def _features(
        self, source: Source, place: Int[Tensor, " S"]
    ) -> tuple[Float[Tensor, "B Hq S F"], Float[Tensor, "B Hq S Ev"]]:
        """Features and values of keys; both zero where a key is padding."""
        heads = self.dims.heads
        key, value = (at_least_single(expand_heads(x, heads)) for x in (source.key, source.value))
        if source.mask is None:
            return self.of_keys(key, place), value
        real = source.mask[:, None, :, None]
        # numbers in padding may be too large for a map, so they go before and after it
        features = self.of_keys(torch.where(real, key, 0.0), place)
        return torch.where(real, features, 0.0), torch.where(real, value, 0.0)

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """The weighted mean of values under the product of features, pair by pair."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        found = []
        for head in range(query.shape[0]):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            keys = [self.oracle_of_key(key[s], s, head) for s in range(len(key))]
            for place in range(query.shape[1]):
                asked = self.oracle_of_query(query[head, place], place, head)
                total, mass = torch.zeros_like(value[0]), query.new_tensor(self.eps)
                for s in range(place + 1 if self.dims.regime == "causal" else len(keys)):
                    similarity = sum(asked[f] * keys[s][f] for f in range(len(asked)))
                    total, mass = total + similarity * value[s], mass + similarity
                found.append(total / mass)
        return torch.stack(found).unflatten(0, query.shape[:2]), None
