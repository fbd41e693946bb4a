"""Content by length: reference words that are missing, and bigrams said again, by source length.

Tu et al., 2016, "Modeling coverage for neural machine translation",
https://arxiv.org/abs/1601.04811, section 5 (over- and under-translation), for sources inside and
beyond the lengths of training.

Deviations: those of the probe `coverage`, whose counts these are. Every network is made to decode,
also where its task scores by teacher forcing. Where nothing is said, nothing is repeated.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from bench.api.answer import Answer
from bench.api.config import NoOptions
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.metrics.source_lengths import source_lengths
from tasks.metrics.text_scores import dropped, repeated
from tasks.probes.diagnostic_metric import diagnostic

DROPPED, REPEATED = "dropped_content_share", "repeated_content_share"


@dataclass
class Counts:
    """Sums over some sentences."""

    missing: int = 0
    """Reference words that the output has too few of."""
    words: int = 0
    """Reference words."""
    again: int = 0
    """Bigrams said more often than once and than in the reference."""
    bigrams: int = 0
    """Bigrams said."""

    def scored(self, axis: str = "", x: float | None = None) -> list[Scored]:
        """Both shares, at a place of an axis."""
        found = {
            DROPPED: self.missing / max(1, self.words),
            REPEATED: self.again / max(1, self.bigrams),
        }
        return [Scored(metric=name, value=value, axis=axis, x=x) for name, value in found.items()]


@register(
    "probe",
    "content_by_length",
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 5"
    ),
)
class ContentByLength(Probe):
    """Dropped words and repeated bigrams of decoded outputs, in all and at each source length.

    A test has a batch for each length, so all lengths need as many examples as the test has.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic(DROPPED, "Reference words that are missing", "words", "lower"),
        diagnostic(REPEATED, "Bigrams repeated without need", "bigrams", "lower"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Decode every example, and count at each length."""
        every, at_length = Counts(), defaultdict[int, Counts](Counts)
        sizes = subject.task.sizes
        for batch in subject.batches:
            mode = Mode(noise=DRAWS)
            said = subject.backbone.generate(batch, sizes.max_length, mode).tokens
            lengths = source_lengths(Answer(batch))
            targets = zip(batch.targets, batch.mask, strict=True)
            for length, words, (target, scored) in zip(lengths, said, targets, strict=True):
                wanted = [word for word in target[scored].tolist() if word != sizes.eos]
                for counts in (every, at_length[length]):
                    _count(counts, words, wanted)
        found = every.scored()
        for length, counts in sorted(at_length.items()):
            found += counts.scored("length", float(length))
        return found


def _count(counts: Counts, said: tuple[int, ...], wanted: list[int]) -> None:
    missing, words = dropped(said, wanted)
    again, bigrams = repeated(said, wanted)
    counts.missing += missing
    counts.words += words
    counts.again += again
    counts.bigrams += bigrams
