"""Capped logits: a tanh bounds each energy before the softmax.

Gemma Team, 2024, "Gemma 2: improving open language models at a practical size",
https://arxiv.org/abs/2408.00118, section 2 (logit soft-capping).

Deviations: the cap is 10 unless said otherwise; Gemma 2 has 50 in its attention, which the energies
of small models hardly reach. A row without any allowed key gives zeros, not NaN.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
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
class LogitSoftcapConfig(Config):
    """Options of capped logits."""

    cap: Annotated[float, FloatRange(1.0, 100.0, log=True)] = 10.0
    """Bound of every energy, s (logits)."""

    def __post_init__(self) -> None:
        """Check the cap."""
        if self.cap <= 0:
            raise InvalidConfig(f"logit_softcap: cap must be above 0, got {self.cap}.")


@register(
    "normalizer",
    "logit_softcap",
    title="Softmax of capped logits",
    config=LogitSoftcapConfig,
    citation=Citation(
        text="Gemma Team, 2024", url="https://arxiv.org/abs/2408.00118", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "The Gemma Team cap the logits of models of 2 to 27 billion parameters, and report no "
        "comparison with and without the cap. Logits of models of this size hardly reach it."
    ),
)
class LogitSoftcapNormalizer(Normalizer):
    """exp(s tanh(e / s)) over its sum, on allowed keys; time O(L S) per head."""

    visible_alone = True

    # not `softmax`: fused code would leave the cap out
    gives = frozenset({"simplex"})

    def __init__(self, config: LogitSoftcapConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.cap = config.cap

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Cap, hide keys, normalize each row."""
        # capped before keys are hidden: the cap would make a hidden key visible again
        return Normalized(masked_softmax(self.cap * torch.tanh(energy / self.cap), allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Cap energy after energy, by exponentials."""
        capped = []
        for e in energy:
            shrunk = torch.exp(-2 * torch.abs(e) / self.cap)
            capped.append(self.cap * torch.sign(e) * (1 - shrunk) / (1 + shrunk))
        return oracle_softmax(torch.stack(capped), allowed)
