"""How a quality cell is trained: the same for every variant of a comparison."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from bench.api.config import Config, FloatRange, build_config, changed_options
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.selector import Selector, parse

POSITIVE, COUNTS = ("lr", "clip"), ("batch", "steps", "evaluate_every")
"""Options that must be above 0, and those that must be at least 1."""


@dataclass(frozen=True, kw_only=True)
class AdamProtocol(Config):
    """AdamW with linear warm-up, a constant rate, linear cooldown, and gradient clipping.

    AdamW is Adam where `weight_decay` is 0, as by default, so the selector says `adam`.
    """

    lr: Annotated[float, FloatRange(3e-4, 3e-2, log=True)] = 3e-3
    """Learning rate after warm-up."""
    warmup: int = 50
    """Steps of linear warm-up."""
    cooldown: float = 0.0
    """Share of the steps, at their end, over which the rate falls linearly to 0.

    The last steps of a constant rate move scores up and down, which a cooldown takes away."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    weight_decay: float = 0.0
    """Decoupled weight decay."""
    batch: int = 32
    """Sequences a step."""
    steps: int = 600
    """Updates at most."""
    cpu_seconds: float = 0.0
    """Training CPU seconds at most (s); 0 for no limit. Evaluation does not count."""
    evaluate_every: int = 100
    """Updates between validations."""
    stop_at: float = 0.0
    """Stop once the ranking metric, or with patience what chooses the weights, reaches this on
    validation; 0 for never."""
    patience: int = 0
    """Halve the rate, or stop, after this many validations in a row without a better one, and test
    the weights of the best; 0 for never, and the last weights."""
    halvings: int = 0
    """How often the rate is halved before patience ends training."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("warmup", "weight_decay", "cpu_seconds", "patience", "halvings"):
            if getattr(self, name) < 0:
                raise InvalidConfig(f"adam: {name} must be >= 0, got {getattr(self, name)}.")
        if self.lr <= 0 or self.clip <= 0 or min(self.batch, self.steps, self.evaluate_every) < 1:
            raise InvalidConfig(
                "adam: lr and clip must be positive, batch, steps and evaluate_every at least 1."
            )
        if not 0 <= self.cooldown <= 1:
            raise InvalidConfig(f"adam: cooldown must lie in [0, 1], got {self.cooldown}.")
        if self.cooldown and (self.patience or self.cpu_seconds):
            raise InvalidConfig(
                "adam: cooldown counts back from the last step, which patience and cpu_seconds "
                "leave open; set one or the other."
            )
        if self.halvings and not self.patience:
            raise InvalidConfig("adam: halvings come after patience; set patience, too.")

    def rate_at(self, step: int) -> float:
        """Learning rate of an update; the first one has number 0.

        >>> protocol = AdamProtocol(lr=1.0, steps=100, warmup=10, cooldown=0.5)
        >>> [protocol.rate_at(step) for step in (0, 9, 50, 75, 99)]
        [0.1, 1.0, 1.0, 0.5, 0.02]
        """
        share = min(1.0, (step + 1) / max(1, self.warmup))
        if self.cooldown:
            share = min(share, (self.steps - step) / (self.cooldown * self.steps))
        return self.lr * share


@lru_cache(maxsize=256)
def read_protocol(selector: Selector | str) -> AdamProtocol:
    """Read a training selector, `adam[lr=0.003,steps=600]`.

    Raises:
        UnknownName: There is no such protocol or option.
        InvalidConfig: An option has a wrong type or value.
    """
    asked = parse(selector) if isinstance(selector, str) else selector
    if asked.name != "adam":
        raise UnknownName.among("training protocol", asked.name, ["adam"])
    return build_config(AdamProtocol, asked.options, "adam")


def refuse_small_numbers(selector: Selector | str) -> None:
    """Name the option and the value that `AdamProtocol` would refuse together with others.

    The class itself says less: all of its code is part of the hash of every trained cell.

    Raises:
        InvalidConfig: A number is too small.
    """
    asked = parse(selector) if isinstance(selector, str) else selector
    for name, value in asked.options.items() if asked.name == "adam" else ():
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if name in POSITIVE and value <= 0:
            raise InvalidConfig(f"adam: {name} must be above 0, got {value}.")
        if name in COUNTS and value < 1:
            raise InvalidConfig(f"adam: {name} must be at least 1, got {value}.")


def canonical_protocol(selector: Selector | str) -> Selector:
    """Leave the defaults out.

    Raises:
        UnknownName: There is no such protocol or option.
        InvalidConfig: An option has a wrong type or value.
    """
    refuse_small_numbers(selector)
    return Selector("adam", changed_options(read_protocol(selector)))
