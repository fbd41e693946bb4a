"""Coverage and errors: whether sentences with a word that is visited often have more errors.

The coverage of a word is the sum of its weights over all targets: Tu et al., 2016, "Modeling
coverage for neural machine translation", https://arxiv.org/abs/1601.04811, section 3.1; how many
targets a word should have is its fertility: Cohn et al., 2016, "Incorporating structural alignment
biases into an attentional neural translation model", https://arxiv.org/abs/1601.01085, section 3.3.

Deviations: neither paper correlates them with errors. Under teacher forcing, so that all coverages
of a sentence sum to the number of its targets, which the network cannot choose.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import torch

from bench.api.answer import Answer
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.metrics.source_lengths import source_lengths
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations, probabilities

CORRELATION = "coverage_error_correlation"


@dataclass(frozen=True, kw_only=True)
class CoverageErrorsConfig(Config):
    """Options of coverage and errors."""

    fertility: Annotated[int, IntRange(1, 8)] = 1
    """Words count that at least so many targets are aligned with."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.fertility < 1:
            raise InvalidConfig(
                f"coverage_errors: fertility must be at least 1, got {self.fertility}."
            )


class Sentence(NamedTuple):
    """One sentence with a word that counts."""

    source: int
    """Source words."""
    targets: int
    """Targets, EOS among them."""
    coverage: float
    """The largest coverage of a word that counts."""
    error: float
    """Share of the targets aligned with words that count whose best prediction is wrong."""


@register(
    "probe",
    "coverage_errors",
    config=CoverageErrorsConfig,
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 3.1"
    ),
)
class CoverageErrors(Probe):
    """Rank correlation of the largest coverage with the errors of a sentence, lengths held fixed.

    In all and at each source length. Sentences are compared with those of as many source words and
    as many targets alone, because longer ones have more of both.
    """

    needs = frozenset({"gold_alignment"})
    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic(
            CORRELATION, "Correlation of the largest coverage and errors", "", unit="r", low=-1.0
        ),
    )

    def __init__(self, config: CoverageErrorsConfig) -> None:
        super().__init__(config)
        self.fertility = config.fertility

    def measure(self, subject: Subject) -> list[Scored]:
        """Correlate over sentences; nothing where all are right or all are alike."""
        sentences = [
            one for seen in observations(subject) for one in self._sentences(subject, seen)
        ]
        found = _scored(sentences)
        for length in sorted({one.source for one in sentences}):
            found += _scored([one for one in sentences if one.source == length], length)
        return found

    def _sentences(self, subject: Subject, seen: Observation) -> Iterator[Sentence]:
        batch = seen.batch
        linked = (seen.gold > 0) & batch.mask[..., None]
        counts = linked.sum(1) >= self.fertility
        coverage = (seen.weights * batch.mask[..., None]).sum(1)
        highest = torch.where(counts, coverage, 0.0).amax(-1)
        asked = (linked & counts[:, None]).any(-1)
        missed = asked & (probabilities(subject, seen).argmax(-1) != batch.targets)
        errors = missed.sum(-1) / asked.sum(-1).clamp(min=1)
        lengths = zip(source_lengths(Answer(batch)), batch.mask.sum(-1).tolist(), strict=True)
        rows = zip(lengths, highest.tolist(), errors.tolist(), counts.any(-1).tolist(), strict=True)
        for (source, targets), covered, error, has_words in rows:
            if has_words:
                yield Sentence(source, targets, covered, error)


def _scored(sentences: list[Sentence], length: int | None = None) -> list[Scored]:
    """The correlation at a length, or over all; nothing where it is not defined."""
    coverage = _ranks_in_groups(sentences, [one.coverage for one in sentences])
    error = _ranks_in_groups(sentences, [one.error for one in sentences])
    size = float(np.sqrt((coverage**2).sum() * (error**2).sum()))
    if size < 1e-9:
        return []
    r = float((coverage * error).sum()) / size
    axis, x = ("", None) if length is None else ("length", float(length))
    return [Scored(metric=CORRELATION, value=max(-1.0, min(1.0, r)), axis=axis, x=x)]


def _ranks_in_groups(sentences: list[Sentence], values: list[float]) -> np.ndarray:
    """Ranks over all, ties sharing theirs, less the mean of each pair of lengths."""
    from scipy.stats import rankdata  # noqa: PLC0415  slow to import

    ranks = np.asarray(rankdata(np.round(values, 9)), dtype=float)
    groups = [(one.source, one.targets) for one in sentences]
    for group in set(groups):
        members = np.array([one == group for one in groups])
        ranks[members] -= ranks[members].mean()
    return ranks
