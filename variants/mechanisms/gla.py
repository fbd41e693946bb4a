"""Gated linear attention: every unit of the key forgets at a rate that each token chooses.

Yang et al., 2024, "Gated linear attention transformers with hardware-efficient training",
https://arxiv.org/abs/2312.06635, section 4.

Deviations: products are divided by sqrt(E), as in the authors' code. The norm and the gate of the
output are those of the heads `short_convolution`, which also convolve; with other heads there are
none.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange, IntRange
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


@dataclass(frozen=True, kw_only=True)
class GlaConfig(Config):
    """Options of gated linear attention."""

    temperature: Annotated[float, FloatRange(1.0, 64.0, log=True)] = 16.0
    """tau: decays are sigmoids to the power 1 / tau, so that they begin near one."""
    rank: Annotated[int, IntRange(2, 64, log=True)] = 16
    """Width between the two maps from a state to its decays."""

    def __post_init__(self) -> None:
        """Check both."""
        if self.temperature <= 0 or self.rank < 1:
            raise InvalidConfig(
                "gla: temperature must be positive and rank at least 1, "
                f"got {self.temperature} and {self.rank}."
            )


@register(
    "mechanism",
    "gla",
    title="Gated linear attention (GLA)",
    config=GlaConfig,
    citation=Citation(
        text="Yang et al., 2024",
        url="https://arxiv.org/abs/2312.06635",
        where="section 4",
    ),
    cost=3.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Yang et al. report language models of 340 million and 1.3 billion parameters that are "
        "competitive with a transformer, and a layer that is faster than fused softmax attention "
        "from 1,000 tokens on. Softmax attention keeps every pair of this task, and a state of "
        "fixed size has to forget some."
    ),
)
class Gla(Turned, StateRecurrence):
    """S_t = diag(a_t) S_(t-1) + k v', o_t = q S_t / sqrt(E), a_t = sigmoid(of the token)^(1/tau).

    Time O(L E (Ev + chunk)) per head.
    """

    def __init__(self, config: GlaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.temperature = config.temperature
        self.key_inputs = {"decay": SlotInput(dims.key_width, config.rank)}
        self.bias = nn.Parameter(torch.zeros(dims.heads, dims.key_width))
        self.starts = {"bias": 0.0}

    def steps(self, call: Call) -> Steps:
        """The rows of the matrix decay, each by itself."""
        source = call.memory.source
        said = leaf(source.extras, "decay") + self.bias.to(source.key.dtype)[:, None]
        log_decay = functional.logsigmoid(said) / self.temperature
        query = call.query * self.dims.key_width**-0.5
        return Steps(query, source.key, source.value, log_decay)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay row by row, write."""
        rows = []
        for row, said in enumerate(token.given["decay"]):
            kept = 1 / (1 + torch.exp(-said - self.bias[token.head, row]))
            rows.append(kept ** (1 / self.temperature) * matrix[row])
        return oracle_written(torch.stack(rows), token.key, token.value)

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The scaled query."""
        return oracle_product(token.query, matrix) / len(token.query) ** 0.5
