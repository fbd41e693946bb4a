"""The catalog of a run: what its names mean, written beside the rows so that it outlives the code.

The runner writes it as `catalog.json`, and reports read it. A key that is missing has its default,
so that the catalog of an older run can still be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, get_args

from bench.api.comparison import PublishedResult
from bench.api.license import License
from bench.api.metric import Group, Metric, Side
from bench.api.registry import Control
from results.json_values import Json, JsonObject, as_list, as_number, as_object, as_text
from results.looks import LARGEST_FIRST, Looks

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")
CONTROLS: tuple[Control, ...] = get_args(Control)
SIDES: tuple[Side, ...] = get_args(Side)
GROUPS: tuple[Group, ...] = get_args(Group)

UNKNOWN_TERMS = License("unknown", redistributable=False)
CATALOG = "catalog.json"
"""Name of the file in a run folder."""


class RunWithCatalog(Protocol):
    """A run folder, a pack or a part of one."""

    def read_json(self, name: str) -> dict[str, Json] | None:
        """What the run says beside its rows."""


@dataclass(frozen=True, kw_only=True)
class ChangedAxis:
    """The one axis by which an ablated variant differs from its base."""

    base: str
    """Canonical selector of the base."""
    axis: str
    value: str


@dataclass(frozen=True, kw_only=True)
class CatalogVariant:
    """Title, paper and marks of a variant."""

    short: str = ""
    """As it was asked for; the selector where nobody asked by a name."""
    name: str = ""
    title: str = ""
    formula: str = ""
    made_of: str = ""
    """The axes of a recipe, as they are typed."""
    default_task: str = ""
    paper: str = ""
    url: str = ""
    where: str = ""
    family: str = ""
    """Axis on which it is registered."""
    control: Control | None = None
    """Which control it is; None for a contender."""
    decoder_differs: bool = False
    search_differs: bool = False
    tells_places: bool = False
    """Whether it tells by itself where a key stands, without the axis `position`."""
    deviations: str = ""
    does_not_show: str = ""
    """Why the advantage that the paper reports does not appear here; empty where it can."""
    ablation: ChangedAxis | None = None

    @property
    def is_control(self) -> bool:
        """Whether it is a control, and no contender."""
        return self.control is not None

    @property
    def aa_control(self) -> bool:
        """Whether it is the baseline under another name."""
        return self.control == "aa"

    @property
    def uniform_baseline(self) -> bool:
        """Whether it weights all keys alike."""
        return self.control == "uniform_baseline"

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Read what `catalog.json` says of a variant."""
        ablation = as_object(data.get("ablation"))
        return replace(
            _read(cls, data),
            control=_word(CONTROLS, data.get("control"), None),
            ablation=_read(ChangedAxis, ablation) if ablation else None,
        )


