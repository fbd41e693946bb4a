"""Say in one sentence what a token writes and what is forgotten; here one decay for each token.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import DefaultTask, register
from bench.api.source import leaf
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import (
    Matrix,
    StateRecurrence,
    Token,
    oracle_product,
    oracle_written,
)

START = 2.0
"""Bias of a decay at the start of training: sigmoid(2), so that about an eighth is forgotten."""


@register(
    "mechanism",
    "new_name",
    title="The name that tables print",
    default_task=DefaultTask(task="recall"),
)
class NewName(StateRecurrence):
    """S_t = a_t S_(t-1) + k_t v_t', o_t = q_t S_t / sqrt(E), a_t = sigmoid(x_t + b).

    x_t is projected from the state of the token, one number a head. Time O(L E (Ev + chunk)) per
    head, and a state of E Ev numbers that does not grow.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.key_inputs = {"decay": SlotInput(1)}
        self.bias = nn.Parameter(torch.full((dims.heads,), START))
        self.starts = {"bias": START}

    def steps(self, call: Call) -> Steps:
        """What every token does to the matrix; erase what is under a key with `Steps.erase`."""
        source = call.memory.source
        said = leaf(source.extras, "decay") + self.bias.to(source.key.dtype)[:, None, None]
        query = call.query * self.dims.key_width**-0.5
        return Steps(query, source.key, source.value, functional.logsigmoid(said))

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """The same for one token; written from the paper, not from `steps`."""
        kept = 1 / (1 + torch.exp(-token.given["decay"][0] - self.bias[token.head]))
        return oracle_written(kept * matrix, token.key, token.value)

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The scaled query, unit by unit."""
        return oracle_product(token.query, matrix) / len(token.query) ** 0.5
