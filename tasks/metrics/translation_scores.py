"""Scores of translations: BLEU, chrF, likelihood, and words that are repeated or left out.

BLEU and chrF come from sacreBLEU with their signatures. Repeated and omitted words are what Tu et
al., 2016, "Modeling coverage for neural machine translation", https://arxiv.org/abs/1601.04811,
call over- and under-translation. They are counted in the texts, so that every mechanism is judged
alike.
"""

from collections.abc import Sequence
from itertools import pairwise

from bench.api.answer import Answer
from bench.api.metric import Metric, Scored
from tasks.data.words import tokenize
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.text_scores import BLEU, dropped, repeated

CHRF = Metric(
    name="chrf",
    title="chrF",
    unit="sacreBLEU points",
    low=0.0,
    high=100.0,
    better="higher",
    margin=1.0,
)
NLL = Metric(
    name="nll_nats_per_token",
    title="Negative log likelihood",
    unit="nats per token",
    low=0.0,
    high=None,
    better="lower",
)
REPEATED = Metric(
    name="repeated_proportion",
    title="Word pairs said again",
    unit="fraction of word pairs said",
    low=0.0,
    high=1.0,
    better="lower",
    group="diagnostic",
)
MISSING = Metric(
    name="missing_proportion",
    title="Reference words left out",
    unit="fraction of reference words",
    low=0.0,
    high=1.0,
    better="lower",
    group="diagnostic",
)
LENGTH = Metric(
    name="length_proportion",
    title="Words said",
    unit="fraction of reference words",
    low=0.0,
    high=None,
    better="none",
    group="diagnostic",
)
TEXT_METRICS = (BLEU, CHRF, NLL, REPEATED, MISSING, LENGTH, ALIGNMENT_ENTROPY)

LENGTHS = (1, 9, 12, 16)
"""Shortest source of each part of the length curve (words at spaces)."""


def text_scores(
    said: Sequence[str], references: Sequence[str], *, lowercase: bool
) -> tuple[list[Scored], dict[str, str]]:
    """BLEU, chrF, repeated and omitted words, and the signatures of sacreBLEU.

    Raises:
        ValueError: The numbers of translations and references differ.
    """
    from sacrebleu.metrics import bleu, chrf  # noqa: PLC0415

    if len(said) != len(references):
        raise ValueError(f"{len(said)} translations for {len(references)} references")
    scorers = {BLEU.name: bleu.BLEU(lowercase=lowercase), CHRF.name: chrf.CHRF(lowercase=lowercase)}
    found, signatures = [], {}
    for name, scorer in scorers.items():
        value = scorer.corpus_score(said, [references]).score
        found.append(Scored(metric=name, value=value))
        signatures[name] = str(scorer.get_signature())
    return found + repeats_and_omissions(said, references), signatures


def corpus_bleu(said: Sequence[str], references: Sequence[str], *, lowercase: bool) -> float:
    """BLEU of a corpus (sacreBLEU points)."""
    from sacrebleu.metrics import bleu  # noqa: PLC0415

    return float(bleu.BLEU(lowercase=lowercase).corpus_score(said, [references]).score)


def bleu_by_length(
    said: Sequence[str], references: Sequence[str], sources: Sequence[str], *, lowercase: bool
) -> list[Scored]:
    """BLEU of sources of about equal length; x is the shortest length of a part (words)."""
    found = []
    for low, beyond in pairwise((*LENGTHS, 10**6)):
        chosen = [n for n, text in enumerate(sources) if low <= len(text.split()) < beyond]
        if chosen:
            value = corpus_bleu(
                [said[n] for n in chosen], [references[n] for n in chosen], lowercase=lowercase
            )
            found.append(Scored(metric=BLEU.name, value=value, axis="source_length", x=float(low)))
    return found


def repeats_and_omissions(said: Sequence[str], references: Sequence[str]) -> list[Scored]:
    """Bigrams generated more often than once and than in the reference; reference words left out.

    >>> found = repeats_and_omissions(["a dog a dog"], ["a dog runs"])
    >>> [round(one.value, 3) for one in found]
    [0.333, 0.333, 1.333]
    """
    counts = [0] * 5
    for text, reference in zip(said, references, strict=True):
        told, wanted = tokenize(text), tokenize(reference)
        for number, more in enumerate((*repeated(told, wanted), *dropped(told, wanted), len(told))):
            counts[number] += more
    again, pairs, missing, words, spoken = counts
    return [
        Scored(metric=REPEATED.name, value=again / max(1, pairs)),
        Scored(metric=MISSING.name, value=missing / max(1, words)),
        Scored(metric=LENGTH.name, value=spoken / max(1, words)),
    ]


def likelihood(answers: Sequence[Answer]) -> list[Scored]:
    """Negative log likelihood of a reference token; nothing where an output has none."""
    losses = [float(answer.nll.sum()) for answer in answers if answer.nll is not None]
    if len(losses) < len(answers):
        return []
    tokens = sum(int(answer.batch.mask.sum()) for answer in answers)
    return [Scored(metric=NLL.name, value=sum(losses) / tokens)]
