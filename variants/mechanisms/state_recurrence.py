"""A recurrent layer in the place of attention: tokens write to a matrix, queries read it.

What `retnet`, `gated_deltanet` and others share; each says what its tokens do to the matrix of
`chunked_state.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, MixResult, OracleOptions, QueryShape, Read
from bench.api.capabilities import Capability
from bench.api.heads import expand_heads
from bench.api.shapes import Mixed
from bench.api.source import Memory, Source, State, Tree, leaf, tree_map
from bench.api.variant import Variant
from variants.mechanisms.chunked_state import Steps, run
from variants.precision import wide_format

IN_ORDER = "its matrix is written in the order of the queries"

Matrix = Float[Tensor, "E Ev"]
Table = Float[Tensor, "rows columns"]
"""What is carried by loops where that is more than one matrix, side by side."""


class Token(NamedTuple):
    """One token in one head, for loops."""

    head: int
    place: int
    query: Float[Tensor, " E"]
    key: Float[Tensor, " E"]
    value: Float[Tensor, " Ev"]
    given: Mapping[str, Tensor]
    """Inputs beside the key, by name."""


class StateRecurrence(Variant):
    """S_t from S_(t-1) and token t, o_t = q_t S_t.

    The state is one matrix a head, in float32 at least; no keys are kept. Time O(L E Ev) per head
    and a chunk of pairs more.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": IN_ORDER,
        "self": IN_ORDER,
        "pool": IN_ORDER,
    }
    remembers_keys = False
    time_exponent = 1.0
    memory_exponent = 1.0
    steps_per_token: int = 1

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty matrix."""
        dtype = wide_format(like.dtype)
        shape = (like.rows, like.heads, self.dims.key_width, self.dims.value_width)
        return State(carried={"matrix": torch.zeros(shape, dtype=dtype, device=like.device)})

    def steps(self, call: Call) -> Steps:
        """What tokens do to the matrix; not asked where `mix` is replaced.

        Everything in the call is in float32 at least; keys, values and what is beside the keys have
        a head for each query head, and are zero in padding.
        """
        raise NotImplementedError

    def finish(self, call: Call, output: Mixed) -> Mixed:
        """What comes out, from what was read."""
        return output

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Write and read the matrix, chunk by chunk."""
        state = leaf(carried, "matrix")
        same, times = self.widened(call, state.dtype), self.steps_per_token
        read, state = run(without_padding(self.steps(same), call.memory.source, times), state)
        output = self.finish(same, read[:, :, times - 1 :: times])
        return MixResult(output.to(call.query.dtype), None, {"matrix": state}, {})

    def widened(self, call: Call, dtype: torch.dtype) -> Call:
        """The call in a format in which sums are safe, as `steps` is given it."""
        source, mask = call.memory.source, call.memory.source.mask

        def wide(x: Float[Tensor, "B H S w"]) -> Float[Tensor, "B Hq S w"]:
            expanded = expand_heads(x.to(dtype), self.dims.heads)
            return expanded if mask is None else torch.where(mask[:, None, :, None], expanded, 0.0)

        extras = tree_map(wide, source.extras)
        asked = replace(source, key=wide(source.key), value=wide(source.value), extras=extras)
        return replace(call, query=call.query.to(dtype), memory=Memory(asked))

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Token by token."""
        heads, length, _ = query.shape
        group, value_group = heads // source.key.shape[1], heads // source.value.shape[1]
        found = []
        for head in range(heads):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            beside = {
                name: leaf(source.extras, name)[0, wanted.head(head // group)]
                for name, wanted in self.key_inputs.items()
            }
            matrix = self.oracle_start(value)
            for t in range(length):
                given = {name: one[t] for name, one in beside.items()}
                token = Token(head, t, query[head, t], key[t], value[t], given)
                matrix = self.oracle_step(matrix, token)
                found.append(self.oracle_read(matrix, token))
        return torch.stack(found).unflatten(0, (heads, length)), None

    def oracle_start(self, value: Float[Tensor, "S Ev"]) -> Table:
        """The matrix before the first token."""
        return value.new_zeros(self.dims.key_width, value.shape[1])

    def oracle_step(self, matrix: Table, token: Token) -> Table:
        """The matrix after a token, as in the paper; not asked where `oracle` is replaced."""
        raise NotImplementedError

    def oracle_read(self, matrix: Table, token: Token) -> Float[Tensor, " Ev"]:
        """What the query of a token reads."""
        return oracle_product(token.query, matrix)


def oracle_product(x: Float[Tensor, " E"], matrix: Matrix) -> Float[Tensor, " Ev"]:
    """A row times a matrix, unit by unit."""
    total = torch.zeros_like(matrix[0])
    for unit in range(len(x)):
        total = total + x[unit] * matrix[unit]
    return total


def oracle_written(matrix: Matrix, key: Float[Tensor, " E"], value: Float[Tensor, " Ev"]) -> Matrix:
    """The matrix and a value under a key, row by row."""
    return torch.stack([matrix[unit] + key[unit] * value for unit in range(len(key))])


def without_padding(steps: Steps, source: Source, times: int = 1) -> Steps:
    """Steps that leave the matrix as it is where a token is padding.

    Args:
        steps: What tokens do.
        source: The tokens.
        times: Steps of each token.
    """
    if source.mask is None:
        return steps
    real = torch.repeat_interleave(source.mask, times, 1)[:, None, :, None]

    def hidden(x: Float[Tensor, "B H M n"] | None) -> Float[Tensor, "B H M n"] | None:
        return None if x is None else torch.where(real, x, 0.0)

    key = torch.where(real, steps.key, 0.0)
    return steps._replace(key=key, log_decay=hidden(steps.log_decay), erase=hidden(steps.erase))
