"""Word-aligned sentences: words, links, error rates and baselines of alignment tasks.

The alignment error rate is that of Och & Ney, 2003, "A systematic comparison of various statistical
alignment models", https://aclanthology.org/J03-1002, section 3. A hard alignment links every target
word with the source word of its largest weight under teacher forcing, and with none where that is
the end of the sentence or where no single word has the largest weight. Weights may belong to the
word that comes next: the weights with which a word was read as input are scored beside those with
which it was predicted (Chen et al., 2020, "Accurate word alignment induction from neural machine
translation", https://arxiv.org/abs/2004.14837).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.corpus import parts_note
from tasks.data.tables import Row
from tasks.data.word_alignment import LanguagePair, load_word_alignment
from tasks.data.words import BOS, EOS, Vocabulary
from tasks.metrics.scores import ALIGNMENT_MATCH, strongest

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

ALIGNERS = tuple(
    Entry(variant=name)
    for name in ("additive", "bahdanau", "luong_local_p", "cohn_structural", "agreement_trace")
)
"""Comparison of the alignment tasks; a transformer is added by the task."""

OFF_BY = range(4)
"""Distances of the curve (source words)."""

Links = set[tuple[int, int]]
"""Positions of source and target words that belong together."""


def teachers(task: str) -> tuple[Entry, ...]:
    """Unsupervised attention, three weights of the supervised loss, and noisy links."""
    return (
        Entry(variant="additive"),
        Entry(variant="supervised_attention"),
        Entry(variant="supervised_attention[weight=0.1]"),
        Entry(variant="supervised_attention[weight=10.0]"),
        Entry(variant="supervised_attention", task=f"{task}[noise=0.3]"),
        Entry(variant="agreement_trace"),
    )


class AlignmentOptions(Protocol):
    """Options that every task over word-aligned sentences has."""

    @property
    def vocab(self) -> int:
        """Words of each language."""

    @property
    def longest(self) -> int:
        """Longest training sentence."""

    @property
    def train(self) -> int:
        """Training pairs."""


class AlignedText(Task):
    """Sentence pairs as words; test pairs have gold links, training pairs where there are some."""

    capabilities = frozenset({"gold_alignment", "reversible_pairs"})
    needs_download = True
    data_sets: ClassVar[tuple[str, ...]] = ("word_alignment",)
    chance = 1.0
    ceiling = 0.0

    def __init__(
        self, config: Any, seed: int, data_dir: Path | None = None, *, pair: LanguagePair
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.asked: AlignmentOptions = config
        table = load_word_alignment(pair, data_dir)
        self.notes["data"] = table.note
        short = [
            row
            for row in table.parts["train"]
            if max(len(row["source"]), len(row["target"])) <= config.longest
        ]
        self.note_fewer("train", config.train, len(short))
        self.rows = {**table.parts, "train": tuple(short[: config.train or None])}
        self.notes["parts"] = parts_note(self.rows)
        self.source_words, self.target_words = (
            Vocabulary.count((row[side] for row in self.rows["train"]), config.vocab, least=2)
            for side in ("source", "target")
        )
        self.coded = [self._code(row) for row in self.rows["train"]]
        longest = max(
            len(row[side]) for part in self.rows.values() for row in part for side in _SIDES
        )
        self.sizes = Sizes((len(self.source_words),), len(self.target_words), longest + 1)
        self._evaluation: dict[str, list[Batch]] = {}
        self._order: dict[str, list[Row]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        lengths = [(len(target), len(source)) for source, target, _ in self.coded]
        while True:
            for chosen in bucketed_batches(lengths, batch_size, generator):
                yield aligned_batch([self.coded[place] for place in chosen])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """All pairs of a split, sentences of about equal length together."""
        if split not in self._evaluation:
            rows = sorted(self.rows[split], key=lambda row: len(row["target"]))
            self._order[split] = rows
            self._evaluation[split] = [
                self._fixed(rows[at : at + 64]) for at in range(0, len(rows), 64)
            ]
        return self._evaluation[split]

    def link_scores(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Error rate, precision and recall of hard links, and how far off they are.

        Nothing where the weights are not over the words of the source, one weight per word.
        """
        if any(answer.weights is None or answer.batch.stride > 1 for answer in answers):
            return []
        found = [links for answer in answers for links in hard_links(answer, 0)]
        later = [links for answer in answers for links in hard_links(answer, 1)]
        return link_metrics(found, later, self.links(split, answers))

    def links(self, split: Split, answers: Sequence[Answer]) -> list[tuple[Links, Links]]:
        """Sure links and possible ones of each row of the first batches of a split.

        Rows are reversed where the backbone reverses its source.
        """
        turned = []
        batches = self.evaluation(split)[: len(answers)]
        for answer, batch in zip(answers, batches, strict=True):
            same = torch.equal(answer.batch.sources[0].tokens, batch.sources[0].tokens)
            turned += [not same] * len(batch.targets)
        rows = [
            _turned(row) if other else row
            for row, other in zip(self._order[split][: len(turned)], turned, strict=True)
        ]
        return [(set(row["sure"]), set(row["possible"])) for row in rows]

    def baselines(self) -> Mapping[str, float]:
        """Error rate of the diagonal, and of IBM model 1 where there are pairs to count."""
        self.evaluation("test")
        rows = self._order["test"]
        gold = [(set(row["sure"]), set(row["possible"])) for row in rows]
        model = ibm_model_1([(s, t) for s, t, _ in self.coded[:BASELINE_PAIRS]])
        coded = [self._code(row) for row in rows]
        told = [model_links(model, source[:-1], target[:-1]) for source, target, _ in coded]
        straight = [diagonal(len(row["source"]), len(row["target"])) for row in rows]
        return {"diagonal": error_rate(straight, gold)[0], "IBM model 1": error_rate(told, gold)[0]}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th sentence with its gold links and those found, as source-target words."""
        rows = [
            Sample(
                f"{name} ||| {reference}",
                " ".join(f"{i}-{j}" for i, j in sorted(_linked(gold))),
                " ".join(f"{i}-{j}" for i, j in sorted(links)),
            )
            for answer in answers
            if answer.weights is not None and answer.batch.gold is not None
            for name, reference, gold, links in zip(
                answer.batch.names,
                answer.batch.references,
                answer.batch.gold,
                hard_links(answer, 0),
                strict=True,
            )
        ]
        return rows[:: max(1, len(rows) // max(1, count))][:count]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words."""
        return (self.source_words if source else self.target_words).decode(ids)

    def own(self, pairs: Iterable[tuple[str, str]]) -> Batch:
        """Sentences written by us, words at spaces, without links."""
        rows = [
            {"source": source.split(), "target": target.split(), "sure": [], "possible": []}
            for source, target in pairs
        ]
        return self._fixed(rows)

    def _code(self, row: Row) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        source = [*self.source_words.encode(row["source"]), EOS]
        return source, [*self.target_words.encode(row["target"]), EOS], list(row["sure"])

    def _fixed(self, rows: Sequence[Row]) -> Batch:
        return aligned_batch(
            [self._code(row) for row in rows],
            tuple(" ".join(row["target"]) for row in rows),
            tuple(" ".join(row["source"]) for row in rows),
        )


