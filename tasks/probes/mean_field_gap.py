"""Mean-field gap: predicting from the mean value is not the mean of the predictions.

Soft attention evaluates f(E v), hard attention E f(v), with v drawn by the weights: Deng et al.,
2018, "Latent alignment and variational attention", https://arxiv.org/abs/1807.03756, section 2; to
second order the gap is half the trace of the Hessian of f times the covariance of v.

Deviations: f is the output layer alone, so the context must enter there; one head only. Second
derivatives are differences of f at a tenth of the way from the mean to each value.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import (
    Observation,
    observations,
    refuse_other_keys,
    total_variation,
)

STEP = 0.1
"""Share of the way from the mean to a value over which second derivatives are taken."""


@register(
    "probe",
    "mean_field_gap",
    revision=2,
    citation=Citation(
        text="Deng et al., 2018", url="https://arxiv.org/abs/1807.03756", where="section 2"
    ),
)
class MeanFieldGap(Probe):
    """Total variation of p(sum a v) and sum a p(v), and that of its second-order estimate."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("mean_field_gap_share", "Gap of soft and marginal prediction", "mass"),
        diagnostic("second_order_gap_share", "The gap to second order", "mass", high=None),
        diagnostic(
            "gap_correlation_share",
            "Correlation of the gap with its second order",
            "",
            unit="r",
            low=-1.0,
        ),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Predict from the mean and from every value."""
        gaps: list[Tensor] = []
        estimates: list[Tensor] = []
        for seen in observations(subject):
            gap, estimate = _of_batch(subject, seen)
            gaps.append(gap[seen.batch.mask])
            estimates.append(estimate[seen.batch.mask])
        both = torch.stack((torch.cat(gaps), torch.cat(estimates))).double()
        found = [
            Scored(metric="mean_field_gap_share", value=float(both[0].mean())),
            Scored(metric="second_order_gap_share", value=float(both[1].mean())),
        ]
        if bool((both.std(-1, correction=0) > 1e-12).all()):
            r = float(torch.corrcoef(both)[0, 1])
            found.append(Scored(metric="gap_correlation_share", value=r))
        return found


def _of_batch(
    subject: Subject, seen: Observation
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    trace = seen.trace
    memory = trace.memories[0]
    if memory is None or trace.attended[0].output.shape[1] != 1 or len(trace.attended) > 1:
        raise Refused("the gap is measured where one head reads one source.")
    refuse_other_keys(seen, memory.source.value)
    heads = subject.backbone.variant_slots()[0].heads
    heads.refuse_gates()
    values = heads.merge(memory.source.value)
    mean = seen.weights @ values
    soft = _predict(subject, seen, mean)
    if torch.equal(soft, _predict(subject, seen, mean + 1.0)):
        raise Refused("this network does not read the context where it predicts.")
    marginal, bent = torch.zeros_like(soft), torch.zeros_like(soft)
    for key in range(values.shape[1]):
        weight, value = seen.weights[..., key : key + 1], values[:, key : key + 1].expand_as(mean)
        marginal += weight * _predict(subject, seen, value)
        way = STEP * (value - mean)
        there, back = _predict(subject, seen, mean + way), _predict(subject, seen, mean - way)
        bent += weight * (there + back - 2 * soft) / STEP**2
    return total_variation(soft, marginal), total_variation(bent / 2, torch.zeros_like(bent))


def _predict(
    subject: Subject, seen: Observation, context: Float[Tensor, "B T Dv"]
) -> Float[Tensor, "B T V"]:
    logits = subject.backbone.emit(seen.trace.states, context, seen.trace.embedded)
    return torch.softmax(logits.to(context.dtype), -1)
