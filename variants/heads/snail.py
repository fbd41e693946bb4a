"""Projections of SNAIL: one head, small keys and values, no map back to the model width.

Mishra et al., 2018, "A simple neural attentive meta-learner", https://arxiv.org/abs/1707.03141,
section 3 and the attention block of its appendix.

Deviations: none; keys and values are 16 wide by default, as in the paper's bandits.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.heads.projections import ProjectedHeads


@dataclass(frozen=True, kw_only=True)
class SnailConfig(Config):
    """Options of SNAIL's projections."""

    key: Annotated[int, IntRange(8, 512, log=True)] = 16
    """Width of queries and keys."""
    value: Annotated[int, IntRange(8, 512, log=True)] = 16
    """Width of values, and of what comes out."""

    def __post_init__(self) -> None:
        """Check the widths."""
        if min(self.key, self.value) < 1:
            raise InvalidConfig(
                f"snail: key and value must be at least 1, got {self.key} and {self.value}."
            )


@register(
    "head",
    "snail",
    config=SnailConfig,
    citation=Citation(
        text="Mishra et al., 2018", url="https://arxiv.org/abs/1707.03141", where="section 3"
    ),
)
class SnailHeads(ProjectedHeads):
    """Affine maps to queries, keys and values; no map back."""

    def __init__(
        self,
        config: SnailConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        dims = Dims(1, 1, config.key, config.key, config.value, query_width, regime)
        self.project(dims, source_width, bias=True)
        self.output_width = config.value

    def merge(self, output: Float[Tensor, "B 1 L Ev"]) -> Float[Tensor, "B L Ev"]:
        """Drop the head axis."""
        return output.squeeze(1)

    def oracle_merge(self, output: Float[Tensor, "1 Ev"]) -> Float[Tensor, " Ev"]:
        """The only head."""
        return output[0]


register_recipe(
    "snail",
    Recipe(axes={"head": "snail", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Attention among dilated convolutions (SNAIL)",
    citation=Citation(
        text="Mishra et al., 2018", url="https://arxiv.org/abs/1707.03141", where="section 3"
    ),
    default_task=DefaultTask(task="recall", backbone="snail"),
    does_not_show=(
        "Mishra et al. report 99.1% of characters (Omniglot) and 55.7% of photographs "
        "(mini-ImageNet) named right from one example of each of five classes, by a whole network "
        "of convolutions and attention. Here the baseline stands in this network with the same "
        "projections, and the two are one network."
    ),
    deviations="those of the head and the backbone `snail`.",
)
