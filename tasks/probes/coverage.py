"""Coverage: total weight of each source word, and repeated or dropped words of the output.

Tu et al., 2016, "Modeling coverage for neural machine translation",
https://arxiv.org/abs/1601.04811, section 5 (over- and under-translation).

Deviations: repeated bigrams are counted beyond those of the reference; a dropped word is a
reference word that the output has too few of.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.metrics.text_scores import dropped, repeated
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations

OVER, UNDER = 1.5, 0.5
"""Total weight of a key above and below which it counts as over- and under-covered."""


@register(
    "probe",
    "coverage",
    revision=2,
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 5"
    ),
)
class Coverage(Probe):
    """Keys with a total weight above 1.5 and below 0.5; repeated bigrams; dropped words."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("over_covered_share", "Keys with more than 1.5 of weight", "keys"),
        diagnostic("under_covered_share", "Keys with less than 0.5 of weight", "keys"),
        diagnostic("repeated_bigram_share", "Bigrams repeated without need", "bigrams", "lower"),
        diagnostic("dropped_word_share", "Reference words that are missing", "words", "lower"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Sum the weights of each key over the targets, and decode where the task does."""
        totals: list[Tensor] = []
        bigrams, words = [0, 0], [0, 0]
        for seen in observations(subject):
            totals.append(_totals(seen))
            if subject.task.decodes:
                for said, wanted in _outputs(subject, seen):
                    _add(bigrams, repeated(said, wanted))
                    _add(words, dropped(said, wanted))
        total = torch.cat(totals)
        found = {
            "over_covered_share": float((total > OVER).double().mean()),
            "under_covered_share": float((total < UNDER).double().mean()),
        }
        if bigrams[1]:
            found["repeated_bigram_share"] = bigrams[0] / bigrams[1]
        if words[1]:
            found["dropped_word_share"] = words[0] / words[1]
        return [Scored(metric=name, value=value) for name, value in found.items()]


def _totals(seen: Observation) -> Tensor:
    scored = seen.batch.mask[..., None]
    total = (seen.weights * scored).sum(1)
    return total[(seen.real & scored).any(1)]


def _outputs(subject: Subject, seen: Observation) -> list[tuple[Sequence[int], Sequence[int]]]:
    most = subject.task.sizes.max_length
    said = subject.backbone.generate(seen.batch, most, Mode(noise=DRAWS)).tokens
    wanted = [
        [word for word in line[mask].tolist() if word != subject.task.sizes.eos]
        for line, mask in zip(seen.batch.targets, seen.batch.mask, strict=True)
    ]
    return list(zip(said, wanted, strict=True))


def _add(total: list[int], more: tuple[int, int]) -> None:
    total[0] += more[0]
    total[1] += more[1]
