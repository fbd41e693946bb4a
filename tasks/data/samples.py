"""Samples of decoded texts, for reports."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bench.api.answer import Answer, Sample

T = TypeVar("T")


def every_nth(rows: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` rows, evenly spread over all of them.

    >>> every_nth([0, 1, 2, 3, 4, 5, 6], 4)
    [0, 1, 3, 5]
    """
    taken = min(count, len(rows))
    return [rows[at * len(rows) // taken] for at in range(taken)]


def decoded_samples(
    answers: Sequence[Answer], count: int, text: Callable[[Sequence[int]], str]
) -> list[Sample]:
    """Every n-th input with its reference and the text that was decoded.

    Args:
        answers: Decoded batches; the order of the rows is that of the batches.
        count: Samples at most.
        text: From ids of target words to a text.
    """
    rows = [
        Sample(name, reference, text(said))
        for answer in answers
        for name, reference, said in zip(
            answer.batch.names, answer.batch.references, answer.generated or (), strict=True
        )
    ]
    return list(every_nth(rows, count))
