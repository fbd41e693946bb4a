"""Blur: how concentrated the weights of a trained model are.

Koehn & Knowles, 2017, "Six challenges for neural machine translation",
https://arxiv.org/abs/1706.03872, section 3.6 (attention that is spread over several words).

Deviations: none; entropy is in nats and taken over the weights as they are used, which may sum to
less than one.
"""

from typing import ClassVar

import torch

from bench.api.backbone import Mode
from bench.api.instrument import Instrument, Subject
from bench.api.registry import Citation, register
from bench.api.task import Metric, Scored
from tasks.analysis._weights import looks


@register(
    "instrument",
    "blur",
    citation=Citation(
        text="Koehn & Knowles, 2017", url="https://arxiv.org/abs/1706.03872", where="section 3.6"
    ),
)
class Blur(Instrument):
    """Mean over scored targets of H = -sum w log w, of exp(H), and of whether max w < 1/2."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric(
            name="weight_entropy_nats",
            title="Entropy of the weights",
            unit="nats",
            better="none",
            group="diagnostic",
        ),
        Metric(
            name="effective_keys_count",
            title="Effective number of keys",
            unit="keys",
            better="none",
            group="diagnostic",
        ),
        Metric(
            name="no_majority_share",
            title="Targets whose largest weight is below one half",
            unit="fraction of targets",
            better="none",
            group="diagnostic",
        ),
    )

    def measure(self, subject: Subject) -> list[Scored]:
        """Average over every scored target of the examples."""
        entropy, blurred = [], []
        for look in looks(subject, Mode()):
            weights = look.weights[look.batch.mask].double()
            entropy.append(-torch.special.xlogy(weights, weights).sum(-1))
            blurred.append((weights.amax(-1) < 0.5).double())
        found = torch.cat(entropy)
        return [
            Scored(metric="weight_entropy_nats", value=float(found.mean())),
            Scored(metric="effective_keys_count", value=float(found.exp().mean())),
            Scored(metric="no_majority_share", value=float(torch.cat(blurred).mean())),
        ]
