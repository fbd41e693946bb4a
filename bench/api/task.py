"""A task: seeded examples, metrics with units, a place for attention; it never sees the variant."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.capabilities import Capability
from bench.api.config import Config
from bench.api.selector import Selector, parse

Split = Literal["train", "validation", "test"]
NOT_A_WORD = "▣"
"""Stands for a state that belongs to a picture or the like."""


@dataclass(frozen=True)
class Text:
    """One source sequence a row."""

    tokens: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"] | None
    """True where a token is real; None where nothing is padded."""
    segments: Int[Tensor, "B S"] | None = None
    """Number of each token's sentence, where sentences matter; another number begins another."""
    frames: Float[Tensor, "B S F"] | None = None
    """What stands at each place instead of a word: a patch of an image, a window of sound, some
    numbers. `tokens` then only tell how many places there are."""
    grid: tuple[int, int] | None = None
    """Rows and columns where the places are a picture, row by row."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "Text":
        """Apply a function to every tensor."""

        def maybe(x: Tensor | None) -> Tensor | None:
            return None if x is None else function(x)

        return replace(
            self,
            tokens=function(self.tokens),
            mask=maybe(self.mask),
            segments=maybe(self.segments),
            frames=maybe(self.frames),
        )


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
    values: Float[Tensor, "B T K"] | None = None
    """Numbers to predict in the place of words, for tasks that regress."""
    frames: Float[Tensor, "B T F"] | None = None
    """What comes beside each decoder input, for tasks without a source: an image, some numbers."""
    references: tuple[str, ...] = ()
    """Target texts, for metrics that score text."""
    names: tuple[str, ...] = ()
    """Source texts, for samples."""
    extra_words: tuple[tuple[str, ...], ...] = ()
    """Words of each row's ids beyond the vocabulary: id V + i is word i of its row."""
    features: Float[Tensor, "B R F"] | None = None
    """What an example has beside its words: R vectors, such as regions of an image."""
    features_gold: Float[Tensor, "B T R"] | None = None
    """Gold alignment with the features; a row of it and the same row of `gold` sum to one together,
    or to zero. A backbone's `arrange` puts it into `gold`, where features are attended to."""
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

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Apply a function to every tensor; texts stay as they are."""

        def maybe(x: Tensor | None) -> Tensor | None:
            return None if x is None else function(x)

        return replace(
            self,
            sources=tuple(text.map(function) for text in self.sources),
            inputs=function(self.inputs),
            targets=function(self.targets),
            mask=function(self.mask),
            extended=maybe(self.extended),
            gold=maybe(self.gold),
            features=maybe(self.features),
            features_gold=maybe(self.features_gold),
            values=maybe(self.values),
            frames=maybe(self.frames),
        )

    def select(self, rows: Int[Tensor, " N"]) -> "Batch":
        """Pick rows, for beams and for losses that want several copies."""
        chosen = rows.tolist()
        return replace(
            self.map(lambda x: x.index_select(0, rows)),
            references=tuple(self.references[row] for row in chosen if self.references),
            names=tuple(self.names[row] for row in chosen if self.names),
            extra_words=tuple(self.extra_words[row] for row in chosen if self.extra_words),
        )

    def to(self, device: torch.device) -> "Batch":
        """Move every tensor."""
        return self.map(lambda x: x.to(device))


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
    source_frames: tuple[int, ...] = ()
    """F of each source that has frames, 0 for one of words; empty where all have words."""
    input_frames: int = 0
    """F of the frames beside decoder inputs; 0 where there are none."""
    features: int = 0
    """F of the features beside the words; 0 where there are none."""

    def frames_of(self, source: int) -> int:
        """F of one source; 0 where it has words."""
        return self.source_frames[source] if self.source_frames else 0


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
    values: Float[Tensor, "B T K"] | None = None
    """Predicted numbers, where the task regresses."""

    def words(self) -> list[list[int]]:
        """What was said of every row: under teacher forcing where scored, or else greedily."""
        if self.predicted is None:
            return [list(row) for row in self.generated or ()]
        pairs = zip(self.predicted, self.batch.mask, strict=True)
        return [row[kept].tolist() for row, kept in pairs]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a comparison that a task proposes; only the planner reads it."""

    variant: str
    """Variant selector."""
    backbone: str = ""
    """Backbone selector; empty for that of the task's size."""
    slot: str = ""
    """Slot of the backbone; empty for its main one."""
    task: str = ""
    """Task selector with other options, for controls such as a shuffled source; empty for none."""


@dataclass(frozen=True, kw_only=True)
class PublishedResult:
    """A published number that stands beside ours."""

    what: str
    """Model, data and setting, as published."""
    metric: str
    """Name of the metric here."""
    value: float
    text: str
    """Authors and year."""
    url: str
    where: str
    """Table or section."""
    differs: str
    """How data, size and training differ from ours, in one sentence."""
    about: str = ""
    """Task selector with the options that the number is about, `word_alignment[pair=ja_en]`;
    empty where it may stand beside every run of the task."""

    def holds_for(self, task: Selector) -> bool:
        """Whether the number may stand beside a run of this task, whose defaults are written out.

        >>> english = PublishedResult(
        ...     what="", metric="bleu", value=1.0, text="", url="", where="", differs="",
        ...     about="translation[target=en]",
        ... )
        >>> english.holds_for(parse("translation[source=de,target=en]"))
        True
        >>> english.holds_for(parse("translation[source=en,target=de]"))
        False
        """
        if not self.about:
            return True
        asked = parse(self.about)
        there = {key: task.options.get(key) for key in asked.options}
        return asked.name == task.name and there == asked.options


