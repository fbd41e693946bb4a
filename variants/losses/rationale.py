"""Rationale loss: select few and contiguous tokens that still suffice for the prediction.

Lei, Barzilay & Jaakkola, 2016, "Rationalizing neural predictions",
https://arxiv.org/abs/1606.04155, section 4, equations 2 to 4.

Deviations: a running mean of the cost is subtracted (`baseline=none` is the paper's estimator);
the surrogate is divided by the number of target tokens, as the negative log likelihood is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Terms


@dataclass(frozen=True, kw_only=True)
class RationaleLossConfig(Config):
    """Options of the rationale loss."""

    sparsity: Annotated[float, FloatRange(1e-4, 1.0, log=True), Legal(0)] = 0.02
    """lambda_1, cost of a selected token (nats)."""
    coherence: Annotated[float, FloatRange(0.0, 1.0)] = 0.0
    """lambda_2, cost of a position where selection begins or ends (nats)."""
    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """Weight of the generator's surrogate loss against the likelihood; dimensionless."""
    baseline: Literal["moving_average", "none"] = "moving_average"
    """What is subtracted from the cost: its running mean, or nothing."""
    decay: Annotated[float, FloatRange(0.5, 0.999), Legal(0)] = 0.9
    """Share of the running mean that a step keeps."""

    def __post_init__(self) -> None:
        """Check the weights and the decay."""
        if min(self.sparsity, self.coherence, self.weight) < 0:
            raise InvalidConfig(
                "rationale: sparsity, coherence and weight must be at least 0, "
                f"got {self.sparsity}, {self.coherence} and {self.weight}."
            )
        if not 0 <= self.decay < 1:
            raise InvalidConfig(f"rationale: decay must be in [0, 1), got {self.decay}.")


@register(
    "loss",
    "rationale",
    config=RationaleLossConfig,
    citation=Citation(
        text="Lei et al., 2016", url="https://arxiv.org/abs/1606.04155", where="section 4"
    ),
)
class RationaleLoss(Loss):
    """stop(cost - b) log p(z), cost = -log p(y | x z) + l1 sum z + l2 sum |z_s - z_{s-1}|."""

    needs = frozenset({"selection"})
    gives = frozenset({"loss:rationale"})
    terms_of_source = ("selected", "log_prob")

    def __init__(self, config: RationaleLossConfig) -> None:
        super().__init__(config)
        self.config = config

    def init(self) -> dict[str, Tensor]:
        """The running mean of the cost (nats)."""
        return {"baseline": torch.zeros(())}

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sources that select add their log probabilities and their costs."""
        found = [terms for terms in inputs.trace.source_terms if "selected" in terms]
        if not found:
            raise Refused("rationale needs an encoder that selects; use encoder=rationale.")
        cost = inputs.nll.detach()
        cost = cost.sum(1) if cost.dim() == 2 else cost
        for terms in found:
            cost = cost + self._selection(terms)
        log_prob = torch.stack([terms["log_prob"].sum(1) for terms in found]).sum(0)
        mean = carry["baseline"].to(cost)
        apart = cost - mean if self.config.baseline == "moving_average" else cost
        apart = apart.detach()  # a cost is a number, whatever it was computed from
        count = inputs.batch.mask.sum().clamp(min=1)
        term = self.config.weight * (apart * log_prob).sum() / count
        decay = self.config.decay
        return term, {"baseline": decay * mean + (1 - decay) * cost.detach().mean()}

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """The cost of the selection, held still, times its log probability; token by token."""
        cost, log_prob = sum(inputs.nll.detach()[0].flatten().tolist()), inputs.nll.new_zeros(())
        for terms in inputs.trace.source_terms:
            before: float | None = None
            for selected, chance in zip(
                terms["selected"][0].tolist(), terms["log_prob"][0], strict=True
            ):
                cost = cost + self.config.sparsity * selected
                if before is not None:
                    cost = cost + self.config.coherence * abs(selected - before)
                before, log_prob = selected, log_prob + chance
        if self.config.baseline == "moving_average":
            cost = cost - float(carry["baseline"])
        return self.config.weight * cost * log_prob

    def _selection(self, terms: Terms) -> Float[Tensor, " B"]:
        """What the selection of each row costs."""
        selected = terms["selected"]
        # a selection that reaches the last token does not end before the padding
        changes = (selected[:, 1:] - selected[:, :-1]).abs() * terms["real"][:, 1:]
        return self.config.sparsity * selected.sum(1) + self.config.coherence * changes.sum(1)


register_recipe(
    "rationale",
    Recipe(axes={"loss": "rationale"}, main="loss", fixes={"encoder": "rationale"}),
    module=__name__,
    title="Rationale: selected tokens only",
    citation=Citation(text="Lei et al., 2016", url="https://arxiv.org/abs/1606.04155"),
    cost=3.5,
    default_task=DefaultTask(task="after_marker"),
    deviations=(
        "those of the encoder `rationale` and of the loss `rationale`; the selected tokens "
        "are pooled by attention, where the paper takes the last state of a recurrent "
        "network."
    ),
)
