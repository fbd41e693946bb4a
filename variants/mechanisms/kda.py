"""Kimi delta attention: a delta rule in which every unit of the key forgets at a rate of its own.

Kimi Team, 2025, "Kimi Linear: an expressive, efficient attention architecture",
https://arxiv.org/abs/2510.26692, section 3, equation 1.

Deviations: the short convolutions, the norm and the sigmoid gate are those of the heads
`short_convolution[gate=sigmoid]`, whose gate has one full map without a bias, where the authors'
has two of low rank and a bias; with other heads there are none. Queries are not divided
by sqrt(E), as they are in the authors' code; the norm of the output, or the map behind it, makes up
for that.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import leaf
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import (
    Matrix,
    StateRecurrence,
    Token,
    oracle_product,
    oracle_written,
)
from variants.mechanisms.step_decay import (
    drawn_biases,
    drawn_rates,
    log_decays,
    oracle_decay,
    oracle_softplus,
    steps_of,
)
from variants.mechanisms.turned import Turned
from variants.mechanisms.unit_vectors import oracle_unit, unit


@register(
    "mechanism",
    "kda",
    title="Kimi delta attention (KDA)",
    citation=Citation(
        text="Kimi Team, 2025", url="https://arxiv.org/abs/2510.26692", where="section 3"
    ),
    cost=4.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "The Kimi Team report gains over full attention for a model of 48 billion parameters, 3 "
        "billion of them at work on a token, in which one layer of four has full attention. Here "
        "no layer has, and softmax attention keeps every pair of this task."
    ),
)
class Kda(Turned, StateRecurrence):
    """S_t = (I - b k k') diag(a_t) S_(t-1) + b k v', o_t = q S_t; |k| = |q| = 1.

    a_t = exp(-rate * step) with a step for each unit, made by two maps with E numbers between, and
    b a sigmoid. Time O(L E (Ev + chunk)) per head.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        width = dims.key_width
        self.key_inputs = {"beta": SlotInput(1), "step": SlotInput(width, width)}
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, width))

    def steps(self, call: Call) -> Steps:
        """The rows of the matrix decay, then what stands under the key is replaced, by a share."""
        source = call.memory.source
        key = unit(source.key)
        beta = torch.sigmoid(leaf(source.extras, "beta"))
        log_decay = log_decays(steps_of(leaf(source.extras, "step"), self.bias), self.rate)
        erase = beta * log_decay.exp() * key
        return Steps(unit(call.query), key, beta * source.value, log_decay, erase)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay row by row, read, correct, write."""
        key, rows = oracle_unit(token.key), []
        beta = 1 / (1 + torch.exp(-token.given["beta"][0]))
        for row, said in enumerate(token.given["step"]):
            step = oracle_softplus(said, self.bias[token.head, row])
            rows.append(oracle_decay(step, self.rate[token.head]) * matrix[row])
        decayed = torch.stack(rows)
        return oracle_written(decayed, key, beta * (token.value - oracle_product(key, decayed)))

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The query has length one, too."""
        return oracle_product(oracle_unit(token.query), matrix)
