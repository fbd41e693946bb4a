"""Retention: linear attention without a sum of weights, that forgets at a fixed rate of each head.

Sun et al., 2023, "Retentive network: a successor to transformer for large language models",
https://arxiv.org/abs/2307.08621, section 2.1, equations 5 and 6.

Deviations: products are divided by sqrt(E), as in the authors' code. The norm of each head and the
gate of the output are those of the heads `short_convolution`, which also convolve; with other heads
there are none. Without that norm, the scalings of section 2.2, which it cancels, are left out, too.
Padding takes places, but does not decay. Angles are those of `rope`, 10000^(-2m/E); the authors'
code spaces their exponents evenly from 0 to -1, ends included.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.chunked_state import Steps
from variants.mechanisms.state_recurrence import Matrix, StateRecurrence, Token
from variants.positions.rotation import BASE, frequencies, rotate


@dataclass(frozen=True, kw_only=True)
class RetNetConfig(Config):
    """Options of retention."""

    rotation: Annotated[bool, Choices((True, False))] = True
    """Whether queries and keys are turned by their places."""
    forgets: Annotated[bool, Choices((True, False))] = True
    """Whether the matrix decays; without, it is linear attention without a sum of weights, on
    queries and keys that are turned."""

    def __post_init__(self) -> None:
        """Check that something tells places apart, as the mechanism says that it does."""
        if not (self.rotation or self.forgets):
            raise InvalidConfig(
                "retnet: with rotation=false and forgets=false nothing tells places apart; leave "
                "one of them true, or use linear_attention."
            )


@register(
    "mechanism",
    "retnet",
    title="Retention (RetNet)",
    config=RetNetConfig,
    citation=Citation(
        text="Sun et al., 2023",
        url="https://arxiv.org/abs/2307.08621",
        where="section 2.1",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Sun et al. report perplexity near that of a transformer, and below it from 2 billion "
        "parameters on, and decoding at a constant cost, not better recall than softmax attention. "
        "Each head forgets at a fixed rate, whatever it reads, so it cannot keep just the pairs of "
        "this task. Costs are in the tables of speed."
    ),
)
class RetNet(StateRecurrence):
    """S_t = g S_(t-1) + k_t v_t, o_t = q_t S_t / sqrt(E), g = 1 - 2^(-5-h) in head h = 0, 1, ...

    Time O(L E (Ev + chunk)) per head.
    """

    gives = frozenset({"places"})

    def __init__(self, config: RetNetConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.rotation = config.rotation
        self.counts_places = config.rotation
        self.forgets = config.forgets

    def steps(self, call: Call) -> Steps:
        """Turned queries and keys, and one rate for each head."""
        source = call.memory.source
        query, key = call.query * self.dims.key_width**-0.5, source.key
        if self.rotation:
            query, key = (turned(x, call.position) for x in (query, key))
        if not self.forgets:
            return Steps(query, key, source.value)
        rate = torch.arange(self.dims.heads, dtype=query.dtype, device=query.device)
        log_rate = torch.log1p(-(2.0 ** (-5 - rate)))
        log_decay = log_rate[:, None, None].expand(*query.shape[:3], 1)
        return Steps(query, key, source.value, log_decay)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay, then write."""
        rate = 1 - 2.0 ** (-5 - token.head) if self.forgets else 1.0
        key = self._oracle_turned(token.key, token.place)
        return torch.stack([rate * matrix[e] + key[e] * token.value for e in range(len(key))])

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The turned query, unit by unit."""
        query = self._oracle_turned(token.query, token.place)
        found = sum((query[e] * matrix[e] for e in range(len(query))), 0 * token.value)
        return found / len(query) ** 0.5

    def _oracle_turned(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """Pair by pair."""
        found = list(x)
        for pair in range(len(x) // 2 if self.rotation else 0):
            angle = x.new_tensor(place * BASE ** (-2 * pair / (len(x) // 2 * 2)))
            one, two = x[2 * pair], x[2 * pair + 1]
            found[2 * pair] = one * torch.cos(angle) - two * torch.sin(angle)
            found[2 * pair + 1] = one * torch.sin(angle) + two * torch.cos(angle)
        return torch.stack(found)


def turned(x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]) -> Float[Tensor, "B H n E"]:
    """Pairs of units turned by angles that grow with the place; an odd last unit stays."""
    even = x.shape[-1] // 2 * 2
    front = rotate(x[..., :even], place, frequencies(even, BASE, x.device), "interleaved")
    return torch.cat((front, x[..., even:]), -1)
