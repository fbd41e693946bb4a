"""What a speed cell times and how: the shape and the timing protocol, as selectors."""

from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from bench.api.axes import PLAIN
from bench.api.call import Dims, Regime
from bench.api.config import Config, build_config, changed_options
from bench.api.errors import InvalidConfig
from bench.api.selector import Selector, parse

Workload = Literal["forward", "forward_weights", "forward_backward", "decode_step"]
WORKLOADS: tuple[Workload, ...] = ("forward", "forward_weights", "forward_backward", "decode_step")
"""What is timed; each gives the metric `<workload>_time_ms`."""

Place = Literal["attention", "slot"]
PLACES: tuple[Place, ...] = get_args(Place)

SOURCE_VOCAB = 100
"""Ids that the tokens of a timed source take."""


@dataclass(frozen=True, kw_only=True)
class AttendShape(Config):
    """Sizes of one timed attention, beneath its heads or with them."""

    batch: int = 2
    """Rows B."""
    heads: int = 2
    """Query and key heads H; heads that share keys have fewer key heads."""
    length: int = 256
    """Queries L and keys S; pooling and a decode step have one query and S keys."""
    width: int = 32
    """Width of queries, keys and values, per head."""
    regime: Regime = "causal"
    """Where the keys come from; pooling has one query."""
    place: Place = "attention"
    """What is timed: attention beneath its heads, or the slot with its projections."""

    def __post_init__(self) -> None:
        """Check that every size is positive."""
        for name in ("batch", "heads", "length", "width"):
            _at_least(f"attend: {name}", getattr(self, name), 1)

    @property
    def queries(self) -> int:
        """L."""
        return 1 if self.regime == "pool" else self.length

    @property
    def dims(self) -> Dims:
        """Sizes a variant is built with."""
        heads, width = self.heads, self.width
        return Dims(
            heads,
            heads,
            width,
            width,
            width,
            heads * width,
            self.regime,
            source_vocab=SOURCE_VOCAB,
            word_width=width,
        )

    @property
    def drawn(self) -> tuple[int, int, int]:
        """Rows, heads and width of the queries that are drawn; a slot takes whole states."""
        if self.place == "slot":
            return self.batch, 1, self.heads * self.width
        return self.batch, self.heads, self.width

    def show(self) -> str:
        """Print the canonical selector, defaults left out."""
        return Selector("attend", changed_options(self)).show()


@dataclass(frozen=True, kw_only=True)
class Rounds(Config):
    """Timing protocol: rounds that visit every variant in random order.

    A visit settles with one call, then takes as many samples as fit `visit_ms`, and counts as one
    number, their median.
    """

    count: int = 20
    """Rounds."""
    visit_ms: float = 4.0
    """Time for the samples of one visit (ms)."""
    samples: int = 3
    """Fewest samples of a visit, however long a call takes."""
    budget_ms: float = 160.0
    """Time for all visits of one variant to one workload (ms); a variant too slow for it sits out
    some of the rounds."""
    least: int = 5
    """Fewest rounds a slow variant takes part in."""
    most_mb: float = 0.0
    """Memory that one call may be expected to hold (MB); 0 for no limit. The baseline is timed in
    any case, but for its weights."""
    most_s: float = 0.0
    """Time that one call may be expected to take on the reference machine (s); 0 for no limit."""
    workloads: tuple[Selector, ...] = tuple(Selector(name) for name in WORKLOADS)
    """What to time, joined by '+'."""
    clock: Literal["cpu", "wall"] = "cpu"
    """Clock of a CPU: time the process computed, or time that passed. They agree on an idle
    machine; on a busy one wall time is biased against long calls, which are interrupted, while most
    short ones fall between two interruptions. A GPU has its own clock."""
    beside: Selector = Selector(PLAIN)
    """Canonical selector of the baseline, which every round times, too: all ratios are to it, so
    beside another one it is another question."""

    def __post_init__(self) -> None:
        """Check counts and workload names."""
        _at_least("rounds: count", self.count, 1)
        _at_least("rounds: samples", self.samples, 1)
        _at_least("rounds: least", self.least, 1)
        for name in ("visit_ms", "budget_ms"):
            if getattr(self, name) <= 0:
                raise InvalidConfig(f"rounds: {name} must be above 0, got {getattr(self, name)}.")
        for name in ("most_mb", "most_s"):
            if getattr(self, name) < 0:
                raise InvalidConfig(f"rounds: {name} must be >= 0, got {getattr(self, name)}.")
        for selector in self.workloads:
            if selector.show() not in WORKLOADS:
                raise InvalidConfig(
                    f"rounds: no workload {selector.show()!r}; known: {', '.join(WORKLOADS)}."
                )

    @property
    def asked(self) -> tuple[Workload, ...]:
        """Names of the workloads, in the order of `WORKLOADS`."""
        names = {selector.name for selector in self.workloads}
        return tuple(workload for workload in WORKLOADS if workload in names)

    def show(self) -> str:
        """Print the canonical selector, defaults left out."""
        return Selector("rounds", changed_options(self)).show()


ConfigT = TypeVar("ConfigT", bound=Config)


def parse_shape(text: str) -> AttendShape:
    """Read `attend[batch=4,...]`."""
    return _read(AttendShape, "attend", text)


def parse_rounds(text: str) -> Rounds:
    """Read `rounds[count=10,...]`."""
    return _read(Rounds, "rounds", text)


def _read(config: type[ConfigT], name: str, text: str) -> ConfigT:
    selector = parse(text)
    if selector.name != name:
        raise InvalidConfig(f"a speed cell needs {name}[...], got {text!r}.")
    return build_config(config, selector.options, name)


def _at_least(what: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidConfig(f"{what} must be at least {least}, got {value}.")
