"""First-token mass: how much weight goes to the first key, whatever stands there.

Xiao et al., 2023, "Efficient streaming language models with attention sinks",
https://arxiv.org/abs/2309.17453, section 3.1: models give the first tokens much weight although
they mean little.

Deviations: in the last layer alone, averaged over heads; queries that see one key only are left
out, for they have no choice.
"""

from typing import ClassVar

import torch
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import observations


@register(
    "probe",
    "first_token_mass",
    citation=Citation(
        text="Xiao et al., 2023", url="https://arxiv.org/abs/2309.17453", where="section 3.1"
    ),
)
class FirstTokenMass(Probe):
    """Mean a(q, 1) over scored queries, beside that of equal weights; how often it is largest."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("first_token_mass_share", "Weight of the first key", "weight"),
        diagnostic("first_token_equal_share", "The same if all weights were equal", "weight"),
        diagnostic("first_token_largest_share", "The first key has most weight", "queries"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Average over the queries.

        Raises:
            Refused: No query that is scored sees two keys.
        """
        found: dict[str, list[Tensor]] = {metric.name: [] for metric in self.metrics}
        mass, equal, largest = found.values()
        for seen in observations(subject):
            count = seen.real.sum(-1)
            asked = seen.batch.mask & (count > 1)
            weights = seen.weights[asked]
            mass.append(weights[:, 0])
            equal.append(1 / count[asked].to(weights.dtype))
            if len(weights):  # among equal weights none is the largest
                ahead = weights[:, 0] > weights[:, 1:].amax(-1)
                largest.append(ahead.to(weights.dtype))
        if not sum(len(part) for part in mass):
            raise Refused("every query here sees one key only.")
        return [
            Scored(metric=name, value=float(torch.cat(parts).mean()))
            for name, parts in found.items()
        ]
