"""Projections of SAGAN: an eighth of the channels, and a gate that starts closed.

Zhang et al., 2019, "Self-attention generative adversarial networks",
https://arxiv.org/abs/1805.08318, section 3, equations 1 to 3.

Deviations: positions of a sequence instead of pixels, for which a 1x1 convolution is a linear map;
no spectral normalization. In y = gamma o + x, the residual connection around the slot adds x. The
authors' code halves the values (`value=2`) and pools keys and values 2x2, which is not done here.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.heads.projections import ProjectedHeads, oracle_linear


@dataclass(frozen=True, kw_only=True)
class SaganConfig(Config):
    """Options of SAGAN's projections."""

    reduction: Annotated[int, Choices((1, 2, 4, 8))] = 8
    """Model width over the width of queries and keys; they have at least one unit."""
    value: Annotated[int, Choices((1, 2, 4, 8))] = 8
    """The same for values."""

    def __post_init__(self) -> None:
        """Check the shares."""
        if min(self.reduction, self.value) < 1:
            raise InvalidConfig(
                "sagan: reduction and value must be at least 1, "
                f"got {self.reduction} and {self.value}."
            )


@register(
    "head",
    "sagan",
    config=SaganConfig,
    citation=Citation(
        text="Zhang et al., 2019",
        url="https://arxiv.org/abs/1805.08318",
        where="section 3, equations 1 to 3",
    ),
)
class SaganHeads(ProjectedHeads):
    """gamma W_v o, gamma = 0 at the start, so that a residual block begins as the identity."""

    starts = {"gamma": 0.0}  # the residual block begins as the identity

    def __init__(
        self,
        config: SaganConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        key = max(1, query_width // config.reduction)
        value = max(1, query_width // config.value)
        dims = Dims(1, 1, key, key, value, query_width, regime)
        self.project(dims, source_width, bias=False)
        self.output_width = query_width
        self.to_output = nn.Linear(value, query_width, bias=False)
        for layer in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.xavier_uniform_(layer.weight)
        self.gamma = nn.Parameter(torch.zeros(()))

    def merge(self, output: Float[Tensor, "B 1 L Ev"]) -> Float[Tensor, "B L D"]:
        """Map back to the channels and multiply by the gate."""
        return self.gamma * self.to_output(output.squeeze(1))

    def oracle_merge(self, output: Float[Tensor, "1 Ev"]) -> Float[Tensor, " D"]:
        """Number by number."""
        return torch.stack([self.gamma * x for x in oracle_linear(self.to_output, output[0])])


register_recipe(
    "sagan",
    Recipe(axes={"head": "sagan", "score": "dot"}, main="head"),
    module=__name__,
    title="Gated self-attention of few channels (SAGAN)",
    citation=Citation(
        text="Zhang et al., 2019", url="https://arxiv.org/abs/1805.08318", where="section 3"
    ),
    default_task=DefaultTask(task="digits", backbone="image_classifier[width=32,layers=2]"),
    deviations="those of the head `sagan`.",
)