class Picture(NamedTuple):
    """What weights can be laid over."""

    gray: list[list[float]]
    """Brightness from 0 to 1, row by row."""
    grid: tuple[int, int]
    """Rows and columns of places that the weights belong to, row by row."""


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


SEEN = "seen in training"
"""Note on examples of the test that training has seen."""

GENERATED = "open (generated)"
"""Terms of data that are drawn here, by rule."""
FEWER = "fewer rows"
"""Note that says which parts have fewer rows than the options ask for."""


class Task:
    """Base of all tasks; one subclass a file, registered with `register("task", ...)`."""

    metrics: ClassVar[tuple[Metric, ...]]
    """The first one ranks."""
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    """What the task provides: `gold_alignment`, `source_tokens`, `reversible_pairs` ..."""
    presets: ClassVar[Mapping[str, TaskPreset]]
    """Sizes and backbones by preset name: `smoke`, `quick`, `standard`."""
    decodes: bool = False
    """Whether scoring needs decoded output, not only teacher forcing."""
    needs_predictions: ClassVar[bool] = True
    """Whether scoring looks at the best word of every target under teacher forcing."""
    ranks_tokens: ClassVar[bool] = False
    """Whether the first metric is about single words, which not every output predicts."""
    family: ClassVar[str] = ""
    """The use of attention that the task stands for, `image captioning`; members share it."""
    comparison: ClassVar[tuple[Entry, ...]] = ()
    """Mechanisms that are worth comparing here; the planner adds controls and baseline."""
    published_results: ClassVar[tuple[PublishedResult, ...]] = ()
    ablated_inputs: ClassVar[tuple[str, ...]] = ()
    """Options that take away from what a network is given and leave the question as it is, so that
    scores compare across them: `read` and `shuffle` of tasks with two sources."""
    regresses: ClassVar[bool] = False
    """Whether `Batch.values` are predicted, not words."""
    data_sets: ClassVar[tuple[str, ...]] = ()
    """What it reads, by the names of the data directory's folders; nothing where it generates its
    data or takes them from a library."""
    data_license: ClassVar[str] = GENERATED
    seen_in_training: ClassVar[str] = ""
    """What of its test training has seen too, and what tells learning from memory all the same;
    a sentence for the page of tasks and the report, empty where there is nothing to say."""
    written_example: ClassVar[tuple[str, str]] = ("", "")
    """Source and target of the first example of `showcase`, for pages that are made where the data
    are not; empty where the data are in every data directory."""
    needs_download: ClassVar[bool] = False
    """Whether the data do not ship with the bench or a library."""
    sizes: Sizes
    chance: float | None = None
    """Value of the first metric without learning; no constant answer has a better one."""
    ceiling: float | None = None
    """Value of the first metric at which nothing more can be learned."""

    def __init__(self, config: Config, seed: int, data_dir: Path | None = None) -> None:
        """Make or load the data; a subclass calls this first.

        Args:
            config: Options.
            seed: Of the cell; draws generated data.
            data_dir: A data directory, or None for the environment's.

        Raises:
            DataUnavailable: The data are not on this machine; the message says how to get them.
        """
        self.seed = seed
        self.chance = self.chance_of(config)
        self.notes: dict[str, str] = {}
        """Capabilities a report prints beside the numbers: metric signatures, data hashes."""
        if self.seen_in_training:
            self.notes[SEEN] = self.seen_in_training

    def note_fewer(self, part: str, asked: int, found: int) -> None:
        """Note a part that has fewer rows than its option asks for, as a file cut short has.

        Args:
            part: `train`, `validation` or `test`.
            asked: Rows that the option asks for; 0 asks for all, which are never too few.
            found: Rows that there are.
        """
        if found < asked:
            before = f"{self.notes[FEWER]}, " if FEWER in self.notes else ""
            self.notes[FEWER] = f"{before}{found} of {asked} in {part}"

    def seeded(self, use: Split | int) -> torch.Generator:
        """Random numbers for one use of this task under its seed; the same at every call.

        Args:
            use: A split that is drawn, or a number of its own for something else, not 2, 3 or 5.
        """
        number = use if isinstance(use, int) else {"train": 5, "validation": 2, "test": 3}[use]
        return torch.Generator().manual_seed(self.seed * 7919 + number)

    @classmethod
    def chance_of(cls, config: Any) -> float | None:
        """`chance` under these options, for reports too, which make no task.

        Args:
            config: Options of this very task.
        """
        return cls.chance

    @classmethod
    def is_generated(cls) -> bool:
        """Whether its data are drawn here, by rule and seed, not taken from anywhere."""
        return cls.data_license == GENERATED

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless batches in a seeded order."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """The fixed batches of a split; `test` may hold lengths beyond the training range."""
        raise NotImplementedError

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Values of the metrics over a split."""
        raise NotImplementedError

    def baselines(self) -> Mapping[str, float]:
        """Values of the first metric on the test without any attention, by the baseline's name.

        Counted from the training part: `majority`, `copy the source`, `unigram`, `trigram`.
        """
        return {}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Some examples to show."""
        return []

    def showcase(self) -> Batch | None:
        """Some examples of our own, which may be shown whatever the license of the data is.

        A trained network answers them, and the report walks through its weights.
        """
        return None

    def in_units(self, values: Float[Tensor, "T K"]) -> Float[Tensor, "T K"]:
        """Predicted numbers as the data have them, for figures; undoes what standardizes them."""
        return values

    def picture(self, batch: Batch, row: int) -> Picture | None:
        """The first source of one example as a picture, where it is one."""
        return None

    def feature_names(self, batch: Batch, row: int) -> list[str]:
        """Names of what one example has beside its words, for figures."""
        return [] if batch.features is None else [NOT_A_WORD] * batch.features.shape[1]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Names of token ids, for figures."""
        return [str(number) for number in ids]