_SIDES = ("source", "target")
BASELINE_PAIRS = 5000
"""Largest number of training pairs for IBM model 1; more of them take seconds."""


def aligned_batch(
    rows: Sequence[tuple[list[int], list[int], list[tuple[int, int]]]],
    references: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
) -> Batch:
    """Pad pairs; a target with several links shares one among them."""
    source, real = pad_rows([source for source, _, _ in rows])
    targets, mask = pad_rows([target for _, target, _ in rows])
    gold = torch.zeros(*targets.shape, source.shape[1])
    for number, (_, _, links) in enumerate(rows):
        if links:
            i, j = torch.tensor(links).T
            gold[number, j, i] = 1.0
    gold = gold / gold.sum(-1, keepdim=True).clamp(min=1.0)
    inputs = torch.cat((torch.full((len(rows), 1), BOS), targets[:, :-1]), 1)
    return Batch(
        sources=(Text(source, None if bool(real.all()) else real),),
        inputs=inputs,
        targets=targets,
        mask=mask,
        gold=gold,
        references=references,
        names=names,
    )


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


def known_links(task: Task, answers: Sequence[Answer]) -> list[tuple[Links, Links]]:
    """Sure links and possible ones of the first test batches of any task with gold alignments.

    All are sure where a task does not distinguish the two.
    """
    if isinstance(task, AlignedText):
        return task.links("test", answers)
    return [(row, row) for answer in answers for row in gold_links(answer.batch)]