@dataclass(frozen=True, kw_only=True)
class CatalogTask:
    """Title, paper, ranking metric, license and published numbers of a task with its options."""

    short: str = ""
    title: str = ""
    paper: str = ""
    url: str = ""
    primary: str = ""
    """Name of the metric that ranks."""
    family: str = ""
    """The use of attention that it stands for."""
    counts_with: str = ""
    """The use with which it counts as one over all tasks, where that is another one."""
    whole: str = ""
    """The same task with no input ablated; empty where it has no such options."""
    pipeline_check: str = ""
    """Why its comparison is no evidence, in one sentence; empty where it is."""
    pipeline_check_over: Mapping[str, str] = field(default_factory=dict)
    """The same of single networks, by the name of the backbone."""
    rule_baseline: str = ""
    """The non-neural baseline that is the rule of the data; empty where none is."""
    published_results: tuple[PublishedResult, ...] = ()
    needs_download: bool = True
    generated: bool = False
    """Whether its data are drawn here, by rule and seed."""
    license: License = UNKNOWN_TERMS
    chance: float | None = None
    """Score of guessing, by the ranking metric."""
    ceiling: float | None = None
    """The best score possible."""
    margin: float | None = None
    """Largest difference of the ranking metric without practical meaning; None where it is that of
    the metric."""
    trained_to: float | None = None
    """Longest input of training, by which a test is divided; None where nothing is known."""
    tuned: Mapping[str, int] | None = None
    """Learning rates that calibration tried, by competitor (`bench.api.calibration.competitor`);
    None where the run stored nothing of it."""

    def pipeline_check_of(self, backbone: str) -> str:
        """Why a comparison is no evidence, in one sentence; empty where it is.

        Args:
            backbone: The network of the comparison, as `usual` gives it.
        """
        return self.pipeline_check or self.pipeline_check_over.get(backbone.partition("[")[0], "")

    def decides(self, selector: str, backbone: str) -> bool:
        """Whether a comparison was to decide something, for planners and reports alike.

        Input ablations do not: they ask whether an input matters, not which variant to choose. Nor
        do pipeline checks, which are no evidence.

        Args:
            selector: Canonical, under which the catalog has the task.
            backbone: The network of the comparison.
        """
        return self.whole in ("", selector) and not self.pipeline_check_of(backbone)

    def margin_by(self, metric: str, usual: float | None) -> float | None:
        """Largest difference by a metric without practical meaning; None where there is none.

        Args:
            metric: Name.
            usual: That of the metric, which stays unless the task has one of its own for what
                ranks.
        """
        return usual if self.margin is None or metric != self.primary else self.margin

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Read what `catalog.json` says of a task."""
        terms = as_object(data.get("license"))
        return replace(
            _read(cls, data),
            license=License(
                as_text(terms.get("name")) or "unknown",
                redistributable=terms.get("redistributable") is True,
            ),
            published_results=tuple(
                _read(PublishedResult, one, value=value)
                for one in map(as_object, as_list(data.get("published_results")))
                if (value := as_number(one.get("value"))) is not None
            ),
            chance=as_number(data.get("chance")),
            ceiling=as_number(data.get("ceiling")),
            margin=as_number(data.get("margin")),
            trained_to=as_number(data.get("trained_to")),
            tuned=_counts(data.get("tuned")),
            pipeline_check_over={
                name: as_text(why)
                for name, why in as_object(data.get("pipeline_check_over")).items()
            },
        )


@dataclass(frozen=True, kw_only=True)
class RunCatalog:
    """Everything that a run says of its names."""

    variants: Mapping[str, CatalogVariant] = field(default_factory=dict)
    """By canonical selector."""
    tasks: Mapping[str, CatalogTask] = field(default_factory=dict)
    """By canonical selector."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    study: Mapping[str, JsonObject] = field(default_factory=dict)
    """What is said of each study, by the variant that it tuned."""
    trials: Mapping[str, str] = field(default_factory=dict)
    """Ids of the cells of trials, by study and number: `additive 3`. In older runs the study of
    each variant that was tried."""
    baseline: str = ""
    """Canonical selector; empty where nothing was compared with one."""
    commands: tuple[str, ...] = ()
    """What ran into the folder, in order."""
    preset: str = ""
    ranks: bool = True
    """Whether a report may rank."""
    looks: Looks | None = None
    """When `--until` looked at the scores; None where all seeds were planned at once."""
    plugins: tuple[str, ...] = ()
    """Files that registered names beside the bench's own; one of each name."""
    data_dir: str = ""
    """Data directory as typed; empty where the command line named none."""
    data_variable: str = ""
    """Environment variable that named the directory, if one did."""
    notes: tuple[str, ...] = ()
    """Known limits of the run, a sentence or two each, which a report prints at its top."""

    @property
    def ablated(self) -> set[str]:
        """Canonical selectors of the bases of which variants are changes."""
        return {*self.bases.values()}

    @property
    def bases(self) -> dict[str, str]:
        """Canonical selectors of bases, by that of each variant that is a change of one."""
        found = self.variants.items()
        return {name: one.ablation.base for name, one in found if one.ablation}

    def merged(self, new: "RunCatalog") -> "RunCatalog":
        """Add what a later run into the same folder says; every command stays, once."""
        held = self._as_beside(new)
        return replace(
            new,
            variants={**held, **_named_as_before(held, new.variants)},
            # a cell that runs again is named by its label, and keeps the name it had
            tasks={
                name: replace(one, short=self.tasks[name].short or one.short)
                if name in self.tasks
                else one
                for name, one in {**self.tasks, **new.tasks}.items()
            },
            metrics={**self.metrics, **new.metrics},
            study={**self.study, **new.study},
            trials={**self.trials, **new.trials},
            # a study compares with no baseline, and takes away none
            baseline=new.baseline or self.baseline,
            commands=tuple(dict.fromkeys((*self.commands, *new.commands))),
            # a pack has names alone, and a file may have moved
            plugins=tuple(
                {PurePath(one).name: one for one in (*self.plugins, *new.plugins)}.values()
            ),
            # scores that were looked at several times stay so
            looks=new.looks or self.looks,
            data_dir=new.data_dir or self.data_dir,
            data_variable=new.data_variable or self.data_variable,
            notes=tuple(dict.fromkeys((*self.notes, *new.notes))),
        )

    def _as_beside(self, new: "RunCatalog") -> Mapping[str, CatalogVariant]:
        """Variants beside an ablation: changes of another base are changes of nothing here.

        A folder holds ablations of one base, but `--reuse` brings the catalog of another one.
        """
        others = self.ablated - new.ablated if new.ablated else set()
        return {
            name: replace(one, ablation=None)
            if one.ablation and one.ablation.base in others
            else one
            for name, one in self.variants.items()
        }

    def to_json(self) -> dict[str, object]:
        """What stands in `catalog.json`."""
        return asdict(self)

    @classmethod
    def of(cls, run: RunWithCatalog) -> Self:
        """What a run says of its names; nothing where it has no catalog."""
        return cls.from_json(run.read_json(CATALOG))

    @classmethod
    def from_json(cls, data: JsonObject | None) -> Self:
        """Read `catalog.json`; one that is missing says nothing."""
        data = data or {}
        objects = {key: as_object(data.get(key)) for key in ("variants", "tasks", "metrics")}
        return replace(
            _read(cls, data),
            variants={
                name: CatalogVariant.from_json(as_object(one))
                for name, one in objects["variants"].items()
            },
            tasks={
                name: CatalogTask.from_json(as_object(one))
                for name, one in objects["tasks"].items()
            },
            metrics={
                name: _metric(name, as_object(one)) for name, one in objects["metrics"].items()
            },
            study={name: as_object(one) for name, one in as_object(data.get("study")).items()},
            trials={name: as_text(one) for name, one in as_object(data.get("trials")).items()},
            commands=tuple(as_text(one) for one in as_list(data.get("commands"))),
            plugins=tuple(as_text(one) for one in as_list(data.get("plugins"))),
            looks=_looks(as_object(data.get("looks"))),
            notes=tuple(as_text(one) for one in as_list(data.get("notes"))),
        )


