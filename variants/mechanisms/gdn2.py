"""Gated DeltaNet-2: a delta rule with one gate for what is erased and another for what is written.

Hatamizadeh, Choi & Kautz, 2026, "Gated DeltaNet-2: decoupling erase and write in linear attention",
https://arxiv.org/abs/2605.22791, equations 9 and 10.

Deviations: the short convolutions, the norm and the gate of the output are those of the heads
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
    "gdn2",
    title="Gated DeltaNet-2",
    citation=Citation(
        text="Hatamizadeh et al., 2026",
        url="https://arxiv.org/abs/2605.22791",
        where="equations 9 and 10",
    ),
    cost=3.3,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Hatamizadeh et al. report better language models, and better retrieval in long texts, "
        "than Gated DeltaNet and KDA, with 1.3 billion parameters and 100 billion tokens of "
        "training. Recall with more pairs than in training asks for more than the small state of "
        "one layer has room for here."
    ),
)
class Gdn2(Turned, StateRecurrence):
    """S_t = (I - k (b * k)') diag(a_t) S_(t-1) + k (w * v)', o_t = q S_t; |k| = |q| = 1.

    b has a sigmoid for each unit of the key, w for each unit of the value; a_t is that of `kda`.
    Time O(L E (Ev + chunk)) per head.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        width = dims.key_width
        self.key_inputs = {
            "erase": SlotInput(width),
            "write": SlotInput(dims.value_width),
            "step": SlotInput(width, dims.value_width),
        }
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, width))

    def steps(self, call: Call) -> Steps:
        """The rows of the matrix decay, then some of what stands under the key is replaced."""
        source = call.memory.source
        key = unit(source.key)
        erased, written = (torch.sigmoid(leaf(source.extras, name)) for name in ("erase", "write"))
        log_decay = log_decays(steps_of(leaf(source.extras, "step"), self.bias), self.rate)
        erase = erased * log_decay.exp() * key
        return Steps(unit(call.query), key, written * source.value, log_decay, erase)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay row by row, read with the erased part of the key, write the written one."""
        key, given, rows, erased = oracle_unit(token.key), token.given, [], []
        for row, said in enumerate(given["step"]):
            step = oracle_softplus(said, self.bias[token.head, row])
            rows.append(oracle_decay(step, self.rate[token.head]) * matrix[row])
            erased.append(key[row] / (1 + torch.exp(-given["erase"][row])))
        decayed = torch.stack(rows)
        old = oracle_product(torch.stack(erased), decayed)
        new = [v / (1 + torch.exp(-w)) for v, w in zip(token.value, given["write"], strict=True)]
        return oracle_written(decayed, key, torch.stack(new) - old)

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The query has length one, too."""
        return oracle_product(oracle_unit(token.query), matrix)
