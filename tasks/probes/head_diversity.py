"""Head diversity: how different the weights of the heads of one slot are.

Li et al., 2018, "Multi-head attention with disagreement regularization",
https://arxiv.org/abs/1810.10183, section 3.1 (disagreement on attended positions).

Deviations: Jensen-Shannon divergence in addition to the paper's product of weights.
"""

from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.metrics.attention_scores import strongest
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import js_divergence, observations, refuse_other_than_shares


@register(
    "probe",
    "head_diversity",
    citation=Citation(
        text="Li et al., 2018", url="https://arxiv.org/abs/1810.10183", where="section 3.1"
    ),
)
class HeadDiversity(Probe):
    """Mean JS(a_h, a_g) and mean sum_s a_h a_g over pairs of heads and scored targets."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("head_js_nats", "Divergence of two heads", "", unit="nats", high=None),
        diagnostic("head_overlap_share", "Overlap of two heads", "weight"),
        diagnostic("head_same_key_share", "Two heads have one largest key", "targets"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Compare every pair of heads.

        Raises:
            Refused: There is one head, or weights are below zero or above one.
        """
        found: dict[str, list[Tensor]] = {metric.name: [] for metric in self.metrics}
        for seen in observations(subject):
            weights = seen.trace.attended[0].weights
            assert weights is not None, "observations refuses networks without weights"
            if weights.shape[1] < 2:
                raise Refused("there is one head only; give --variants NAME[head=multi].")
            scored = weights.transpose(1, 2)[seen.batch.mask]
            refuse_other_than_shares(scored)
            heads = scored.unbind(1)
            for one, two in combinations(heads, 2):
                (first, alone), (second, alone_too) = strongest(one), strongest(two)
                same = (first == second) & alone & alone_too
                found["head_js_nats"].append(js_divergence(one, two))
                found["head_overlap_share"].append((one * two).sum(-1))
                found["head_same_key_share"].append(same.to(one.dtype))
        return [
            Scored(metric=name, value=float(torch.cat(parts).mean()))
            for name, parts in found.items()
        ]
