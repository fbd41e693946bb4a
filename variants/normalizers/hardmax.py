"""Hardmax: the key of the highest energy gets all the weight.

Xu et al., 2015, "Show, attend and tell", https://arxiv.org/abs/1502.03044, section 4.1: what hard
attention reads when it takes the likeliest position instead of a sample.

Deviations: training takes the likeliest position too, where the paper samples. The choice has no
gradient, so training uses that of a softmax (straight-through, Bengio et al., 2013,
https://arxiv.org/abs/1308.3432). Under `gradient=none` there is none, and the parameters of the
score are never trained.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.best_key import one_hot_best, oracle_best
from variants.normalizers.masked_softmax import masked_softmax

Gradient = Literal["straight_through", "none"]


@dataclass(frozen=True, kw_only=True)
class HardmaxConfig(Config):
    """Options of hardmax."""

    gradient: Annotated[Gradient, Choices(("straight_through", "none"))] = "straight_through"
    """What scores learn from in training: the softmax, or nothing."""
    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """Of that softmax (dimensionless); the answer does not depend on it."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(f"hardmax: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer",
    "hardmax",
    config=HardmaxConfig,
    title="All weight on the best key",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Xu et al. draw the key in training, and report no measurement of training with the "
        "likeliest key, so that nothing is claimed for it. Here the baseline recalls nearly every "
        "pair, which leaves no room above it."
    ),
    cost=1.1,
)
class HardmaxNormalizer(Normalizer):
    """One at the first of the best allowed keys, zero at the others."""

    gives = frozenset({"simplex", "jumps"})
    starts_outside = "one key has all the weight, by definition"

    def __init__(self, config: HardmaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.straight_through = config.gradient == "straight_through"
        self.temperature = config.temperature

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Take the best key of each row."""
        best = one_hot_best(energy, allowed)
        if self.straight_through and call.read == "train":
            soft = masked_softmax(energy / self.temperature, allowed)
            # the difference is exactly zero, hence the sum exactly one-hot
            best = best + (soft - soft.detach())
        return Normalized(best)

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Search one row."""
        return oracle_best(energy, allowed)
