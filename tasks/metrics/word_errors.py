"""Word error rate of spoken words."""

from collections.abc import Sequence

from bench.api.metric import Metric

WORD_ERROR_RATE = Metric(
    name="word_error_rate",
    title="Word error rate",
    unit="errors per reference word",
    low=0.0,
    high=None,
    better="lower",
    margin=0.05,
)


def word_error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Errors of pairs (reference, said), all references together."""
    import jiwer  # noqa: PLC0415 - half a second to import

    references, said = zip(*pairs, strict=True)
    return float(jiwer.wer(list(references), list(said)))
