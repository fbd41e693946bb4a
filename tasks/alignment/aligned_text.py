"""Word-aligned sentences: what the alignment tasks share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.config import Config
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.alignment.word_aligners import BASELINE_PAIRS, diagonal, ibm_model_1, model_links
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.corpus import parts_note
from tasks.data.samples import every_nth
from tasks.data.tables import Row
from tasks.data.word_alignment import LanguagePair, load_word_alignment
from tasks.data.words import BOS, EOS, Vocabulary
from tasks.metrics.links import Links, error_rate, gold_links, hard_links, link_metrics, linked

ALIGNERS = tuple(
    Entry(variant=name)
    for name in ("additive", "bahdanau", "luong_local_p", "cohn_structural", "agreement_trace")
)
"""Comparison of the alignment tasks; a transformer is added by the task."""


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


@runtime_checkable
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
        self, config: Config, seed: int, data_dir: Path | None = None, *, pair: LanguagePair
    ) -> None:
        super().__init__(config, seed, data_dir)
        assert isinstance(config, AlignmentOptions), "tasks over links have these options"
        self.asked: AlignmentOptions = config
        table = load_word_alignment(pair, data_dir)
        self.notes["data"] = table.note
        short = [
            row
            for row in table.parts["train"]
            if max(len(row["source"]), len(row["target"])) <= config.longest
        ]
        if not short:
            raise InvalidConfig(
                f"longest={config.longest} leaves no pair of {pair} to train on; ask for more."
            )
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
                " ".join(f"{i}-{j}" for i, j in sorted(linked(gold))),
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
        return list(every_nth(rows, count))

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


def known_links(task: Task, answers: Sequence[Answer]) -> list[tuple[Links, Links]]:
    """Sure links and possible ones of the first test batches of any task with gold alignments.

    All are sure where a task does not distinguish the two.
    """
    if isinstance(task, AlignedText):
        return task.links("test", answers)
    return [(row, row) for answer in answers for row in gold_links(answer.batch)]


def _turned(row: Row) -> Row:
    """Links of a source that is read backwards; its end stays last."""
    last = len(row["source"]) - 1
    turned = {name: [(last - i, j) for i, j in row[name]] for name in ("sure", "possible")}
    return {**row, **turned}
