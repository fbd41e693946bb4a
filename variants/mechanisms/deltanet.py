"""DeltaNet: before a value is written under a key, what stood there is erased.

Schlag et al., 2021, "Linear transformers are secretly fast weight programmers",
https://arxiv.org/abs/2102.11174, section 4.2; keys of length one and chunks are those of Yang et
al., 2024, "Parallelizing linear transformers with the delta rule over sequence length",
https://arxiv.org/abs/2406.06484, sections 2.2 and 3.

Deviations: the short convolutions and the norm are those of the heads
`short_convolution[gate=none]`, for the authors' layer has no gate; with other heads there are none.
Queries are not divided by sqrt(E), as they are in the authors' code; the norm of the output, or the
map behind it, makes up for that.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

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
from variants.mechanisms.turned import Turned
from variants.mechanisms.unit_vectors import oracle_unit, unit


@dataclass(frozen=True, kw_only=True)
class DeltaNetConfig(Config):
    """Options of DeltaNet."""

    reach: Annotated[float, Choices((1.0, 2.0))] = 1.0
    """Largest share that is erased; with 2 a key may be turned into its negative, after Grazzi et
    al., 2025, https://arxiv.org/abs/2411.12537."""

    def __post_init__(self) -> None:
        """Check the reach: a larger one lets the matrix grow without end."""
        if not 0 < self.reach <= 2:
            raise InvalidConfig(f"deltanet: reach is above 0 and at most 2, got {self.reach}.")


@register(
    "mechanism",
    "deltanet",
    title="DeltaNet",
    config=DeltaNetConfig,
    citation=Citation(
        text="Yang et al., 2024", url="https://arxiv.org/abs/2406.06484", where="sections 2.2 and 3"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Yang et al. report better perplexity and recall than Mamba and gated linear attention, "
        "with 1.3 billion parameters and 100 billion tokens of training. They report gains over a "
        "transformer where some layers have softmax attention. Here no layer has, and softmax "
        "attention keeps every pair of this task."
    ),
)
class DeltaNet(Turned, StateRecurrence):
    """S_t = (I - b k k') S_(t-1) + b k v', o_t = q S_t; |k| = |q| = 1, b a sigmoid of the token.

    Time O(L E (Ev + chunk)) per head.
    """

    turned_alike = "a delta rule compares keys with keys"

    def __init__(self, config: DeltaNetConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.reach = config.reach
        self.key_inputs = {"beta": SlotInput(1)}

    def steps(self, call: Call) -> Steps:
        """What stands under the key is replaced, by a share."""
        source = call.memory.source
        key = unit(source.key)
        beta = self.reach * torch.sigmoid(leaf(source.extras, "beta"))
        return Steps(unit(call.query), key, beta * source.value, erase=beta * key)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Read, correct, write."""
        key = oracle_unit(token.key)
        beta = self.reach / (1 + torch.exp(-token.given["beta"][0]))
        old = oracle_product(key, matrix)
        return oracle_written(matrix, key, beta * (token.value - old))

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The query has length one, too."""
        return oracle_product(oracle_unit(token.query), matrix)
