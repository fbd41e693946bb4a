"""A task: seeded examples, metrics with units, a place for attention; it never sees the variant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.config import Config
from bench.api.facts import Fact

Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Text:
    """One source sequence a row."""

    tokens: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"] | None
    """True where a token is real; None where nothing is padded."""
    segments: Int[Tensor, "B S"] | None = None
    """Number of each token's sentence, where sentences matter; another number begins another."""


@dataclass(frozen=True)
class Batch:
    """Examples in tensors; what a backbone reads and an output is scored on."""

    sources: tuple[Text, ...]
    """Sequences to attend to; empty for decoder-only tasks."""
    inputs: Int[Tensor, "B T"]
    """Decoder inputs under teacher forcing; copied words appear as UNK."""
    targets: Int[Tensor, "B T"]
    """What to predict, in the extended vocabulary."""
    mask: Bool[Tensor, "B T"]
    """True where a target is scored."""
    extended: Int[Tensor, "B S"] | None = None
    """The first source in the extended vocabulary, for copying."""
    num_extra: int = 0
    """X, ids beyond the vocabulary that this batch's sources add."""
    gold: Float[Tensor, "B T S"] | None = None
    """Gold alignment, rows sum to one or to zero (no link)."""
    references: tuple[str, ...] = ()
    """Target texts, for metrics that score text."""
    names: tuple[str, ...] = ()
    """Source texts, for samples."""
    features: Float[Tensor, "B R F"] | None = None
    """What an example has beside its words: R vectors, such as regions of an image."""
    beside: tuple[int, int] = (0, 0)
    """Columns of `gold` before and behind those of the words; a backbone's `arrange` sets it."""
    stride: int = 1
    """Tokens of the first source for each column of `gold`; a backbone's `arrange` sets it."""
    arranged: bool = False
    """Whether a backbone has put source, gold and extended ids in the order of its states."""

    def folded(self, stride: int) -> "Batch":
        """The same batch for source states that stand for several tokens each.

        A state has the gold of all its tokens, so rows still sum to one; no word has a state of
        its own any more, so there is nothing to copy.
        """
        gold = self.gold
        if gold is not None:
            filled = functional.pad(gold, (0, -gold.shape[2] % stride))
            gold = filled.unflatten(2, (-1, stride)).sum(-1)
        return replace(self, gold=gold, extended=None, stride=self.stride * stride)

    def with_beside(self, before: int, behind: int) -> "Batch":
        """The same batch for sources with states before and behind their words, aligned with none.

        What stands behind follows each row's last word, so that columns of words stay.
        """
        gold = None if self.gold is None else functional.pad(self.gold, (before, behind))
        return replace(self, gold=gold, extended=None, beside=(before, behind))

    def state_mask(self) -> Bool[Tensor, "B S"]:
        """Which states of the first source are real, once the batch has been arranged."""
        text = self.sources[0]
        mask = torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask
        if self.stride == 1 and self.beside == (0, 0):
            return mask
        tokens = mask.sum(1, keepdim=True) + sum(self.beside)
        width = mask.shape[1] + sum(self.beside)
        places = torch.arange(-(-width // self.stride), device=mask.device)
        return places * self.stride < tokens

    def joined(self) -> "Batch":
        """The same batch for sources that are read as one, the others behind the first."""
        gold = self.gold
        if gold is not None:
            beside = sum(text.tokens.shape[1] for text in self.sources[1:])
            gold = functional.pad(gold, (0, beside))
        return replace(self, gold=gold, extended=None)

    def select(self, rows: Int[Tensor, " N"]) -> "Batch":
        """Pick rows, for beams."""

        def pick(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.index_select(0, rows)

        chosen = rows.tolist()
        return replace(
            self,
            sources=tuple(
                Text(text.tokens.index_select(0, rows), pick(text.mask)) for text in self.sources
            ),
            inputs=self.inputs.index_select(0, rows),
            targets=self.targets.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
            extended=pick(self.extended),
            gold=pick(self.gold),
            features=pick(self.features),
            references=tuple(self.references[row] for row in chosen if self.references),
            names=tuple(self.names[row] for row in chosen if self.names),
        )

    def to(self, device: torch.device) -> "Batch":
        """Move every tensor."""

        def move(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.to(device)

        sources = tuple(
            Text(text.tokens.to(device), move(text.mask), move(text.segments))
            for text in self.sources
        )
        return replace(
            self,
            sources=sources,
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            mask=self.mask.to(device),
            extended=move(self.extended),
            gold=move(self.gold),
            features=move(self.features),
        )


class Sizes(NamedTuple):
    """What a backbone must know of a task to make its layers."""

    source_vocabs: tuple[int, ...]
    """Vocabulary of each source; empty for decoder-only tasks."""
    target_vocab: int
    """V."""
    max_length: int
    """Longest sequence that any split holds, source or target."""
    bos: int = 1
    eos: int = 2
    unk: int = 3


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What a number is."""

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower", "none"]
    group: Literal["quality", "speed", "memory", "size", "diagnostic"] = "quality"


AVERAGE_LAGGING = Metric(
    name="average_lagging",
    title="Average lagging",
    unit="source tokens",
    better="lower",
    group="diagnostic",
)
AVERAGE_PROPORTION = Metric(
    name="average_proportion",
    title="Average proportion read",
    unit="fraction of the source",
    better="lower",
    group="diagnostic",
)
DELAYS = (AVERAGE_LAGGING, AVERAGE_PROPORTION)
"""Given by tasks that answer word by word, where attention says how far it has read; no task
declares them, for most attention reads everything and says nothing."""


SELECTION_MATCH = Metric(
    name="selection_match",
    title="Selected tokens that are aligned",
    unit="fraction of selected tokens",
    better="higher",
    group="diagnostic",
)
SELECTED_PROPORTION = Metric(
    name="selected_proportion",
    title="Selected tokens",
    unit="fraction of source tokens",
    better="none",
    group="diagnostic",
)
SELECTIONS = (SELECTION_MATCH, SELECTED_PROPORTION)
"""Given by tasks with gold alignments where an encoder selects tokens; like the delays, no task
declares them."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One value of one metric, possibly at a place on an axis."""

    metric: str
    value: float
    axis: str = ""
    x: float | None = None


@dataclass(frozen=True)
class Answer:
    """What a model said to one batch."""

    batch: Batch
    predicted: Int[Tensor, "B T"] | None = None
    """Best token at every target under teacher forcing."""
    nll: Float[Tensor, "B T"] | None = None
    """Negative log likelihood of the targets (nats), zero where not scored; None where the output
    has no factor per token."""
    generated: tuple[tuple[int, ...], ...] | None = None
    """Decoded output without EOS, where the task decodes."""
    weights: Float[Tensor, "B T S"] | None = None
    """Attention under teacher forcing, averaged over heads."""
    read_shares: tuple[tuple[float, ...], ...] | None = None
    """Share of the source read before each word of a row, EOS included: of the greedy output where
    the task decodes, else of the target. None where attention does not say how far it has read."""
    selected: Float[Tensor, "B S"] | None = None
    """One at tokens of the first source that the encoder selected, where it selects."""

    def words(self) -> list[list[int]]:
        """What was said of every row: under teacher forcing where scored, or else greedily."""
        if self.predicted is None:
            return [list(row) for row in self.generated or ()]
        pairs = zip(self.predicted, self.batch.mask, strict=True)
        return [row[kept].tolist() for row, kept in pairs]


class Sample(NamedTuple):
    """One example for a reader of the report."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True, kw_only=True)
class TaskPreset:
    """How big a task is under one preset."""

    options: str
    """Task options as a selector of the same name, `transduction[max_length=8]`."""
    backbone: str
    """Backbone selector."""
    protocol: str
    """Training selector, `adam[...]`."""
    seconds: float
    """CPU seconds of one cell of an ordinary variant on the reference machine."""


class Task:
    """Base of all tasks; one subclass a file, registered with `register("task", ...)`."""

    metrics: ClassVar[tuple[Metric, ...]]
    """The first one ranks."""
    facts: ClassVar[frozenset[Fact]] = frozenset()
    """What the task provides: `gold_alignment`, `source_tokens`, `reversible_pairs` ..."""
    presets: ClassVar[Mapping[str, TaskPreset]]
    """Sizes and backbones by preset name: `smoke`, `quick`, `standard`."""
    decodes: bool = False
    """Whether scoring needs decoded output, not only teacher forcing."""
    needs_predictions: ClassVar[bool] = True
    """Whether scoring looks at the best word of every target under teacher forcing."""
    ranks_tokens: ClassVar[bool] = False
    """Whether the first metric is about single words, which not every output predicts."""
    data_license: ClassVar[str] = "open (generated)"
    needs_download: ClassVar[bool] = False
    """Whether the data do not ship with the bench or a library."""
    sizes: Sizes
    chance: float | None = None
    """Value of the first metric without learning."""
    ceiling: float | None = None
    """Value of the first metric at which nothing more can be learned."""

    def __init__(self, config: Config, seed: int, data_dir: Path | None = None) -> None:
        """Make or load the data; a subclass calls this first.

        Args:
            config: Options.
            seed: Of the cell; draws generated data.
            data_dir: A local mirror, or None for the environment's.

        Raises:
            DataUnavailable: The data are not on this machine; the message says how to get them.
        """
        self.notes: dict[str, str] = {}
        """Facts a report prints beside the numbers: metric signatures, data hashes."""

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless batches in a seeded order."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """The fixed batches of a split; `test` may hold lengths beyond the training range."""
        raise NotImplementedError

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Values of the metrics over a split."""
        raise NotImplementedError

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Some examples to show."""
        return []

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Names of token ids, for figures."""
        return [str(number) for number in ids]
