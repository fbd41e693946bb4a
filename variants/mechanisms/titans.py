"""Titans: a matrix that learns keys' values by gradient descent with momentum, and forgets.

Behrouz, Zhong & Mirrokni, 2024, "Titans: learning to memorize at test time",
https://arxiv.org/abs/2501.00663, section 3.1, equations 8 to 14.

Deviations: the memory is a matrix, the paper's linear case, and not a network of several layers.
The loss is half of the squared error, so that a step is half as long as the paper's at the same
rate. Gradients are taken at the memory just before each token, not at that before its chunk.
Queries and keys have length one. Persistent tokens, windows of attention, short convolutions and
gates around the memory are other parts of the paper's network.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, QueryShape
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf
from variants.mechanisms.chunked_state import full_products
from variants.mechanisms.state_recurrence import (
    StateRecurrence,
    Table,
    Token,
    oracle_product,
    oracle_written,
)
from variants.mechanisms.turned import Turned
from variants.mechanisms.unit_vectors import oracle_unit, unit

BLOCK = 8
"""Tokens answered at once."""
FORGETTING = -4.0
"""Where the bias of forgetting starts: about two hundredths are forgotten with each token."""


class Rates(NamedTuple):
    """Rates of tokens, one a head."""

    learned: Float[Tensor, "B H n"]
    momentum: Float[Tensor, "B H n"]
    """Share of the momentum that is kept."""
    kept: Float[Tensor, "B H n"]
    """Share of the memory that is kept."""
    moves: Float[Tensor, "B H n"]
    """Whether the momentum is added to the memory: 1, or 0 in padding."""


@register(
    "mechanism",
    "titans",
    title="Titans (linear memory)",
    citation=Citation(
        text="Behrouz et al., 2024", url="https://arxiv.org/abs/2501.00663", where="section 3.1"
    ),
    cost=2.7,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Behrouz et al. report better language models than transformers, and needles found in "
        "texts of more than 2 million tokens, with a deep memory and windows of attention. Here "
        "the memory is one small matrix, and softmax attention keeps every pair."
    ),
)
class Titans(Turned, StateRecurrence):
    """S_t = e S_(t-1) + r k (v - k M_(t-1)), M_t = (1 - a) M_(t-1) + S_t, o_t = q M_t.

    What is added to the momentum S is the step down the gradient of |k M - v|^2 / 2. Rates r, e and
    a are sigmoids of the token. Time O(L E (Ev + block)) per head, memory of state is twice that of
    other matrices.

    Through the momentum a gradient moves the memory by r / (1 - e) in the end. Where that is above
    2, the memory may grow until it is not finite. The paper's equations do not exclude such rates.
    """

    turned_alike = "this gradient compares keys with keys"

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.key_inputs = {"rate": SlotInput(1), "momentum": SlotInput(1), "forget": SlotInput(1)}
        self.bias = nn.Parameter(torch.full((dims.heads,), FORGETTING))
        self.starts = {"bias": FORGETTING}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty memory without momentum."""
        matrix = leaf(super().start(memory, like).carried, "matrix")
        return State(carried={"matrix": matrix, "momentum": torch.zeros_like(matrix)})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Learn and read, block by block."""
        matrix, momentum = leaf(carried, "matrix"), leaf(carried, "momentum")
        same, mask = self.widened(call, matrix.dtype), call.memory.source.mask
        source = same.memory.source
        rates = self._rates(source, None if mask is None else mask[:, None])
        query, key, value = unit(same.query), unit(source.key), source.value
        found = []
        for at in range(0, query.shape[2], BLOCK):
            some = slice(at, at + BLOCK)
            few = Rates(*(rate[:, :, some] for rate in rates))
            parts = query[:, :, some], key[:, :, some], value[:, :, some]
            with full_products(matrix):
                output, matrix, momentum = _block(*parts, few, matrix, momentum)
            found.append(output)
        output = torch.cat(found, 2).to(call.query.dtype)
        return MixResult(output, None, {"matrix": matrix, "momentum": momentum}, {})

    def _rates(self, source: Source, real: Bool[Tensor, "B 1 S"] | None) -> Rates:
        """Rates of all tokens; padding learns nothing, and leaves memory and momentum alone."""
        said = {name: leaf(source.extras, name).squeeze(-1) for name in self.key_inputs}
        learned, momentum = torch.sigmoid(said["rate"]), torch.sigmoid(said["momentum"])
        kept = torch.sigmoid(-said["forget"] - self.bias.to(learned.dtype)[:, None])
        moves = torch.ones_like(learned)
        if real is None:
            return Rates(learned, momentum, kept, moves)
        learned, moves = torch.where(real, learned, 0.0), torch.where(real, moves, 0.0)
        momentum, kept = torch.where(real, momentum, 1.0), torch.where(real, kept, 1.0)
        return Rates(learned, momentum, kept, moves)

    def oracle_start(self, value: Float[Tensor, "S Ev"]) -> Table:
        """The memory stands before the momentum."""
        return value.new_zeros(self.dims.key_width, 2 * value.shape[1])

    def oracle_step(self, matrix: Table, token: Token) -> Table:
        """Gradient, momentum, memory."""
        memory, momentum = matrix.chunk(2, 1)
        key, given = oracle_unit(token.key), token.given
        rate, kept = (1 / (1 + torch.exp(-given[name][0])) for name in ("rate", "momentum"))
        forgotten = 1 / (1 + torch.exp(-given["forget"][0] - self.bias[token.head]))
        error = token.value - oracle_product(key, memory)
        momentum = oracle_written(kept * momentum, key, rate * error)
        return torch.cat(((1 - forgotten) * memory + momentum, momentum), 1)

    def oracle_read(self, matrix: Table, token: Token) -> Float[Tensor, " Ev"]:
        """The memory alone is read."""
        return oracle_product(oracle_unit(token.query), matrix[:, : len(token.value)])


def _block(
    query: Float[Tensor, "B H n E"],
    key: Float[Tensor, "B H n E"],
    value: Float[Tensor, "B H n Ev"],
    rates: Rates,
    matrix: Float[Tensor, "B H E Ev"],
    momentum: Float[Tensor, "B H E Ev"],
) -> tuple[Float[Tensor, "B H n Ev"], Float[Tensor, "B H E Ev"], Float[Tensor, "B H E Ev"]]:
    """A few tokens at once: what they learn solves a triangular system, as under a delta rule."""
    after, moving = _shares(rates)
    start = torch.zeros_like(after[:, :, :1])
    start[..., 0] = 1
    before = torch.cat((start, after[:, :, :-1]), 2)
    learned = rates.learned.unsqueeze(-1)
    inner = (learned * before[..., 2:] * (key @ key.transpose(2, 3))).tril(-1)
    known = before[..., :1] * (key @ matrix) + before[..., 1:2] * (key @ momentum)
    right = learned * (value - known)
    written = torch.linalg.solve_triangular(inner, right, upper=False, unitriangular=True)
    output = (after[..., 2:] * (query @ key.transpose(2, 3))) @ written
    output = output + after[..., :1] * (query @ matrix) + after[..., 1:2] * (query @ momentum)
    ends = []
    for share in (after[:, :, -1:], moving):
        new = (key * share[..., 2:].transpose(2, 3)).transpose(2, 3) @ written
        ends.append(share[..., :1] * matrix + share[..., 1:2] * momentum + new)
    return output, ends[0], ends[1]


def _shares(
    rates: Rates,
) -> tuple[Float[Tensor, "B H n m"], Float[Tensor, "B H 1 m"]]:
    """How much of what there was, and of what each token wrote, is in the memory after each token.

    The first two columns are memory and momentum before the block, the others its tokens. The
    second result is the same of the momentum in the end.
    """
    size = rates.learned.shape[2]
    columns = torch.eye(size + 2, dtype=rates.learned.dtype, device=rates.learned.device)
    memory, moving = columns[0], columns[1]
    rows = []
    for t in range(size):
        momentum, kept, moves = (rate[:, :, t : t + 1] for rate in rates[1:])
        moving = momentum * moving + columns[t + 2]
        memory = kept * memory + moves * moving
        rows.append(memory)
    return torch.stack(rows, 2), moving.unsqueeze(2)
