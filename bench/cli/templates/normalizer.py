"""Say in one sentence how energies become weights; here a softmax of sharpened energies.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery, OracleState
from bench.api.registry import DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    sharpness: Annotated[float, FloatRange(0.25, 8.0, log=True)] = 2.0
    """What energies are multiplied by before the softmax."""

    def __post_init__(self) -> None:
        """Check the sharpness."""
        if self.sharpness <= 0:
            raise InvalidConfig(f"new_name: sharpness must be positive, got {self.sharpness}.")


@register(
    "normalizer",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameNormalizer(Normalizer):
    """exp(g e) / sum exp(g e) over the allowed keys."""

    gives = frozenset({"simplex"})
    # A key that is not allowed changes nothing, and no number of keys or place in memory is asked
    # for, so a window may forget some. Leave this out if yours does.
    visible_alone = True

    def __init__(self, config: NewNameConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.sharpness = config.sharpness

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Weights that are exactly zero where a key is not allowed."""
        return Normalized(masked_softmax(energy * self.sharpness, allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: OracleState,
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """The same for one query; written from the paper, not from `normalize`."""
        return oracle_softmax(energy * self.sharpness, allowed)
