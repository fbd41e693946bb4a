"""Scores of links between words, and the links that attention weights make.

The alignment error rate is that of Och & Ney, 2003, "A systematic comparison of various statistical
alignment models", https://aclanthology.org/J03-1002, section 3. A hard alignment links every target
word with the source word of its largest weight under teacher forcing, and with none where that is
the end of the sentence or where no single word has the largest weight. Weights may belong to the
word that comes next: the weights with which a word was read as input are scored beside those with
which it was predicted (Chen et al., 2020, "Accurate word alignment induction from neural machine
translation", https://arxiv.org/abs/2004.14837).
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.metric import Metric, Scored
from tasks.data.words import EOS
from tasks.metrics.attention_scores import ALIGNMENT_MATCH, strongest

AER = Metric(
    name="alignment_error_proportion",
    title="Alignment error rate",
    unit="fraction of links",
    low=0.0,
    high=1.0,
    better="lower",
)
SHIFTED_AER = Metric(
    name="shifted_alignment_error_proportion",
    title="Alignment error rate of the weights one step later",
    unit="fraction of links",
    low=0.0,
    high=1.0,
    better="lower",
    group="diagnostic",
)
PRECISION = Metric(
    name="link_precision_proportion",
    title="Links that are possible",
    unit="fraction of links found",
    low=0.0,
    high=1.0,
    better="higher",
)
RECALL = Metric(
    name="link_recall_proportion",
    title="Sure links that are found",
    unit="fraction of sure links",
    low=0.0,
    high=1.0,
    better="higher",
)
LINK_METRICS = (AER, PRECISION, RECALL, ALIGNMENT_MATCH, SHIFTED_AER)

OFF_BY = range(4)
"""Distances of the curve (source words)."""

Links = set[tuple[int, int]]
"""Positions of source and target words that belong together."""


def link_metrics(
    found: Sequence[Links], later: Sequence[Links], gold: Sequence[tuple[Links, Links]]
) -> list[Scored]:
    """Values of `LINK_METRICS`, and the share of links by how far off they are.

    Args:
        found: Of each sentence.
        later: The same, of the weights one step later.
        gold: Sure links, and possible ones.
    """
    error, precision, recall = error_rate(found, gold)
    shifted, *_ = error_rate(later, gold)
    near = off_by(found, [sure for sure, _ in gold])
    return [
        Scored(metric=AER.name, value=error),
        Scored(metric=PRECISION.name, value=precision),
        Scored(metric=RECALL.name, value=recall),
        Scored(metric=ALIGNMENT_MATCH.name, value=near[0]),
        Scored(metric=SHIFTED_AER.name, value=shifted),
        *(
            Scored(metric=ALIGNMENT_MATCH.name, value=value, axis="off_by", x=float(far))
            for far, value in zip(OFF_BY, near, strict=True)
        ),
    ]


def gold_links(batch: Batch) -> list[Links]:
    """Gold links of each row, without those of an EOS."""
    assert batch.gold is not None, "the task has gold alignments"
    return _of_words(batch, [linked(row) for row in batch.gold])


def hard_links(answer: Answer, later: int) -> list[Links]:
    """The source word of the largest weight for each target word but EOS, by row.

    A target word whose largest weight is at several positions, or is zero, has no link.

    Args:
        answer: With weights.
        later: Steps after the one that predicts the word; 1 takes those with which it is read.
    """
    assert answer.weights is not None, "links are read off weights"
    best, points = strongest(answer.weights[:, later:])
    rows = zip(best.tolist(), points.tolist(), strict=True)
    told = [{(i, j) for j, i in enumerate(places) if single[j]} for places, single in rows]
    return _of_words(answer.batch, told)


def _of_words(batch: Batch, found: Sequence[Links]) -> list[Links]:
    """Links of columns to targets as links of words; an EOS has no links.

    Padding and states that are not words have none either. A target alone is an answer, such
    as a label, whatever its number.
    """
    there = batch.mask
    if there.shape[1] > 1:
        there = there & (batch.targets != EOS)
    told = there.tolist()
    if not batch.sources or batch.stride > 1:
        return [{(i, j) for i, j in row if told[n][j]} for n, row in enumerate(found)]
    text, (before, _) = batch.sources[0], batch.beside
    here = text.tokens != EOS
    read = (here if text.mask is None else here & text.mask).tolist()
    return [
        {
            (i - before, j)
            for i, j in row
            if 0 <= i - before < len(read[n]) and read[n][i - before] and told[n][j]
        }
        for n, row in enumerate(found)
    ]


def error_rate(
    found: Sequence[Links], gold: Sequence[tuple[Links, Links]]
) -> tuple[float, float, float]:
    """1 - (|A and S| + |A and P|) / (|A| + |S|), |A and P| / |A| and |A and S| / |S|.

    >>> error_rate([{(0, 0), (1, 1)}], [({(0, 0)}, {(0, 0), (2, 1)})])
    (0.33333333333333337, 0.5, 1.0)
    """
    links = sum(len(one) for one in found)
    sure = sum(len(one) for one, _ in gold)
    hit = sum(len(one & certain) for one, (certain, _) in zip(found, gold, strict=True))
    near = sum(len(one & possible) for one, (_, possible) in zip(found, gold, strict=True))
    if not links or not sure:
        return 1.0, 0.0, 0.0
    return 1 - (hit + near) / (links + sure), near / links, hit / sure


def off_by(found: Sequence[Links], sure: Sequence[Links]) -> list[float]:
    """Share of target words with a sure link whose own link is at most 0, 1, ... words away."""
    counts, total = [0] * len(OFF_BY), 0
    for links, certain in zip(found, sure, strict=True):
        told = {j: i for i, j in links}
        wanted: dict[int, list[int]] = {}
        for i, j in certain:
            wanted.setdefault(j, []).append(i)
        total += len(wanted)
        for j, places in wanted.items():
            if j in told:
                away = min(abs(told[j] - place) for place in places)
                for far in OFF_BY:
                    counts[far] += away <= far
    return [count / max(1, total) for count in counts]


def linked(gold: Float[Tensor, "T S"]) -> Links:
    """Positions of source and target words with a gold weight above zero."""
    return {(int(i), int(j)) for j, i in (gold > 0).nonzero().tolist()}
