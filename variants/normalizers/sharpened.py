"""Sharpened softmax: energies are multiplied by an inverse temperature, so that few keys remain.

Chorowski et al., 2015, "Attention-based models for speech recognition",
https://arxiv.org/abs/1506.07503, section 2.3.

Deviations: a row without any allowed key gives zeros, not NaN; the paper sharpens when it decodes
long utterances, the bench in training too.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax


@dataclass(frozen=True, kw_only=True)
class SharpenedConfig(Config):
    """Options of the sharpened softmax."""

    sharpness: Annotated[float, FloatRange(0.25, 8.0, log=True)] = 2.0
    """Inverse temperature; 1 is the softmax, more is sharper, less is smoother."""

    def __post_init__(self) -> None:
        """Check the sharpness."""
        if self.sharpness <= 0:
            raise InvalidConfig(f"sharpened: sharpness must be positive, got {self.sharpness}.")


@register(
    "normalizer",
    "sharpened",
    title="Sharpened softmax",
    config=SharpenedConfig,
    citation=Citation(
        text="Chorowski et al., 2015", url="https://arxiv.org/abs/1506.07503", where="section 2.3"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class SharpenedNormalizer(Normalizer):
    """exp(g e) / sum exp(g e) over the allowed keys."""

    visible_alone = True

    # not `softmax`: fused code would leave the sharpness out
    gives = frozenset({"simplex"})

    def __init__(self, config: SharpenedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.sharpness = config.sharpness

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row."""
        return Normalized(masked_softmax(energy * self.sharpness, allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Normalize one row by loops."""
        return oracle_softmax(energy * self.sharpness, allowed)
