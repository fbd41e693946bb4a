"""The catalog of a run: what its names mean, written beside the rows so that it outlives the code.

The runner writes it as `catalog.json`, and reports read it. A key that is missing has its default,
so that the catalog of an older run can still be read.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self, get_args

from bench.api.comparison import PublishedResult
from bench.api.license import License
from bench.api.metric import Group, Metric, Side
from bench.api.registry import Control

UNKNOWN_TERMS = License("unknown", redistributable=False)
CATALOG = "catalog.json"
"""Name of the file in a run folder."""


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
    deviations: str = ""
    ablation: ChangedAxis | None = None

    @property
    def aa_control(self) -> bool:
        """Whether it is the baseline under another name."""
        return self.control == "aa"

    @property
    def uniform_baseline(self) -> bool:
        """Whether it weights all keys alike."""
        return self.control == "uniform_baseline"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `catalog.json` says of a variant."""
        ablation = data.get("ablation")
        control: Control | None = _word(get_args(Control), data.get("control"), None)
        return cls(
            **_scalars(cls, data),
            control=control,
            ablation=ChangedAxis(**_texts(ChangedAxis, ablation)) if ablation else None,
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
    whole: str = ""
    """The same task with no input ablated; empty where it has no such options."""
    published_results: tuple[PublishedResult, ...] = ()
    needs_download: bool = True
    generated: bool = False
    """Whether its data are drawn here, by rule and seed."""
    license: License = UNKNOWN_TERMS
    chance: float | None = None
    """Score of guessing, by the ranking metric."""
    ceiling: float | None = None
    """The best score possible."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `catalog.json` says of a task."""
        terms = data.get("license") or {}
        return cls(
            **_scalars(cls, data),
            license=License(
                str(terms.get("name") or "unknown"),
                redistributable=terms.get("redistributable") is True,
            ),
            published_results=tuple(
                PublishedResult(**_texts(PublishedResult, one), value=float(one["value"]))
                for one in data.get("published_results") or ()
            ),
            chance=_number(data, "chance"),
            ceiling=_number(data, "ceiling"),
        )


@dataclass(frozen=True, kw_only=True)
class RunCatalog:
    """Everything that a run says of its names."""

    variants: Mapping[str, CatalogVariant] = field(default_factory=dict)
    """By canonical selector."""
    tasks: Mapping[str, CatalogTask] = field(default_factory=dict)
    """By canonical selector."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    study: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said of each study, by the variant that it tuned."""
    trials: Mapping[str, str] = field(default_factory=dict)
    """Variants that were tried, to the study that tried them."""
    baseline: str = ""
    """Canonical selector."""
    commands: tuple[str, ...] = ()
    """What ran into the folder, in order."""
    preset: str = ""
    ranks: bool = True
    """Whether a report may rank."""
    plugins: tuple[str, ...] = ()
    """Files that registered names beside the bench's own, as typed."""
    data_dir: str = ""
    """Data directory as typed; empty where the command line named none."""
    data_variable: str = ""
    """Environment variable that named the directory, if one did."""

    def merged(self, new: "RunCatalog") -> "RunCatalog":
        """Add what a later run into the same folder says; every command stays, once."""
        return replace(
            new,
            variants={**self.variants, **new.variants},
            tasks={**self.tasks, **new.tasks},
            metrics={**self.metrics, **new.metrics},
            study={**self.study, **new.study},
            trials={**self.trials, **new.trials},
            commands=tuple(dict.fromkeys((*self.commands, *new.commands))),
            plugins=tuple(dict.fromkeys((*self.plugins, *new.plugins))),
            data_dir=new.data_dir or self.data_dir,
            data_variable=new.data_variable or self.data_variable,
        )

    def to_json(self) -> dict[str, Any]:
        """What stands in `catalog.json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self:
        """Read `catalog.json`; one that is missing says nothing."""
        data = data or {}
        variants, tasks, metrics = (data.get(key) or {} for key in ("variants", "tasks", "metrics"))
        return cls(
            **_scalars(cls, data),
            variants={name: CatalogVariant.from_json(one) for name, one in variants.items()},
            tasks={name: CatalogTask.from_json(one) for name, one in tasks.items()},
            metrics={name: _metric(name, one) for name, one in metrics.items()},
            study=dict(data.get("study") or {}),
            trials={name: str(study) for name, study in (data.get("trials") or {}).items()},
            commands=tuple(map(str, data.get("commands") or ())),
            plugins=tuple(map(str, data.get("plugins") or ())),
        )


def _metric(name: str, data: Mapping[str, Any]) -> Metric:
    better: Side = _word(get_args(Side), data.get("better"), "none")
    group: Group = _word(get_args(Group), data.get("group"), "quality")
    return Metric(
        name=name,
        title=str(data.get("title") or ""),
        unit=str(data.get("unit") or ""),
        low=_number(data, "low"),
        high=_number(data, "high"),
        better=better,
        group=group,
    )


def _word(known: tuple[Any, ...], value: object, otherwise: Any) -> Any:
    """A word of a closed set; another one is not guessed at."""
    return value if value in known else otherwise


def _scalars(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the fields of a dataclass whose types are text, or yes or no."""
    flags = {
        one.name: bool(data[one.name])
        for one in fields(kind)
        if one.type is bool and one.name in data
    }
    return {**_texts(kind, data), **flags}


def _texts(kind: type[Any], data: Mapping[str, Any]) -> dict[str, str]:
    """Values of the fields of a dataclass whose type is text."""
    return {one.name: str(data.get(one.name) or "") for one in fields(kind) if one.type is str}


def _number(data: Mapping[str, Any], key: str) -> float | None:
    value = data.get(key)
    return None if value is None else float(value)
