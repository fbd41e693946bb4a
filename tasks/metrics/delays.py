"""Delays: how long a model waits for its source."""

from collections.abc import Sequence

from bench.api.answer import Answer
from bench.api.metric import (
    AVERAGE_LAGGING,
    AVERAGE_PROPORTION,
    Scored,
)
from tasks.metrics.source_lengths import source_lengths

HEARD_BEFORE = (
    "Delays count what attention has read. Only search=streaming predicts words from that alone; "
    "under search=greedy the decoder starts from a summary of the whole source, unless it has "
    "summaries=none."
)
"""Caveat of tasks that compare delays of both kinds of network."""

WHOLE = 1 - 1e-6
"""Above this share the source has been read, rounding aside."""


def delay_scores(answers: Sequence[Answer], inside: int) -> list[Scored]:
    """How long a model waits for its source, averaged over sentences.

    Average lagging is that of Ma et al., 2019, https://arxiv.org/abs/1810.08398, equation 9;
    average proportion that of Cho & Esipova, 2016, https://arxiv.org/abs/1606.02012. Only
    attention is counted, as if the encoder were online.

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that is covered.
    """
    found = []
    for answer in answers:
        if answer.read_shares is None:
            continue
        for shares, length in zip(answer.read_shares, source_lengths(answer), strict=True):
            if shares and length <= inside:
                found.append(_delays(shares, length + 1))
    if not found:
        return []
    lagging = sum(row[0] for row in found) / len(found)
    proportion = sum(row[1] for row in found) / len(found)
    return [
        Scored(metric=AVERAGE_LAGGING.name, value=lagging),
        Scored(metric=AVERAGE_PROPORTION.name, value=proportion),
    ]


def _delays(shares: Sequence[float], length: int) -> tuple[float, float]:
    """Average lagging and proportion of one sentence with this many source tokens."""
    pace = length / len(shares)
    until = next((t for t, share in enumerate(shares, 1) if share > WHOLE), len(shares))
    behind = [shares[t] * length - t * pace for t in range(until)]
    return sum(behind) / until, sum(shares) / len(shares)
