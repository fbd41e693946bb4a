"""What a report knows about names: read from the folder, because the code may be gone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from bench.api.comparison import PublishedResult
from bench.api.errors import InvalidSelector
from bench.api.metric import Side
from bench.api.selector import parse
from reports.blocks import clean, safe_url
from reports.numbers import UNBOUNDED, limits
from results.catalog import CatalogTask, CatalogVariant, RunCatalog
from results.certificate import CertificateEntry, is_red
from results.json_values import JsonObject

Certificates = Mapping[str, CertificateEntry]
"""By variant; empty where none was certified."""
NO_CERTIFICATES: Certificates = MappingProxyType({})

# Longest first, so that `tokens_per_s` is not taken for seconds.
_UNITS = (
    ("tokens_per_s", "tokens/s"),
    ("time_ms", "ms"),
    ("_bytes", "bytes"),
    ("_count", "count"),
    ("_nats", "nats"),
    ("_ms", "ms"),
    ("_s", "s"),
)


SHORT_UNITS = {
    "fraction of tokens that greedy decoding writes before its first error": "share of the string"
}
"""Units that are too long for the head of a table; the page says once what they stand for."""


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """How a metric is printed and which side is better."""

    name: str
    title: str
    unit: str
    better: Side = "none"
    limits: tuple[float, float] = UNBOUNDED
    """Least and greatest value that it can have."""
    margin: float | None = None
    """Largest difference without practical meaning, as the run stored it; None without one."""

    @property
    def axis(self) -> str:
        """Title with unit, for an axis of a figure."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def arrow(self) -> str:
        """Title with the better side, for a table head."""
        return self.title + {"higher": " ↑", "lower": " ↓", "none": ""}[self.better]


Fact = Literal["deviations", "does_not_show", "family", "paper", "where"]
"""Texts about a variant that are printed as they are."""


