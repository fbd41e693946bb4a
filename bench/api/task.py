"""A task: seeded examples, metrics with units, a place for attention; it never sees the variant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.answer import Answer, Picture, Sample
from bench.api.axes import Axis
from bench.api.batch import NOT_A_WORD, Batch, Sizes
from bench.api.calibration import Setting
from bench.api.capabilities import Capability
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Config
from bench.api.headline import Headline
from bench.api.license import GENERATED, License
from bench.api.metric import Metric, Scored
from bench.api.selector import Selector, parse

Split = Literal["train", "validation", "test"]


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
    shared: bool = False
    """Whether the whole roster of the preset runs on it, beside the default tasks."""
    comparison: tuple[Entry, ...] | None = None
    """What is compared at this size; None for the task's own comparison. Where a size has its own,
    the comparison is about that size, and calibration chooses learning rates alone."""
    seeds: int = 0
    """Paired seeds of a run at most, where fewer than those of the preset decide; 0 for all."""
    evidence: bool = False
    """Whether this size is evidence where the task is a pipeline check (`Task.pipeline_check`)."""
    trial_steps: int = 0
    """Updates of a trial that chooses a learning rate, where a whole training would take too long;
    0 for those of the preset."""

    @cached_property
    def options_selector(self) -> Selector:
        """Task options, parsed."""
        return parse(self.options)

    @cached_property
    def backbone_selector(self) -> Selector:
        """The backbone, parsed."""
        return parse(self.backbone)

    @cached_property
    def protocol_selector(self) -> Selector:
        """The training, parsed."""
        return parse(self.protocol)


SEEN = "seen in training"
"""Note on examples of the test that training has seen."""

FEWER = "fewer rows"
"""Note that says which parts have fewer rows than the options ask for."""


class Task:
    """Base of all tasks; one subclass a file, registered with `register("task", ...)`."""

    metrics: ClassVar[tuple[Metric, ...]]
    """The first one ranks, unless there is a headline."""
    headline: ClassVar[Headline | None] = None
    """What ranks in the place of the first metric where that would be saturated."""
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    """What the task provides: `gold_alignment`, `source_tokens`, `reversible_pairs` ..."""
    presets: ClassVar[Mapping[str, TaskPreset]]
    """Sizes and backbones by preset name: `smoke`, `quick`, `standard`."""
    decodes: bool = False
    """Whether scoring needs decoded output, not only teacher forcing."""
    needs_predictions: ClassVar[bool] = True
    """Whether scoring looks at the best word of every target under teacher forcing."""
    needs_weights: ClassVar[bool] = True
    """Whether scoring looks at attention weights. Where it does not, validation makes none, which
    saves their memory and lets fused code answer; the test makes them for its maps."""
    ranks_tokens: ClassVar[bool] = False
    """Whether the ranking metric is about single words, which not every output predicts."""
    family: ClassVar[str] = ""
    """The use of attention that the task stands for, `image captioning`; members share it."""
    counts_with: ClassVar[str] = ""
    """Another use of attention with which it counts as one over all tasks, because some of its
    cells are the same networks on the same data; empty where it counts with its family."""
    comparison: ClassVar[tuple[Entry, ...]] = ()
    """Mechanisms that are worth comparing here; the planner adds controls and baseline."""
    calibration: ClassVar[tuple[Setting, ...]] = ()
    """Settings of which `bench calibrate` chooses the first one that can tell variants apart; the
    cheapest first."""
    pipeline_check: ClassVar[str] = ""
    """Why its comparison shows that the pipeline works and is no evidence about any variant, in one
    sentence: a non-neural baseline wins, or nothing separates; empty where it is evidence. A size
    may say that it is (`TaskPreset.evidence`)."""
    pipeline_check_over: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The same of single networks, by the name of the backbone, where others are evidence; a task
    has one or the other."""
    margin: ClassVar[float | None] = None
    """Largest difference of what ranks that has no practical meaning here, > 0, in the unit of the
    metric; None where it is that of the metric."""
    published_results: ClassVar[tuple[PublishedResult, ...]] = ()
    named_by: ClassVar[tuple[str, ...]] = ()
    """Options that say what is asked, such as the rule of `transduction`. Reports always name them,
    so that the task has one name in all of them; others are sizes."""
    ablated_inputs: ClassVar[tuple[str, ...]] = ()
    """Options that take away from what a network is given and leave the question as it is, so that
    scores compare across them: `read` and `shuffle` of tasks with two sources."""
    regresses: ClassVar[bool] = False
    """Whether `Batch.values` are predicted, not words."""
    data_sets: ClassVar[tuple[str, ...]] = ()
    """What it reads, by the names of the data directory's folders; nothing where it generates its
    data or takes them from a library."""
    data_license: ClassVar[License] = GENERATED
    seen_in_training: ClassVar[str] = ""
    """What of its test training has seen too, and what tells learning from memory all the same;
    a sentence for the page of tasks and the report, empty where there is nothing to say."""
    seen_under: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Values of the options of which `seen_in_training` speaks, by their names, a tuple of several.
    A task with other values does not note it; nothing where it holds of all."""
    written_example: ClassVar[tuple[str, str]] = ("", "")
    """Source and target of the first example of `examples`, for pages that are made where the data
    are not; empty where the data are in every data directory."""
    needs_download: ClassVar[bool] = False
    """Whether the data do not ship with the bench or a library."""
    sizes: Sizes
    chance: float | None = None
    """Value of the ranking metric without learning: about that of the best constant answer."""
    ceiling: float | None = None
    """Value of the ranking metric at which nothing more can be learned."""
    trained_to: float = float("inf")
    """Largest place on the axis of the headline that training reaches."""

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
        """What a report prints beside the numbers: metric signatures, data hashes."""
        if self.seen_in_training and self._is_spoken_of(config):
            self.notes[SEEN] = self.seen_in_training

    def _is_spoken_of(self, config: Config) -> bool:
        """Whether `seen_in_training` is about these options."""
        return all(
            getattr(config, name) in (values if isinstance(values, tuple) else (values,))
            for name, values in self.seen_under.items()
        )

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
            use: A split that is drawn, or a number of its own for something else. Numbers 5, 2 and
                3 are the streams of training, validation and test. A task may take one of them only
                where it does not draw that split by its name, too.
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
    def rule_baseline_of(cls, config: Any) -> str:
        """Name of the non-neural baseline that is the rule by which the data are made.

        Where it has the best possible score, nothing can be better, and reports print it as a
        ceiling and not as a competitor.

        Args:
            config: Options of this very task.

        Returns:
            A name that `baselines` gives; empty where none is the rule.
        """
        return ""

    @classmethod
    def trained_to_of(cls, config: Any) -> float | None:
        """`trained_to` under these options, for reports too, which make no task; None if unknown.

        Args:
            config: Options of this very task.
        """
        return None

    @classmethod
    def needs_of(cls, config: Any) -> Mapping[str, str]:
        """Files that folders of the data directory must hold under these options, for plans.

        Where one is missing, loading passes the folder over for the fetched copy.

        Args:
            config: Options of this very task.

        Returns:
            Name of a data set -> name of the file; nothing where any folder will do.
        """
        return {}

    @classmethod
    def compared_at(cls, sizes: str) -> tuple[Entry, ...]:
        """What is compared at the sizes of a preset; nothing where the task has none for it."""
        if sizes not in cls.presets:
            return ()
        own = cls.presets[sizes].comparison
        return cls.comparison if own is None else own

    @classmethod
    def pipeline_check_at(cls, sizes: str, backbone: str = "") -> str:
        """Why it is no evidence at the sizes of a preset; empty where it is.

        Args:
            sizes: Name of the preset.
            backbone: Name of the network; empty for what holds of all networks.
        """
        size = cls.presets.get(sizes)
        if size is not None and size.evidence:
            return ""
        return cls.pipeline_check or cls.pipeline_check_over.get(backbone, "")

    @classmethod
    def ranking_metric(cls) -> Metric:
        """The metric that orders the variants: the headline, or else the first metric."""
        return cls.headline.metric if cls.headline else cls.metrics[0]

    @classmethod
    def watched_metric(cls) -> Metric:
        """The metric that training looks at after each validation, to stop early.

        An area is known at the end only, so training looks at the metric below it.
        """
        area = cls.headline is not None and cls.headline.kind == "area_under_curve"
        return cls.metrics[0] if area else cls.ranking_metric()

    @classmethod
    def choosing_metric(cls) -> Metric:
        """The metric that chooses weights and learning rates where training has patience."""
        return cls.headline.choosing if cls.headline else cls.watched_metric()

    @classmethod
    def all_metrics(cls) -> tuple[Metric, ...]:
        """Every metric of the whole test, the ranking one first."""
        return (cls.headline.metric, *cls.metrics) if cls.headline else cls.metrics

    @classmethod
    def is_generated(cls) -> bool:
        """Whether its data are drawn here, by rule and seed, not taken from anywhere."""
        return cls.data_license == GENERATED

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless batches in a seeded order."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """The fixed batches of a split; `test` may hold lengths beyond the training range.

        So does validation where the headline is about them.
        """
        raise NotImplementedError

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Values of the metrics over a split, without the headline."""
        raise NotImplementedError

    def scores(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Values of the metrics over a split, with what the headline makes of them."""
        found = self.score(split, answers)
        beyond = self.headline.beyond(found, self.trained_to) if self.headline else []
        return [*beyond, *found]

    def choosing_value(self, scores: Sequence[Scored]) -> float | None:
        """The value of the choosing metric, of the scores of a validation."""
        if self.headline is not None and self.headline.kind == "beyond_training":
            return self.headline.choosing_value(scores, self.trained_to)
        name = self.choosing_metric().name
        return next((one.value for one in scores if one.metric == name and not one.axis), None)

    def baselines(self) -> Mapping[str, float]:
        """Values of the ranking metric on the test without attention, by the baseline's name.

        Counted from the training part: `majority`, `copy the source`, `unigram`, `trigram`. Counts
        take no training steps, so their area under the learning curve is their plain score.
        """
        return {}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Some examples to show."""
        return []

    def examples(self) -> Batch | None:
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


TASKS = Axis[type[Task]]("task")
