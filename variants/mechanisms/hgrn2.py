"""HGRN2: a matrix whose rows forget by gates, and that is written where it forgot.

Qin et al., 2024, "HGRN2: gated linear RNNs with state expansion",
https://arxiv.org/abs/2404.07904, section 3.

Deviations: the lower bound of the gates is an option, where the paper trains one a layer that grows
with depth. Queries pass no Swish, as they do in the authors' layer. The norm of the output is that
of the heads `short_convolution[activation=none,gate=none]`, which also convolve; with other heads
there is none. It is taken over each head, in the authors' layer over all heads together. Their
convolutions have no activation, and their output has no gate. With SiLU, which these heads have
by default and which is never below -0.28, no gate of the matrix would be below 0.43.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import Matrix, StateRecurrence, Token, oracle_written


@dataclass(frozen=True, kw_only=True)
class Hgrn2Config(Config):
    """Options of HGRN2."""

    floor: Annotated[float, FloatRange(0.0, 0.95)] = 0.0
    """Lower bound of the gates, gamma; upper layers remember longer with a higher one."""

    def __post_init__(self) -> None:
        """Check the bound."""
        if not 0 <= self.floor < 1:
            raise InvalidConfig(f"hgrn2: floor is at least 0 and below 1, got {self.floor}.")


@register(
    "mechanism",
    "hgrn2",
    title="Hierarchically gated recurrence (HGRN2)",
    config=Hgrn2Config,
    citation=Citation(
        text="Qin et al., 2024", url="https://arxiv.org/abs/2404.07904", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Qin et al. report gains over HGRN, whose state is smaller, in language models of up to 3 "
        "billion parameters, in classification of images and in Long Range Arena. Softmax "
        "attention keeps every pair of this task, and a state of fixed size has to forget some."
    ),
)
class Hgrn2(StateRecurrence):
    """S_t = diag(f) S_(t-1) + (1 - f) v', o_t = q S_t, f = g + (1 - g) sigmoid(k) with floor g.

    What other mechanisms take as a key is the input of the gate. Time O(L E (Ev + chunk)) per head.
    """

    def __init__(self, config: Hgrn2Config, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.floor = config.floor

    def steps(self, call: Call) -> Steps:
        """A row takes up as much as it lets go."""
        source = call.memory.source
        share = (1 - self.floor) * torch.sigmoid(-source.key)
        # the logarithm of 1 - share, which is the gate, without a difference near zero
        log_decay = torch.log1p(-share) if self.floor else functional.logsigmoid(source.key)
        return Steps(call.query, share, source.value, log_decay)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Row by row."""
        gates = [self.floor + (1 - self.floor) / (1 + torch.exp(-k)) for k in token.key]
        decayed = torch.stack([gate * row for gate, row in zip(gates, matrix, strict=True)])
        return oracle_written(decayed, torch.stack([1 - gate for gate in gates]), token.value)
