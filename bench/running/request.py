"""What a user asked for: the text as typed, and once parsed the objects that everything carries."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from bench.api import registry
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import PLAIN
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse, parse_list
from bench.api.variant import IMPLS
from bench.running.presets import Preset, find_preset

DTYPES = ("float32", "float64", "bfloat16")
DEVICES = ("cpu", "cuda")
EVERY = "all"
"""In a list of variants: everything that has a default task."""


class AskedVariant(NamedTuple):
    """A variant that was asked for."""

    text: str
    """As it was typed."""
    spec: VariantSpec


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for, as typed."""

    variants: str = "all"
    """Selectors separated by commas, or `all`."""
    tasks: str = ""
    """Task selectors separated by commas; empty for each variant's default task and the preset's
    own."""
    backbone: str = ""
    """Backbone selector; empty for the task's own."""
    slot: str = ""
    """Slot of the backbone; empty for its main one."""
    preset: str = "quick"
    seeds: int = 0
    """Number of seeds; 0 for the preset's."""
    first_seed: int = 0
    protocol: str = ""
    """Options that replace the task's training protocol, `adam[steps=200]`."""
    baseline: str = PLAIN
    device: str = "cpu"
    dtype: str = "float32"
    impl: str = "auto"
    jobs: int = 2
    speed: bool = True
    """Whether to time the variants too."""
    quality: bool = True
    """Whether to train them."""
    minutes: float = 0.0
    """Wall time to fill (min); 0 for the preset's."""
    # out of `repr`, by which a study knows its question: they say where things lie, not what
    plugins: tuple[str, ...] = field(default=(), repr=False)
    """Files that registered names beside the bench's own, for the commands that a plan prints."""
    data_dir: str = field(default="", repr=False)
    """Data directory, for the same commands."""

    def __post_init__(self) -> None:
        """Check the closed choices."""
        for kind, value, known in (
            ("device", self.device, DEVICES),
            ("dtype", self.dtype, DTYPES),
            ("impl", self.impl, IMPLS),
        ):
            if value not in known:
                raise UnknownName.among(kind, value, known)
        if self.seeds < 0:
            raise InvalidConfig(f"seeds must be >= 0, and 0 is the preset's; got {self.seeds}.")
        if self.jobs < 1:
            raise InvalidConfig(f"a plan is for at least 1 job, got {self.jobs}.")
        if self.minutes < 0:
            raise InvalidConfig(f"minutes must be >= 0, got {self.minutes}.")

    @cached_property
    def size(self) -> Preset:
        """The preset.

        Raises:
            UnknownName: There is none of this name.
        """
        return find_preset(self.preset)

    @cached_property
    def specs(self) -> tuple[AskedVariant, ...]:
        """Every variant, as asked for and resolved."""
        return tuple(asked_variants(self.variants))

    @cached_property
    def baseline_spec(self) -> VariantSpec:
        """The baseline, resolved."""
        return resolve(self.baseline)

    @cached_property
    def every_variant(self) -> bool:
        """Whether `all` is among the variants."""
        return any(one.name == EVERY for one in parse_list(self.variants))

    @cached_property
    def task_selectors(self) -> tuple[Selector, ...]:
        """Tasks that were asked for; none where each variant has its own."""
        return tuple(parse_list(self.tasks)) if self.tasks else ()

    @cached_property
    def backbone_selector(self) -> Selector | None:
        """The backbone that was asked for; None for the task's own."""
        return parse(self.backbone) if self.backbone else None

    @cached_property
    def training(self) -> Selector | None:
        """Options that replace the task's training protocol; None where none do."""
        return parse(self.protocol) if self.protocol else None

    @property
    def paired_seeds(self) -> range:
        """Seeds of every quality cell."""
        return range(self.first_seed, self.first_seed + (self.seeds or self.size.seeds))

    @property
    def budget_s(self) -> float:
        """Wall time that the plan may fill (s); 0 for no limit."""
        return 60 * self.minutes or self.size.budget_s


def asked_variants(text: str) -> list[AskedVariant]:
    """Resolve a variants option; `all` is everything with a default task."""
    found: dict[str, Selector] = {}
    for selector in parse_list(text):
        if selector.name == EVERY:
            found.update((name, Selector(name)) for name in registry.listed_variants())
        else:
            found[selector.show()] = selector
    return [AskedVariant(text, resolve(selector)) for text, selector in found.items()]
