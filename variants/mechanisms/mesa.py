"""Mesa layer: each query reads the ridge regression from all keys so far to their values.

von Oswald et al., 2025, "MesaNet: sequence modeling by locally optimal test-time training",
https://arxiv.org/abs/2506.05233, equation 5.

Deviations: the linear system is solved exactly, not by steps of conjugate gradients. The maps of g
and b have no bias; those of the authors have one. The short convolutions and the norm are those of
the heads `short_convolution[gate=none]`, for the authors' layer has no gate; with other heads there
are none. There values are convolved as well, where the paper convolves queries and keys alone.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, State, Tree, leaf
from variants.mechanisms.chunked_state import Steps, full_products, run
from variants.mechanisms.state_recurrence import (
    StateRecurrence,
    Table,
    Token,
    oracle_product,
    without_padding,
)
from variants.mechanisms.turned import Turned
from variants.mechanisms.unit_vectors import oracle_unit, unit
from variants.softplus import inverse_softplus

CHUNK = 16
"""Systems that are solved at once; bounds memory, changes no result."""
LEAST = 0.25
"""The ridge is never smaller, as in the authors' code."""


@register(
    "mechanism",
    "mesa",
    title="Mesa layer (MesaNet)",
    citation=Citation(
        text="von Oswald et al., 2025", url="https://arxiv.org/abs/2506.05233", where="equation 5"
    ),
    cost=2.8,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Von Oswald et al. report lower perplexity than other recurrences, and better scores in "
        "long contexts, with up to 1 billion parameters. Here its small state has to hold more "
        "pairs than in training."
    ),
)
class Mesa(Turned, StateRecurrence):
    """o_t = q (H_t + R)^-1 G_t, H_t = g H_(t-1) + b k k', G_t = g G_(t-1) + b k v'; |k| = |q| = 1.

    g and b are sigmoids of the token, R a trained diagonal. Time O(L E^3) per head, and twice the
    memory of state of others.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.key_inputs = {"keep": SlotInput(1), "beta": SlotInput(1)}
        begin = inverse_softplus(1 - LEAST)
        self.ridge = nn.Parameter(torch.full((dims.heads, dims.key_width), begin))
        self.starts = {"ridge": begin}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """Two empty matrices."""
        state = super().start(memory, like)
        matrix = leaf(state.carried, "matrix")
        width = self.dims.key_width
        return State(
            carried={
                "matrix": matrix,
                "products": matrix.new_zeros(*matrix.shape[:2], width, width),
            }
        )

    def steps(self, call: Call) -> Steps:
        """What is written to the matrix of values; the query is solved for later."""
        source = call.memory.source
        beta = torch.sigmoid(leaf(source.extras, "beta"))
        log_decay = functional.logsigmoid(leaf(source.extras, "keep"))
        return Steps(unit(call.query), unit(source.key), beta * source.value, log_decay)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Solve one system for each query, then read with what was found."""
        matrix, products = leaf(carried, "matrix"), leaf(carried, "products")
        same = self.widened(call, matrix.dtype)
        steps = without_padding(self.steps(same), call.memory.source)
        beta = torch.sigmoid(leaf(same.memory.source.extras, "beta"))
        found = []
        for at in range(0, steps.query.shape[2], CHUNK):
            some = slice(at, at + CHUNK)
            with full_products(products):
                every = _products_so_far(steps.cut(some), beta[:, :, some], products)
                found.append(self._solved(every, steps.query[:, :, some]))
            products = every[:, :, -1]
        solved = steps._replace(query=torch.cat(found, 2))
        output, matrix = run(solved, matrix)
        # a copy, without the memory of the tokens before
        carried = {"matrix": matrix, "products": products.clone()}
        return MixResult(output.to(call.query.dtype), None, carried, {})

    def _solved(
        self, products: Float[Tensor, "B H n E E"], query: Float[Tensor, "B H n E"]
    ) -> Float[Tensor, "B H n E"]:
        """The queries, multiplied by the inverse of the products and the ridge."""
        ridge = functional.softplus(self.ridge.to(query.dtype)) + LEAST
        system = products + torch.diag_embed(ridge)[:, None]
        return torch.linalg.solve(system, query)

    def oracle_start(self, value: Float[Tensor, "S Ev"]) -> Table:
        """Products with keys stand before those with values."""
        width = self.dims.key_width
        return value.new_zeros(width, width + value.shape[1])

    def oracle_step(self, matrix: Table, token: Token) -> Table:
        """Products with keys and with values beside each other, row by row."""
        key = oracle_unit(token.key)
        keep, beta = (1 / (1 + torch.exp(-token.given[name][0])) for name in ("keep", "beta"))
        row = torch.cat((key, token.value))
        return torch.stack([keep * matrix[e] + beta * key[e] * row for e in range(len(key))])

    def oracle_read(self, matrix: Table, token: Token) -> Float[Tensor, " Ev"]:
        """Regression on a diagonal and the products, by elimination."""
        width = len(token.key)
        ridge = [torch.log(1 + torch.exp(r)) + LEAST for r in self.ridge[token.head]]
        system = [
            [matrix[i, j] + (ridge[i] if i == j else 0) for j in range(width)] for i in range(width)
        ]
        right = list(oracle_unit(token.query))
        for at in range(width):
            for below in range(at + 1, width):
                share = system[below][at] / system[at][at]
                system[below] = [
                    b - share * a for a, b in zip(system[at], system[below], strict=True)
                ]
                right[below] = right[below] - share * right[at]
        for at in reversed(range(width)):
            later = [system[at][j] * right[j] for j in range(at + 1, width)]
            right[at] = (right[at] - sum(later, 0 * right[at])) / system[at][at]
        return oracle_product(torch.stack(right), matrix[:, width:])


def _products_so_far(
    steps: Steps, beta: Float[Tensor, "B H n 1"], before: Float[Tensor, "B H E E"]
) -> Float[Tensor, "B H n E E"]:
    """H after each of a few steps."""
    assert steps.log_decay is not None, "each step keeps a share"
    total = steps.log_decay.cumsum(2)
    size = total.shape[2]
    past = torch.ones(size, size, dtype=torch.bool, device=total.device).tril()
    decay = (total - total.transpose(2, 3)).masked_fill(~past, float("-inf")).exp()
    pairs = (beta * steps.key).unsqueeze(-1) * steps.key.unsqueeze(-2)
    new = (decay @ pairs.flatten(3)).unflatten(3, pairs.shape[3:])
    return new + total.exp().unsqueeze(-1) * before.unsqueeze(2)
