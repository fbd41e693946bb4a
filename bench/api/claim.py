"""A claim: a sentence of a source, and what rows must show for it to hold, fixed before the run.

A claim names what is compared and by how much it must differ. It holds no verdict: that is
computed from stored rows each time it is shown (ADR 20).
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Literal

from bench.api import registry
from bench.api.axes import Axis
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Registration

Expected = Literal["higher", "lower", "equal"]
"""Where the left side of a contrast lies."""
Compared = Literal["mean", "spread"]
"""What of the scores of all seeds is compared: how high they are, or how far apart."""
FIRST_SEED, SEEDS = 200, 6
"""First seed of claims, and how many. No other published run uses these seeds, so that no choice
was made by looking at them. Where no seed differs from another the sign test decides, which needs
six at a level of 5%, and seven at that of second samples and of claims that were written anew."""
SECOND_SEED = 300
"""First seed of second samples, which end before `REWRITTEN_SEED`."""
REWRITTEN_SEED = 500
"""First seed of claims whose contrasts were written anew after rows of earlier ones were known."""
SECOND_REWRITTEN_SEED = 800
"""First seed of their second samples."""
LATER = {FIRST_SEED: SECOND_SEED, SECOND_SEED: REWRITTEN_SEED, REWRITTEN_SEED: 700}
"""Where the seeds of a sample end, by its first one: at those of another sample, or at 700, the
first seed of the published run `fresh_seeds`."""
SPREAD_SEEDS = 12
"""Fewest seeds that say anything about a spread (ADR 20)."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One measured number for each seed: a variant on a task, and the row that is read."""

    variant: str
    """Variant selector."""
    task: str
    """Task selector, at the size of the preset where it says nothing else."""
    metric: str
    backbone: str = ""
    """Backbone selector; empty for the task's own."""
    slot: str = ""
    """Slot of the backbone; empty for its main one."""
    training: str = ""
    """Options that replace the task's training protocol."""
    probe: str = ""
    """Probe that measures the metric on the trained network; empty where training does."""
    examples: int = 0
    """Test examples that the probe is shown, in whole batches; 0 for as many as `bench analyze`
    shows. A task whose test has a batch for each length needs more to show them all."""
    preset: str = "quick"
    split: str = "test"
    """`test`, `validation`, or empty for a number of no data, such as `train_steps_count`."""
    axis: str = ""
    """What `x` counts; empty for a row of no axis."""
    x: float | None = None

    def __post_init__(self) -> None:
        if bool(self.axis) != (self.x is not None):
            raise InvalidConfig(
                f"a side of a claim reads {self.metric} at a place of an axis, and both are "
                f"needed; got axis {self.axis!r} and x {self.x}."
            )
        if self.examples < 0 or (self.examples and not self.probe):
            raise InvalidConfig(
                f"examples are those that a probe is shown, at least 1; got {self.examples} and "
                f"probe {self.probe!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a network must have learned, or its contrast decides nothing."""

    side: Side
    """The score that says so."""
    low: float
    """The least mean over seeds."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """What is compared: the sum of some sides with the sum of others, seed by seed.

    Two sides a sum are an interaction: `(A + D) - (B + C)`. Where spreads are compared, each seed
    counts by its distance from the median of all seeds, and not by its score.
    """

    title: str
    """What the difference is, for people."""
    left: tuple[Side, ...]
    right: tuple[Side, ...] = ()
    against: float = 0.0
    """Number that is subtracted, too: a threshold where there is no right side."""
    expect: Expected
    of: Compared = "mean"
    """What is compared: means over seeds, or spreads, which are mean distances from the median."""
    margin: float = 0.0
    """In the unit of the metric: the least difference that counts where one is expected, and the
    largest one that still counts as none where equality is."""
    learned: tuple[Learned, ...] = ()
    """What must hold of the networks: those that have learned nothing tell no difference apart."""

    def __post_init__(self) -> None:
        if not self.left:
            raise InvalidConfig(f"contrast {self.title!r} has no left side; name at least one.")
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise InvalidConfig(
                f"contrast {self.title!r}: a margin is a number >= 0, got {self.margin}."
            )
        if self.expect == "equal" and not self.margin:
            raise InvalidConfig(
                f"contrast {self.title!r} expects equality, which no run can show without a "
                "margin; give one above 0."
            )
        if self.of == "spread" and (self.against or not self.right):
            raise InvalidConfig(
                f"contrast {self.title!r} compares spreads, which needs a right side and no number "
                "to compare with."
            )

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both sides, and those that say what was learned."""
        return (*self.left, *self.right, *(one.side for one in self.learned))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Between which numbers a computed one must lie, at every place of its axis.

    One without ends is shown and decides nothing.
    """

    metric: str
    title: str = ""
    """What the number is, for people; empty for the words of its name."""
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high or self.low == math.inf or self.high == -math.inf:
            raise InvalidConfig(
                f"the bound of {self.metric} must leave room, low <= high; got {self.low} and "
                f"{self.high}."
            )

    @property
    def decides(self) -> bool:
        """Whether a number can lie outside."""
        return not (math.isinf(self.low) and math.isinf(self.high))


@dataclass(frozen=True, kw_only=True)
class Exact:
    """What is computed and not trained: the same numbers on every run."""

    compute: Callable[[], Sequence[Scored]]
    """A plain function of nothing; all that it draws has a seed of its own."""
    bounds: tuple[Bound, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.compute, FunctionType):
            # whether its code is that of today is read from the source of the function
            raise InvalidConfig(
                f"what computes a claim must be a plain function, got {self.compute!r}."
            )
        if not any(bound.decides for bound in self.bounds):
            raise InvalidConfig("a computed claim needs at least one bound that has an end.")


@dataclass(frozen=True, kw_only=True, repr=False)
class Claim:
    """A sentence of a source, and what decides it."""

    key: str
    """`C01`."""
    title: str
    """The claim in our words."""
    source: str
    """Document that says it; the report is grouped by it."""
    quote: str
    contrasts: tuple[Contrast, ...] = ()
    exact: Exact | None = None
    needed: Literal["all", "any"] = "all"
    """How many of the contrasts and of the computed part must hold."""
    missing: str = ""
    """What would decide it and is not here, one sentence; then the claim is undecided."""
    note: str = ""
    """What the test leaves out, or what surprised."""
    seeds: int = SEEDS
    """How many seeds every side has; fewer decide nothing."""
    again: int = 0
    """Seeds of a second sample, from `SECOND_SEED` or `SECOND_REWRITTEN_SEED` on, which decides
    alone. It is asked for where the first sample left the claim open, or where a contrast was
    written after it; else 0."""
    rewritten: str = ""
    """What was compared before, what that showed, and why it says nothing of the quoted sentence.
    Such a claim is decided on seeds from `REWRITTEN_SEED` on, at the level of second samples."""
    said_before: Literal["", "supported", "contradicted", "undecided"] = ""
    """Verdict of the test that was replaced, of the last one where there were several."""
    priority: int = 5
    """1 runs first."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.key):
            raise InvalidConfig(
                f"claim key {self.key!r}: use a letter, then letters, digits or underscores."
            )
        if not self.quote or not self.source:
            raise InvalidConfig(f"claim {self.key} needs its source and the quoted sentence.")
        if not (self.contrasts or self.exact or self.missing):
            raise InvalidConfig(
                f"claim {self.key} says nothing that could decide it; give contrasts, a computed "
                "part, or what is missing."
            )
        if bool(self.rewritten) != bool(self.said_before):
            raise InvalidConfig(
                f"claim {self.key}: one that was written anew says what its earlier test compared "
                "(`rewritten`) and what that decided (`said_before`), and others neither."
            )
        self._expect_enough_seeds()

    def _expect_enough_seeds(self) -> None:
        spread = any(one.of == "spread" for one in self.contrasts)
        least = SPREAD_SEEDS if spread else SEEDS
        fewest = min(self.seeds, self.again) if self.again else self.seeds
        if fewest < least:
            raise InvalidConfig(
                f"claim {self.key}: its contrasts need at least {least} seeds, got {fewest}."
            )
        if self.again and not self.contrasts:
            raise InvalidConfig(
                f"claim {self.key}: a second sample is one of contrasts, and it has none; leave "
                "again out."
            )
        for seeds in (self.first_sample, self.sample):
            room = LATER.get(seeds.start, seeds.stop) - seeds.start
            if len(seeds) > room:
                raise InvalidConfig(
                    f"claim {self.key}: there is room for {room} seeds from {seeds.start} on, got "
                    f"{len(seeds)}."
                )

    def __repr__(self) -> str:
        return f"Claim({self.key})"

    @property
    def kind(self) -> str:
        """What decides it: `exact`, `trained`, `both`, or `missing`."""
        if self.exact:
            return "both" if self.contrasts else "exact"
        return "trained" if self.contrasts else "missing"

    @property
    def first_sample(self) -> range:
        """Seeds of the first sample, which decides where there is no second one."""
        first = REWRITTEN_SEED if self.rewritten else FIRST_SEED
        return range(first, first + self.seeds)

    @property
    def sample(self) -> range:
        """Seeds that decide."""
        second = SECOND_REWRITTEN_SEED if self.rewritten else SECOND_SEED
        return range(second, second + self.again) if self.again else self.first_sample

    @property
    def sides(self) -> tuple[Side, ...]:
        """Every side once, in the order of the contrasts."""
        return tuple(dict.fromkeys(side for one in self.contrasts for side in one.sides))


CLAIMS = Axis[Claim]("claim")


def register_claim(claim: Claim, *, module: str) -> None:
    """Register a claim under its key; `module` is the caller's `__name__`."""
    registry.add_registration(
        Registration(axis=CLAIMS, name=claim.key, target=claim, title=claim.title, module=module)
    )
