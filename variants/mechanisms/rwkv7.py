"""RWKV-7 (Goose): a delta rule that erases with one vector and forgets with a rate of each unit.

Peng et al., 2025, "RWKV-7 'Goose' with expressive dynamic state evolution",
https://arxiv.org/abs/2503.14456, section 4.1.

Deviations: projections see one token, and are not shifted to the token before; the maps of rates
have no tanh between them; values are not mixed with those of the first layer. Group norm and gate
of the output are those of the heads `short_convolution`, which do not subtract the mean, have one
full map in the place of two of low rank, and also convolve; with other heads there are none. The
bonus of the token itself is added before that norm and not behind it. Parameters start where the
authors' code has them, without its dependence on the layer and the unit.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed
from bench.api.source import leaf
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import (
    Matrix,
    StateRecurrence,
    Token,
    oracle_product,
    oracle_written,
)
from variants.mechanisms.unit_vectors import oracle_unit, unit

STRONGEST = math.exp(-0.5)
"""Negative logarithm of the strongest decay."""
SLOWEST, FASTEST = -5.5, 0.5
"""Where biases of the decay start, spread evenly over the units of a head."""


@dataclass(frozen=True, kw_only=True)
class Rwkv7Config(Config):
    """Options of RWKV-7."""

    rank: Annotated[int, IntRange(2, 64, log=True)] = 32
    """Width between the two maps from a state to its rates."""

    def __post_init__(self) -> None:
        """Check the rank."""
        if self.rank < 1:
            raise InvalidConfig(f"rwkv7: rank must be at least 1, got {self.rank}.")


@register(
    "mechanism",
    "rwkv7",
    title="RWKV-7 (Goose)",
    config=Rwkv7Config,
    citation=Citation(
        text="Peng et al., 2025", url="https://arxiv.org/abs/2503.14456", where="section 4.1"
    ),
    cost=5.4,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Peng et al. report language models of 0.2 to 2.9 billion parameters that are as good as "
        "transformers, with several heads of width 64. Here a small state stands against one that "
        "keeps every pair."
    ),
)
class Rwkv7(StateRecurrence):
    """S_t = (diag(w) - (a * r) r') S_(t-1) + m v', o_t = q S_t + (q * p).m v.

    r is the key times `removal`, of length one; a a sigmoid of each unit; m the key times
    1 + (a - 1) * `mixing`; w = exp(-exp(-1/2) sigmoid(of the token)); p is `bonus`.
    Each token takes two steps of the matrix. Time O(L E (Ev + chunk)) per head.
    """

    steps_per_token = 2

    def __init__(self, config: Rwkv7Config, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        shape = dims.heads, dims.key_width
        rates = SlotInput(dims.key_width, config.rank)
        self.key_inputs = {"decay": rates, "share": rates}
        spread = torch.linspace(SLOWEST, FASTEST, dims.key_width)
        self.decay_bias = nn.Parameter(spread.repeat(dims.heads, 1))
        self.share_bias = nn.Parameter(torch.full(shape, -0.19))
        self.removal = nn.Parameter(torch.full(shape, 0.71))
        self.mixing = nn.Parameter(torch.full(shape, 1.02))
        self.bonus = nn.Parameter(torch.full(shape, -0.04))
        self.starts = {
            "decay_bias": spread,
            "share_bias": -0.19,
            "removal": 0.71,
            "mixing": 1.02,
            "bonus": -0.04,
        }

    def steps(self, call: Call) -> Steps:
        """First the matrix decays and something is erased, then the value is written."""
        source = call.memory.source
        share, mixed = self._mixed(call)
        removed = unit(source.key * _row(self.removal, share))
        said = leaf(source.extras, "decay") + _row(self.decay_bias, share)
        log_decay = -STRONGEST * torch.sigmoid(said)
        zero = torch.zeros_like(source.value)
        return Steps(
            query=torch.repeat_interleave(call.query, 2, 2),
            key=_in_turns(share * removed, mixed),
            value=_in_turns(zero, source.value),
            log_decay=_in_turns(log_decay, torch.zeros_like(log_decay)),
            erase=_in_turns(removed, torch.zeros_like(removed)),
        )

    def finish(self, call: Call, output: Mixed) -> Mixed:
        """The token itself is read once more, by its bonus."""
        _, mixed = self._mixed(call)
        weight = (call.query * _row(self.bonus, mixed) * mixed).sum(-1, keepdim=True)
        return output + weight * call.memory.source.value

    def _mixed(self, call: Call) -> tuple[Float[Tensor, "B H S E"], Float[Tensor, "B H S E"]]:
        """The share that is erased, and the key under which is written."""
        source = call.memory.source
        share = torch.sigmoid(leaf(source.extras, "share") + _row(self.share_bias, source.key))
        return share, source.key * (1 + (share - 1) * _row(self.mixing, share))

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Row by row: decay, and subtract what the removal key reads."""
        head, rows = token.head, []
        removed = oracle_unit(token.key * self.removal[head])
        read = oracle_product(removed, matrix)
        for row, said in enumerate(token.given["decay"]):
            rate = STRONGEST / (1 + torch.exp(-said - self.decay_bias[head, row]))
            share = self._oracle_share(token, row)
            rows.append(torch.exp(-rate) * matrix[row] - share * removed[row] * read)
        return oracle_written(torch.stack(rows), self._oracle_mixed(token), token.value)

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """What the query reads, and the bonus."""
        mixed, weight = self._oracle_mixed(token), torch.zeros_like(token.query[0])
        for row in range(len(mixed)):
            weight = weight + token.query[row] * self.bonus[token.head, row] * mixed[row]
        return oracle_product(token.query, matrix) + weight * token.value

    def _oracle_share(self, token: Token, row: int) -> Tensor:
        said = token.given["share"][row] + self.share_bias[token.head, row]
        return 1 / (1 + torch.exp(-said))

    def _oracle_mixed(self, token: Token) -> Float[Tensor, " E"]:
        found = []
        for row, number in enumerate(token.key):
            less = (self._oracle_share(token, row) - 1) * self.mixing[token.head, row]
            found.append(number * (1 + less))
        return torch.stack(found)


def _row(parameter: Float[Tensor, "H E"], like: Tensor) -> Float[Tensor, "H 1 E"]:
    """A parameter of each head beside all tokens."""
    return parameter.to(like.dtype)[:, None]


def _in_turns(
    one: Float[Tensor, "B H S w"], two: Float[Tensor, "B H S w"]
) -> Float[Tensor, "B H M w"]:
    """First and second step of each token, in the order of time."""
    return torch.stack((one, two), 3).flatten(2, 3)