def gold_links(batch: Batch) -> list[Links]:
    """Gold links of each row, but for those of an EOS."""
    assert batch.gold is not None, "the task has gold alignments"
    return _of_words(batch, [_linked(row) for row in batch.gold])


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
    """Links of columns to targets as links of words: those of an EOS are none.

    Neither are those of padding and of states that are not words. A target alone is an answer, such
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


def diagonal(source: int, target: int) -> Links:
    """Each target word with the source word at the same share of the sentence."""
    return {(min(source - 1, round(j * source / target)), j) for j in range(target)}


def ibm_model_1(
    pairs: Sequence[tuple[list[int], list[int]]], rounds: int = 5
) -> dict[tuple[int, int], float]:
    """p(target word | source word) by expectation maximization, after Brown et al., 1993.

    https://aclanthology.org/J93-2003, section 4.1. The end of the source is the null word.
    """
    if not pairs:
        return {}
    sources, targets, rows, base = [], [], [], 0
    for source, target in pairs:
        known = np.asarray(source)
        said = np.asarray(target[:-1], dtype=np.int64)
        sources.append(np.tile(known, len(said)))
        targets.append(np.repeat(said, len(known)))
        rows.append(np.repeat(base + np.arange(len(said)), len(known)))
        base += len(said)
    source_of, target_of, row = (np.concatenate(one) for one in (sources, targets, rows))
    wide = int(target_of.max()) + 1
    keys, cell = np.unique(source_of.astype(np.int64) * wide + target_of, return_inverse=True)
    chance = np.ones(len(keys))
    for _ in range(rounds):
        share = chance[cell]
        share /= np.bincount(row, share, base)[row]
        counts = np.bincount(cell, share, len(keys))
        chance = counts / np.bincount(keys // wide, counts)[keys // wide]
    return {
        (int(key // wide), int(key % wide)): float(p) for key, p in zip(keys, chance, strict=True)
    }


def model_links(
    model: Mapping[tuple[int, int], float], source: Sequence[int], target: Sequence[int]
) -> Links:
    """The likeliest source word of each target word; ties go to the one nearest the diagonal."""
    found = set()
    for j, word in enumerate(target):
        straight = j * len(source) / len(target)
        best = max(
            range(len(source)),
            key=lambda i: (model.get((source[i], word), 0.0), -abs(i - straight)),
        )
        if model.get((source[best], word), 0.0) >= model.get((EOS, word), 0.0):
            found.add((best, j))
    return found


def _linked(gold: Float[Tensor, "T S"]) -> Links:
    return {(int(i), int(j)) for j, i in (gold > 0).nonzero().tolist()}


def _turned(row: Row) -> Row:
    """Links of a source that is read backwards; its end stays last."""
    last = len(row["source"]) - 1
    turned = {name: [(last - i, j) for i, j in row[name]] for name in ("sure", "possible")}
    return {**row, **turned}