class Catalog:
    """Typed access to `catalog.json`; names that it does not know are printed as they are."""

    def __init__(self, data: JsonObject | None) -> None:
        held = RunCatalog.from_json(data)
        self.variants = held.variants
        self.tasks = held.tasks
        self.metrics = held.metrics
        self.study = held.study
        self.trials = held.trials
        """Ids of the cells of trials, by study and number; in older runs, study by variant."""
        self.baseline = held.baseline
        self.commands = tuple(dict.fromkeys(clean(command) for command in held.commands))
        """What ran into the folder, in order."""
        self.preset = clean(held.preset)
        self.ranks = held.ranks
        self.plugins = held.plugins
        """Files that registered names beside the bench's own."""
        self.looks = held.looks
        """When the run looked at its scores; None where seeds were fixed."""
        self.data_dir = held.data_dir
        """Data directory as typed; empty where none was named on the command line."""
        self.data_variable = held.data_variable
        """Environment variable that named the directory, if one did."""
        self.notes = tuple(clean(note) for note in held.notes if note)
        """Known limits of the run."""
        self._labels = _unique_labels({name: one.short for name, one in self.variants.items()})
        self._task_labels = _unique_labels({name: one.short for name, one in self.tasks.items()})

    @classmethod
    def of(cls, data: "Catalog | JsonObject | None") -> "Catalog":
        """Accept what callers have at hand."""
        return data if isinstance(data, Catalog) else cls(data)

    def label(self, variant: str) -> str:
        """Short name of a variant, its selector where short names collide."""
        return self._labels.get(variant, clean(variant))

    def task_label(self, task: str) -> str:
        """Short name of a task, its selector where short names collide."""
        return self._task_labels.get(task, clean(task))

    def labels(self, variants: Iterable[str]) -> dict[str, str]:
        """Short names of several variants."""
        return {variant: self.label(variant) for variant in variants}

    def variant(self, variant: str) -> CatalogVariant:
        """What is known of a variant; nothing of one that the run did not name."""
        return self.variants.get(variant, CatalogVariant())

    def task(self, task: str) -> CatalogTask:
        """What is known of a task; nothing of one that the run did not name."""
        return self.tasks.get(task, CatalogTask())

    def fact(self, variant: str, key: Fact) -> str:
        """One text about a variant, ready to print; empty if unknown."""
        text: str = getattr(self.variant(variant), key)
        return clean(text)

    def url(self, variant: str) -> str:
        """Web address of the paper, empty unless it is safe to follow."""
        return safe_url(self.variant(variant).url)

    def ablation(self, variant: str) -> dict[str, str] | None:
        """The one changed axis of an ablated variant."""
        changed = self.variant(variant).ablation
        return {key: clean(value) for key, value in vars(changed).items()} if changed else None

    def primary(self, task: str) -> str:
        """Name of the metric that ranks a task, empty if unknown."""
        return self.task(task).primary

    def level(self, task: str, key: Literal["chance", "ceiling"]) -> float | None:
        """Score of guessing, or the best one possible."""
        known = self.task(task)
        return known.chance if key == "chance" else known.ceiling

    def family(self, task: str) -> str:
        """The use of attention that a task stands for, empty if unknown."""
        return clean(self.task(task).family)

    def whole(self, task: str) -> str:
        """The same task with nothing ablated, empty where its options remove no input."""
        return self.task(task).whole

    def pipeline_check(self, task: str, backbone: str) -> str:
        """Why the comparison of a task over a network is no evidence, empty where it is."""
        return clean(self.task(task).pipeline_check_of(backbone))

    def published_results(self, task: str) -> list[PublishedResult]:
        """Published numbers beside which the scores of a task are read."""
        return [*self.task(task).published_results]

    def is_generated(self, task: str) -> bool:
        """Whether the data of a task are made here, by rule."""
        return self.task(task).generated

    def is_open(self, task: str) -> bool:
        """Whether examples of the task may be published."""
        return self.task(task).license.redistributable

    def license(self, task: str) -> str:
        """Terms of the data of a task."""
        return clean(self.task(task).license.name)

    def metric(self, name: str) -> MetricInfo:
        """How to print a metric; unit and title come from its name if nobody wrote them down."""
        known = self.metrics.get(name)
        guess = next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")
        return MetricInfo(
            name=name,
            title=clean((known and known.title) or name.replace("_", " ")),
            unit=SHORT_UNITS.get(
                known.unit if known else "", clean((known and known.unit) or guess)
            ),
            better=known.better if known else "none",
            limits=limits(known.low, known.high) if known else UNBOUNDED,
            margin=known.margin if known else None,
        )


def uncapitalized(title: str) -> str:
    """A title inside a sentence; abbreviations stay.

    >>> uncapitalized("Exact match"), uncapitalized("BLEU"), uncapitalized("F1 of sub-tokens")
    ('exact match', 'BLEU', 'F1 of sub-tokens')
    """
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def capitalized(title: str) -> str:
    """A title at the head of something.

    >>> capitalized("image captioning")
    'Image captioning'
    """
    return title[:1].upper() + title[1:]


def _unique_labels(known: Mapping[str, str]) -> dict[str, str]:
    shorts = {name: clean(short or name) for name, short in known.items()}
    seen = [*shorts.values()]
    return {
        name: short if seen.count(short) == 1 else clean(name) for name, short in shorts.items()
    }


def red_reasons(certificates: Certificates, variant: str) -> list[str]:
    """Say why a variant must not be ranked; empty if its certificate is green or missing."""
    certificate = certificate_of(certificates, variant)
    if certificate is None or not is_red(certificate):
        return []
    failed, skipped = certificate["failed"], certificate["skipped"]
    reasons = [f"{check}: {why}" for check, why in failed.items()]
    for check in certificate["expected"]:
        if check not in certificate["passed"] and check not in failed:
            reasons.append(f"{check}: expected, but {skipped.get(check) or 'it did not run.'}")
    return [clean(reason) for reason in reasons]


def certificate_of(certificates: Certificates, variant: str) -> CertificateEntry | None:
    """Find the certificate under the selector, else under the bare name."""
    if not certificates or variant in certificates:
        return certificates.get(variant)
    try:
        return certificates.get(parse(variant).name)
    except InvalidSelector:
        return None
