"""Gradient path: how much of the last target's gradient reaches a source word, by distance.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 5.2.2, explain long sentences by it;
the measurement is that of Bengio et al., 1994, "Learning long-term dependencies with gradient
descent is difficult", https://doi.org/10.1109/72.279181, section III.

Deviations: the norm is taken at the word embeddings and divided by that of all words together.
"""

from typing import ClassVar

import torch
from torch import Tensor

from bench.api.batch import Batch
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.embedded_words import embedded_words


@register(
    "probe",
    "gradient_path",
    citation=Citation(
        text="Bengio et al., 1994", url="https://doi.org/10.1109/72.279181", where="section III"
    ),
)
class GradientPath(Probe):
    """|dL_T / dx_s| / sqrt(sum_s |dL_T / dx_s|^2), T the last target, by distance from the end."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("gradient_at_share", "Gradient norm by distance from the end", "norm"),
        diagnostic("gradient_first_share", "Gradient norm at the first word", "norm"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Propagate the loss of the last target of every example."""
        by_distance: dict[int, list[float]] = {}
        first: list[float] = []
        for batch in subject.batches:
            norms = _norms(subject, batch)
            real = _real(batch)
            for line, there in zip(norms, real, strict=True):
                shares = line[there] / line[there].square().sum().sqrt().clamp(min=1e-30)
                first.append(float(shares[0]))
                for distance, share in enumerate(reversed(shares.tolist())):
                    by_distance.setdefault(distance, []).append(share)
        curve = {d: sum(found) / len(found) for d, found in sorted(by_distance.items())}
        return [
            Scored(metric="gradient_first_share", value=sum(first) / len(first)),
            *(
                Scored(metric="gradient_at_share", value=value, axis="distance", x=float(distance))
                for distance, value in curve.items()
            ),
        ]


def _real(batch: Batch) -> Tensor:
    """Words that the last target may depend on."""
    if batch.sources:
        text = batch.sources[0]
        return torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask
    places = torch.arange(batch.inputs.shape[1], device=batch.inputs.device)
    return places <= _last(batch)[:, None]


def _last(batch: Batch) -> Tensor:
    """The last scored target of each example."""
    places = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    return torch.where(batch.mask, places, -1).amax(-1).clamp(min=0)


def _norms(subject: Subject, batch: Batch) -> Tensor:
    """Gradient norm at each word's embedding."""
    with embedded_words(subject, batch) as words, torch.enable_grad():
        trace = subject.backbone(batch, Mode(noise=DRAWS))
        nll = subject.backbone.output.nll(trace, subject.backbone.emit, batch)
        if subject.backbone.output.sequence_only:
            raise Refused("this output has no loss of a single target.")
        loss = nll.gather(1, _last(batch)[:, None]).sum()
        (gradient,) = torch.autograd.grad(loss, words.leaf)
    return gradient.norm(dim=-1)
