"""Gated DeltaNet: a matrix that decays as a whole, and from which each key erases what it replaces.

Yang, Kautz & Hatamizadeh, 2025, "Gated delta networks: improving Mamba2 with delta rule",
https://arxiv.org/abs/2412.06464, sections 3.1 and 3.3, equation 10.

Deviations: the short convolutions, the norm and the gate are those of the heads
`short_convolution`; with other heads there are none. Rates of decay are drawn from 1 to 16, as in
Mamba-2; the authors' code draws them from 0 to 16. Queries are not divided by sqrt(E), as they are
in the authors' code; the norm of the output, or the map behind it, makes up for that.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
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


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNetConfig(Config):
    """Options of Gated DeltaNet."""

    reach: Annotated[float, Choices((1.0, 2.0))] = 1.0
    """Largest share that is erased; with 2 a key may be turned into its negative, after Grazzi et
    al., 2025, https://arxiv.org/abs/2411.12537."""

    def __post_init__(self) -> None:
        """Check the reach: a larger one lets the matrix grow without end."""
        if not 0 < self.reach <= 2:
            raise InvalidConfig(
                f"gated_deltanet: reach is above 0 and at most 2, got {self.reach}."
            )


@register(
    "mechanism",
    "gated_deltanet",
    title="Gated DeltaNet",
    config=GatedDeltaNetConfig,
    citation=Citation(
        text="Yang et al., 2025", url="https://arxiv.org/abs/2412.06464", where="equation 10"
    ),
    cost=1.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Yang et al. report gains over Mamba-2 and DeltaNet in language modeling, recall and long "
        "contexts, with 0.4 and 1.3 billion parameters. These keep a state of fixed size, too, "
        "while softmax attention keeps every pair of this task. The comparison that the paper "
        "makes is with `mamba2_ssd` and `deltanet`."
    ),
)
class GatedDeltaNet(Turned, StateRecurrence):
    """S_t = a (I - b k k') S_(t-1) + b k v', o_t = q S_t; |k| = |q| = 1.

    a = exp(-rate * step) and b, a sigmoid, are of each token and head. Time O(L E (Ev + chunk)).
    """

    turned_alike = "a delta rule compares keys with keys"

    def __init__(self, config: GatedDeltaNetConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.reach = config.reach
        self.key_inputs = {"beta": SlotInput(1), "step": SlotInput(1)}
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, 1))

    def steps(self, call: Call) -> Steps:
        """The matrix decays, then what stands under the key is replaced, by a share."""
        source = call.memory.source
        key = unit(source.key)
        beta = self.reach * torch.sigmoid(leaf(source.extras, "beta"))
        log_decay = log_decays(steps_of(leaf(source.extras, "step"), self.bias), self.rate)
        erase = beta * log_decay.exp() * key
        return Steps(unit(call.query), key, beta * source.value, log_decay, erase)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay, read, correct, write."""
        key = oracle_unit(token.key)
        beta = self.reach / (1 + torch.exp(-token.given["beta"][0]))
        step = oracle_softplus(token.given["step"][0], self.bias[token.head, 0])
        decayed = oracle_decay(step, self.rate[token.head]) * matrix
        return oracle_written(decayed, key, beta * (token.value - oracle_product(key, decayed)))

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The query has length one, too."""
        return oracle_product(oracle_unit(token.query), matrix)
