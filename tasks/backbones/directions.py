"""Directions of training: one model, or two that read each other's attention.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.4.
"""

from dataclasses import dataclass

from bench.api.config import Config
from bench.api.registry import Citation, register
from bench.api.selector import Selector


@register("direction", "single", title="one direction")
class Single:
    """Source to target only."""


@dataclass(frozen=True, kw_only=True)
class BothConfig(Config):
    """Options of joint training."""

    joint: Selector = Selector("agreement_trace")
    """Loss that couples the two directions."""


@register(
    "direction",
    "both",
    config=BothConfig,
    title="two directions trained jointly",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.4"
    ),
)
class Both:
    """Source to target and back, coupled by a joint loss."""
