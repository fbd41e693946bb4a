"""What a user asked for: the text as typed, and once parsed the objects that everything carries."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from bench.api import registry
from bench.api.axes import PLAIN
from bench.api.cell import LARGEST_SEED
from bench.api.command import USUAL_PRESET
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.impl import IMPLS
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse, parse_list
from bench.running.presets import Preset, find_preset, sizes_of
from bench.timing.asked_shapes import MOST_MB, MOST_S, NAMED, SERVED, asked_shapes
from bench.timing.shape import AttendShape, Rounds, parse_rounds

DTYPES = ("float32", "float64", "bfloat16")
DEVICES = ("cpu", "cuda")
MATCHES = ("params", "flops", "time")
TRAINED_COMPILED = (
    "--impl compiled is timed, not trained, for every new length would be compiled again; give "
    "another --impl, or only time, with `bench run --no-quality`."
)
TRAINED_SDPA = (
    "--impl sdpa is timed, not trained, for what is trained is scored with its weights, which "
    "fused code does not give; leave --impl out, which uses fused code where nobody wants weights, "
    "or only time, with `bench run --no-quality`."
)
TIMED_ALONE = {"compiled": TRAINED_COMPILED, "sdpa": TRAINED_SDPA}
"""Implementations that no training can use, and why."""
TIMED_ON_CPU = (
    "--match time compares CPU times of training steps, which a GPU does not spend; give --match "
    "flops, or leave --device out."
)
"""Why the time of a step on a GPU is not matched."""
OF_TRAINING = ("tasks", "backbone", "slot", "training", "match")
"""Options that say what is trained, and nothing of what is timed."""
EVERY = "all"
"""In a list of variants: everything that has a default task."""


class AskedVariant(NamedTuple):
    """A variant that was asked for."""

    text: str
    """As it was typed."""
    spec: VariantSpec


class AskedTask(NamedTuple):
    """A task that was asked for."""

    text: str
    """As a person would type it."""
    selector: Selector
    """At the size of the preset, canonical."""


CHECK_SEEDS = 2
"""Seeds of a pipeline check, which shows that everything works and decides nothing."""
MOST_SEEDS = 10_000
"""Seeds of a request, and the number of one."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for, as typed; fields have the names of the options of the command line."""

    variants: str = "all"
    """Selectors separated by commas, or `all`."""
    tasks: str = ""
    """Task selectors separated by commas; empty for each variant's default task and the preset's
    own."""
    backbone: str = ""
    """Backbone selector; empty for what a comparison or the variant's default task names, or else
    the task's own."""
    slot: str = ""
    """Slot of the backbone; empty for what is named there, too, or else its main one."""
    preset: str = USUAL_PRESET
    seeds: int = 0
    """Number of seeds; 0 for the preset's."""
    first_seed: int = 0
    training: str = ""
    """Options that replace the task's training protocol, `adam[steps=200]`."""
    baseline: str = PLAIN
    device: str = "cpu"
    dtype: str = "float32"
    impl: str = "auto"
    match: str = ""
    """What of each network must be as large as the baseline's: `params`, `flops` or `time`; empty
    for nothing."""
    shape: tuple[str, ...] = ()
    """Shapes that are timed, `B=4,H=16,L=1024+4096,E=64` or a name; none for the preset's."""
    jobs: int = 2
    """Processes at once."""
    speed: bool = True
    """Whether to time the variants too."""
    quality: bool = True
    """Whether to train them."""
    minutes: float = 0.0
    """Wall time to fill (min); 0 for the preset's."""
    calibrated: bool = True
    """Whether to use the sizes and learning rates that calibration has chosen."""
    # out of `repr`: they say where files are, and a study knows its question by the rest
    plugin: tuple[str, ...] = field(default=(), repr=False)
    """Plug-in files; the commands that a plan prints name them."""
    data_dir: str = field(default="", repr=False)
    """Data directory, for the same commands."""

    def __post_init__(self) -> None:
        """Check the closed choices."""
        for kind, value, known in (
            ("device", self.device, DEVICES),
            ("dtype", self.dtype, DTYPES),
            ("impl", self.impl, IMPLS),
            ("match", self.match or MATCHES[0], MATCHES),
        ):
            if value not in known:
                raise UnknownName.among(kind, value, known)
        if self.quality and self.impl in TIMED_ALONE:
            raise InvalidConfig(TIMED_ALONE[self.impl])
        if self.match == "time" and self.device != "cpu":
            raise InvalidConfig(TIMED_ON_CPU)
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.seeds < 0:
            raise InvalidConfig(f"seeds must be >= 0, and 0 is the default; got {self.seeds}.")
        if self.seeds > MOST_SEEDS:
            raise InvalidConfig(f"seeds must be at most {MOST_SEEDS}, got {self.seeds}.")
        if self.jobs < 1:
            raise InvalidConfig(f"a plan is for at least 1 job, got {self.jobs}.")
        if self.first_seed < 0:
            raise InvalidConfig(f"the first seed must be >= 0, got {self.first_seed}.")
        if self.first_seed + max(self.seeds, 1) - 1 > LARGEST_SEED:
            raise InvalidConfig(
                f"a seed is at most {LARGEST_SEED}; the first of {max(self.seeds, 1)} is "
                f"{self.first_seed}."
            )
        if not (math.isfinite(self.minutes) and self.minutes >= 0):
            raise InvalidConfig(f"minutes must be a number >= 0, got {self.minutes}.")

    @cached_property
    def size(self) -> Preset:
        """The preset.

        Raises:
            UnknownName: There is none of this name.
        """
        return find_preset(self.preset)

    @property
    def sizes(self) -> str:
        """Name of the preset that has the sizes of tasks."""
        return sizes_of(self.preset)

    @cached_property
    def shapes(self) -> tuple[AttendShape, ...]:
        """Shapes that are timed, each in every regime of a variant."""
        return tuple(asked_shapes(self.shape)) or self._sized(self.size.lengths)

    @cached_property
    def long_shapes(self) -> tuple[AttendShape, ...]:
        """Longer ones, for variants whose time grows less than quadratically."""
        return () if self.shape else self._sized(self.size.long_lengths)

    def _sized(self, lengths: tuple[int, ...]) -> tuple[AttendShape, ...]:
        """The preset's shape at these lengths."""
        return tuple(
            replace(shape, length=length)
            for shape in asked_shapes([self.size.shape])
            for length in lengths
        )

    @cached_property
    def rounds(self) -> Rounds:
        """The preset's timing protocol; shapes that were asked for are timed without limits."""
        usual = parse_rounds(self.size.rounds)
        return replace(usual, most_mb=0.0, most_s=0.0) if self.shape else usual

    def rounds_of(self, shape: AttendShape) -> Rounds:
        """How a shape is timed; a slot has a protocol of its own, whatever the preset.

        Slots of a name such as `serving` have limits; those that were typed have none.
        """
        return replace(self._limited(shape), beside=self.asked_baseline.spec.canonical)

    def _limited(self, shape: AttendShape) -> Rounds:
        if shape.place != "slot":
            return self.rounds
        typed = asked_shapes([text for text in self.shape if text not in NAMED])
        usual = parse_rounds(SERVED)
        if shape in [replace(one, regime=shape.regime) for one in typed]:
            return usual
        return replace(usual, most_mb=MOST_MB, most_s=MOST_S)

    @cached_property
    def specs(self) -> tuple[AskedVariant, ...]:
        """Every variant, as asked for and resolved."""
        return tuple(asked_variants(self.variant_selectors))

    @cached_property
    def asked_baseline(self) -> AskedVariant:
        """The baseline, as asked for and resolved."""
        selector = parse(self.baseline)
        return AskedVariant(selector.show(), resolve(selector))

    @cached_property
    def variant_selectors(self) -> tuple[Selector, ...]:
        """Variants that were asked for, and maybe `all`."""
        return tuple(parse_list(self.variants))

    @property
    def every_variant(self) -> bool:
        """Whether `all` is among the variants."""
        return any(one.name.lower() == EVERY for one in self.variant_selectors)

    @cached_property
    def task_selectors(self) -> tuple[Selector, ...]:
        """Tasks that were asked for; none where each variant has its own."""
        found = tuple(parse_list(self.tasks)) if self.tasks else ()
        if any(one.name.lower() == EVERY for one in found):
            raise InvalidConfig(
                "--tasks has no name for every task; leave it out for the default task of each "
                "variant, or name --preset families for every task's comparison."
            )
        return found

    @cached_property
    def backbone_selector(self) -> Selector | None:
        """The backbone that was asked for; None where nobody asked for one."""
        return parse(self.backbone) if self.backbone else None

    @cached_property
    def protocol_selector(self) -> Selector | None:
        """Options that replace the task's training protocol; None where none do."""
        return parse(self.training) if self.training else None

    @property
    def paired_seeds(self) -> range:
        """Seeds of quality cells; pipeline checks and some tasks have the first of them."""
        return range(self.first_seed, self.first_seed + (self.seeds or self.size.seeds))

    @property
    def budget_s(self) -> float:
        """Wall time that the plan may fill (s); 0 for no limit."""
        return 60 * self.minutes or self.size.budget_s


def without_options(every: Selector) -> None:
    """Refuse options of `all`, which would apply to nothing.

    Raises:
        InvalidConfig: It has options.
    """
    if every.options:
        raise InvalidConfig(f"{EVERY} takes no options, got {every}; name what should have them.")


def asked_variants(selectors: Iterable[Selector]) -> list[AskedVariant]:
    """Resolve what a variants option names; `all` is everything with a default task."""
    found: dict[str, Selector] = {}
    for selector in selectors:
        if selector.name.lower() == EVERY:
            without_options(selector)
            found.update((name, Selector(name)) for name in registry.listed_variants())
        else:
            found[selector.show()] = selector
    return [AskedVariant(text, resolve(selector)) for text, selector in found.items()]
