"""Sequence to numbers: the pooled vector goes through a perceptron.

Raffel & Ellis, 2015, "Feed-forward networks with attention can solve some long-term memory
problems", https://arxiv.org/abs/1512.08756, section 3.2, s = LReLU(W c + b).

Deviations: the last layer is linear, where the paper has another LReLU.
"""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from bench.api.backbone import BackboneParts
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from tasks.backbones.pooling import Pooling, PoolingConfig


@dataclass(frozen=True, kw_only=True)
class PoolingPerceptronConfig(PoolingConfig):
    """Options of pooling with a perceptron behind it."""

    encoder: Selector = Selector("feed_forward")
    """How states are made; `feed_forward` leaves all context to the attention."""
    hidden: Annotated[int, IntRange(8, 512, log=True)] = 64
    """Units between the pooled vector and the answer."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.hidden < 1:
            raise InvalidConfig(
                f"pooling_perceptron: hidden must be at least 1, got {self.hidden}."
            )


@register(
    "backbone",
    "pooling_perceptron",
    config=PoolingPerceptronConfig,
    title="one query over encoded positions, and a perceptron",
    citation=Citation(
        text="Raffel and Ellis, 2015",
        url="https://arxiv.org/abs/1512.08756",
        where="section 3.2",
    ),
)
class PoolingPerceptron(Pooling):
    """Two layers after pooling can compute what one cannot, such as a product."""

    sized_by = ("embedding", "hidden")

    def __init__(self, config: PoolingPerceptronConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        self.between = nn.Sequential(
            nn.Linear(self.slot.output_width, config.hidden), nn.LeakyReLU()
        )
        self.project = nn.Linear(config.hidden, parts.sizes.target_vocab)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Answer from the pooled vector."""
        return self.project(self.between(context))
