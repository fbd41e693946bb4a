"""State-space duality (Mamba-2): a matrix that decays as a whole, by a step of each token.

Dao & Gu, 2024, "Transformers are SSMs: generalized models and efficient algorithms through
structured state space duality", https://arxiv.org/abs/2405.21060, sections 5, 6 and 7.1.

Deviations: queries (C) and keys (B) are of each head, where the paper shares them between heads.
The short convolution, the norm and the gate are those of the heads `short_convolution`, whose norm
stands before the gate and not behind it; with other heads there are none.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import (
    Matrix,
    StateRecurrence,
    Token,
    oracle_product,
    oracle_written,
)
from variants.mechanisms.step_decay import (
    decaying_steps,
    drawn_biases,
    drawn_rates,
    oracle_decay,
    oracle_softplus,
)
from variants.mechanisms.turned import Turned


@register(
    "mechanism",
    "mamba2_ssd",
    title="State-space duality (Mamba-2)",
    citation=Citation(
        text="Dao & Gu, 2024", url="https://arxiv.org/abs/2405.21060", where="sections 5 to 7"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Dao & Gu report better recall than Mamba, the more so the larger the state is, and "
        "language models that are competitive with a transformer at up to 2.7 billion "
        "parameters. Softmax attention keeps every pair of this task, and a state of fixed size "
        "has to forget some."
    ),
)
class Mamba2Ssd(Turned, StateRecurrence):
    """S_t = exp(-rate D) S_(t-1) + D k v', o_t = q S_t + skip v, with the step D of each token.

    In the paper's letters q, k and v are C, B and x. Time O(L E (Ev + chunk)) per head.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.key_inputs = {"step": SlotInput(1)}
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, 1))
        self.skip = nn.Parameter(torch.ones(dims.heads))
        self.starts = {"skip": 1.0}

    def steps(self, call: Call) -> Steps:
        """A token writes as much as its step is long."""
        return decaying_steps(call, self.bias, self.rate)

    def finish(self, call: Call, output: Mixed) -> Mixed:
        """The value of the token itself is added."""
        return output + self.skip.to(output.dtype)[:, None, None] * call.memory.source.value

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay, write."""
        step = oracle_softplus(token.given["step"][0], self.bias[token.head, 0])
        decayed = oracle_decay(step, self.rate[token.head]) * matrix
        return oracle_written(decayed, token.key, step * token.value)

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """What was read, and the value of the token."""
        return oracle_product(token.query, matrix) + self.skip[token.head] * token.value
