"""Mean-field gap: predicting from the mean value is not the mean of the predictions.

Soft attention evaluates f(E v), hard attention E f(v), with v drawn by the weights: Deng et al.,
2018, "Latent alignment and variational attention", https://arxiv.org/abs/1807.03756, section 2; to
second order the gap is half the trace of the Hessian of f times the covariance of v.

Deviations: f is the output layer alone, so the context must enter there; one head only.
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
from tasks.probes.observations import Observation, observations, total_variation


@register(
    "probe",
    "mean_field_gap",
    citation=Citation(
        text="Deng et al., 2018", url="https://arxiv.org/abs/1807.03756", where="section 2"
    ),
)
class MeanFieldGap(Probe):
    """Total variation of p(sum a v) and sum a p(v); its correlation with the spread of v."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("mean_field_gap_share", "Gap of soft and marginal prediction", "mass"),
        diagnostic(
            "value_spread_count", "Trace of the covariance of the values", "", unit="1", high=None
        ),
        diagnostic(
            "gap_spread_correlation_share", "Correlation of gap and spread", "", unit="r", low=-1.0
        ),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Predict from the mean and from every value."""
        gaps: list[Tensor] = []
        spreads: list[Tensor] = []
        for seen in observations(subject):
            gap, spread = _of_batch(subject, seen)
            gaps.append(gap[seen.batch.mask])
            spreads.append(spread[seen.batch.mask])
        both = torch.stack((torch.cat(gaps), torch.cat(spreads))).double()
        found = [
            Scored(metric="mean_field_gap_share", value=float(both[0].mean())),
            Scored(metric="value_spread_count", value=float(both[1].mean())),
        ]
        if bool((both.std(-1, correction=0) > 1e-12).all()):
            r = float(torch.corrcoef(both)[0, 1])
            found.append(Scored(metric="gap_spread_correlation_share", value=r))
        return found


def _of_batch(
    subject: Subject, seen: Observation
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    trace = seen.trace
    memory = trace.memories[0]
    if memory is None or trace.attended[0].output.shape[1] != 1 or len(trace.attended) > 1:
        raise Refused("the gap is measured where one head reads one source.")
    heads = subject.backbone.variant_slots()[0].heads
    heads.refuse_gates()
    values = heads.merge(memory.source.value)
    mean = seen.weights @ values
    soft = _predict(subject, seen, mean)
    if torch.equal(soft, _predict(subject, seen, mean + 1.0)):
        raise Refused("this network does not read the context where it predicts.")
    marginal = torch.zeros_like(soft)
    for key in range(values.shape[1]):
        alone = _predict(subject, seen, values[:, key : key + 1].expand_as(mean))
        marginal += seen.weights[..., key : key + 1] * alone
    square = seen.weights @ values.square().sum(-1, keepdim=True)
    return total_variation(soft, marginal), square.squeeze(-1) - mean.square().sum(-1)


def _predict(
    subject: Subject, seen: Observation, context: Float[Tensor, "B T Dv"]
) -> Float[Tensor, "B T V"]:
    logits = subject.backbone.emit(seen.trace.states, context, seen.trace.embedded)
    return torch.softmax(logits.to(context.dtype), -1)
