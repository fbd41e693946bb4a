"""Gated DeltaProduct: several delta rules, one after the other, for each token.

Siems et al., 2025, "DeltaProduct: improving state-tracking in linear RNNs via Householder
products", https://arxiv.org/abs/2502.10297, section 3; the decay is that of Gated DeltaNet.

Deviations: the first key and value are those of the slot, the others are projected beside them,
without convolutions. The norm and the gate are those of the heads `short_convolution`; with other
heads there are none. Rates of decay are drawn from 1 to 16, as in Mamba-2; the authors' code draws
them from 0 to 16. Queries are not divided by sqrt(E), as they are in the authors' code; the norm of
the output, or the map behind it, makes up for that.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from bench.api.shapes import Key
from bench.api.source import Memory, Source, leaf
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
class GatedDeltaProductConfig(Config):
    """Options of Gated DeltaProduct."""

    products: Annotated[int, Choices((1, 2, 3))] = 2
    """n_h, delta rules for each token; with one it is Gated DeltaNet."""
    reach: Annotated[float, Choices((1.0, 2.0))] = 2.0
    """Largest share that is erased; with 2 a key may be turned into its negative."""

    def __post_init__(self) -> None:
        """Check the products and the reach."""
        if self.products < 1 or not 0 < self.reach <= 2:
            raise InvalidConfig(
                "gated_deltaproduct: products must be at least 1 and reach above 0 and at most 2, "
                f"got {self.products} and {self.reach}."
            )


@register(
    "mechanism",
    "gated_deltaproduct",
    title="Gated DeltaProduct",
    config=GatedDeltaProductConfig,
    citation=Citation(
        text="Siems et al., 2025", url="https://arxiv.org/abs/2502.10297", where="section 3"
    ),
    cost=3.8,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Siems et al. report that it follows states, trained on 128 permutations in a row and "
        "tested on 512, and better language models than DeltaNet with texts of 4,096 tokens. "
        "Recall asks for more pairs than its small state has room for here. Composition of swaps "
        "and parity, in the preset modern, ask for a state, and it solves both."
    ),
)
class GatedDeltaProduct(Turned, StateRecurrence):
    """S <- a S, then n times S <- (I - b_j k_j k_j') S + b_j k_j v_j'; o = q S.

    A product of n reflections can permute n + 1 keys, which one cannot. Time and memory are n times
    those of Gated DeltaNet.
    """

    turned_alike = "a delta rule compares keys with keys"

    def __init__(self, config: GatedDeltaProductConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        count = self.steps_per_token = config.products
        self.reach = config.reach
        self.key_inputs = {"beta": SlotInput(count), "step": SlotInput(1)}
        if count > 1:
            self.key_inputs["more_keys"] = SlotInput((count - 1) * dims.key_width)
            self.key_inputs["more_values"] = SlotInput((count - 1) * dims.value_width)
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, 1))

    def receive(self, source: Source, offset: int = 0) -> Memory:
        """All keys of a token are turned, and not the one of the slot alone."""
        return super().receive(
            self._with_turned(source, lambda key: self.turn(key, offset, keys=True)), offset
        )

    def turn_by_loops(
        self, query: Float[Tensor, "Hq L Eq"], source: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Source]:
        """Key by key."""
        plain = super().turn_by_loops

        def turned(key: Key) -> Key:
            return plain(query, Source(key, key))[1].key

        return plain(query, self._with_turned(source, turned))

    def _with_turned(self, source: Source, turn: Callable[[Key], Key]) -> Source:
        """The source with its further keys turned."""
        if self.steps_per_token == 1 or not any(one.turns for one in self.positions):
            return source
        more = leaf(source.extras, "more_keys").split(self.dims.key_width, -1)
        keys = torch.cat([turn(key) for key in more], -1)
        return replace(source, extras={**source.extras, "more_keys": keys})

    def steps(self, call: Call) -> Steps:
        """The matrix decays before the first of a token's rules."""
        source, count = call.memory.source, self.steps_per_token
        given = source.extras
        key, value = source.key.unsqueeze(3), source.value.unsqueeze(3)
        if count > 1:
            more = (
                leaf(given, name).unflatten(-1, (count - 1, -1))
                for name in ("more_keys", "more_values")
            )
            key, value = (torch.cat(pair, 3) for pair in zip((key, value), more, strict=True))
        key, value = unit(key.flatten(2, 3)), value.flatten(2, 3)
        beta = self.reach * torch.sigmoid(leaf(given, "beta")).flatten(2).unsqueeze(3)
        first = log_decays(steps_of(leaf(given, "step"), self.bias), self.rate)
        later = first.new_zeros(*first.shape[:3], count - 1)
        log_decay = torch.cat((first, later), 3).flatten(2).unsqueeze(3)
        query = torch.repeat_interleave(unit(call.query), count, 2)
        return Steps(query, key, beta * value, log_decay, beta * log_decay.exp() * key)

    def oracle_step(self, matrix: Matrix, token: Token) -> Matrix:
        """Decay, then one rule after the other."""
        given, count = token.given, self.steps_per_token
        keys, values = [token.key], [token.value]
        if count > 1:
            keys += given["more_keys"].split(len(token.key))
            values += given["more_values"].split(len(token.value))
        step = oracle_softplus(given["step"][0], self.bias[token.head, 0])
        matrix = oracle_decay(step, self.rate[token.head]) * matrix
        for said, key, value in zip(given["beta"], keys, values, strict=True):
            beta, under = self.reach / (1 + torch.exp(-said)), oracle_unit(key)
            old = oracle_product(under, matrix)
            matrix = oracle_written(matrix, under, beta * (value - old))
        return matrix

    def oracle_read(self, matrix: Matrix, token: Token) -> Float[Tensor, " Ev"]:
        """The query has length one, too."""
        return oracle_product(oracle_unit(token.query), matrix)