def _named_as_before(
    held: Mapping[str, CatalogVariant], variants: Mapping[str, CatalogVariant]
) -> dict[str, CatalogVariant]:
    """What a later run says of variants; what it asked for by no name keeps its earlier one."""
    return {
        name: replace(
            one,
            short=(held[name].short if one.short == name else "") or one.short,
            ablation=one.ablation or held[name].ablation,
        )
        if name in held
        else one
        for name, one in variants.items()
    }


def _counts(data: Json) -> dict[str, int] | None:
    """Whole numbers by name; None where nothing is said."""
    if not isinstance(data, Mapping):
        return None
    known = {name: as_number(value) for name, value in as_object(data).items()}
    return {name: int(value) for name, value in known.items() if value is not None}


def _metric(name: str, data: JsonObject) -> Metric:
    return Metric(
        name=name,
        title=as_text(data.get("title")),
        unit=as_text(data.get("unit")),
        low=as_number(data.get("low")),
        high=as_number(data.get("high")),
        better=_word(SIDES, data.get("better"), "none"),
        group=_word(GROUPS, data.get("group"), "quality"),
        margin=as_number(data.get("margin")),
    )


def _looks(data: JsonObject) -> Looks | None:
    """When a run looked; None where it says nothing of it, or nothing that can be."""
    first, start = as_number(data.get("first")), as_number(data.get("first_seed"))
    if first is None or not 2 <= first <= LARGEST_FIRST:
        return None
    return Looks(first=int(first), first_seed=int(start or 0))


def _word(known: Sequence[T], value: Json, otherwise: T) -> T:
    """A word of a closed set; another one is not guessed at."""
    return next((word for word in known if word == value), otherwise)


def _read(kind: type[D], data: JsonObject, **further: object) -> D:
    """A dataclass with its texts, and what is yes or no; fields of other types are given."""
    texts = {one.name: as_text(data.get(one.name)) for one in fields(kind) if one.type is str}
    flags = {
        one.name: bool(data[one.name])
        for one in fields(kind)
        if one.type is bool and one.name in data
    }
    return kind(**{**texts, **flags, **further})
