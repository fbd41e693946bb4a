"""Sizes and learning rates that `bench calibrate` found on validation, stored beside the task.

A task declares the settings that may be chosen, cheapest first. The choice and its reasons are in
`calibration/<task>.json` in the folder of the task's module. Plans read it when the tasks are
imported, so that planning itself touches no file.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.api import registry
from bench.api.errors import InvalidConfig
from bench.api.selector import Selector, parse
from bench.api.whole_file import written_whole

FOLDER = "calibration"
ROUNDING = frozenset({"precision", "projection"})
"""Options of a backbone that say how products are rounded; a learning rate holds for all values."""
_CHOICES: dict[str, tuple["Choice", ...]] = {}
"""By name of the task; a task that was looked for and has none has an empty tuple."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A size of a task that calibration may choose; what it leaves out is that of the preset."""

    options: str
    """Task options as a selector of the same name, `transduction[beyond=10]`."""
    protocol: str = "adam"
    """Training options as a selector, `adam[evaluate_every=25]`."""
    given: str = ""
    """Why it stands without being judged, in one sentence; empty where the rule has to be kept."""

    @property
    def name(self) -> str:
        """One line for people and for files."""
        return f"{self.options} / {self.protocol}"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen for one task at the sizes of one preset, and why."""

    task: str
    """Canonical selector of what was asked."""
    preset: str
    chosen: Setting | None
    """None where no setting keeps the rule."""
    why: str
    """What was seen of the settings, in sentences."""
    rule: str
    """What a setting has to keep, in one sentence."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Learning rate by competitor; empty where not all of them had the same number of trials."""
    baseline: str = ""
    """The competitor that is the baseline; its rate is that of variants which were not tried."""
    trials: tuple[Mapping[str, Any], ...] = ()
    """Every trial with its validation value."""
    seconds: float = 0.0
    """CPU seconds of one cell at the size that was chosen, for the planner; 0 where not known."""
    commit: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def options(self) -> Selector | None:
        """Task options that were chosen; None where none were."""
        return parse(self.chosen.options) if self.chosen else None

    @cached_property
    def protocol(self) -> Selector:
        """Training options that were chosen."""
        return parse(self.chosen.protocol) if self.chosen else Selector("adam")

    def rate(self, competitor: str) -> float | None:
        """Learning rate of a competitor, that of the baseline for one that was not tried."""
        return self.rates.get(competitor, self.rates.get(self.baseline))

    def to_json(self) -> dict[str, Any]:
        """Plain data for the file."""
        return asdict(self)


def competitor(variant: str, backbone: str, slot: str) -> str:
    """The name under which a variant in its place has a learning rate.

    Networks that differ in how products are rounded share it.

    Args:
        variant: Canonical selector.
        backbone: Canonical selector.
        slot: Slot of the backbone.
    """
    network = parse(backbone)
    options = {key: value for key, value in network.options.items() if key not in ROUNDING}
    return f"{variant} @ {Selector(network.name, options).show()} / {slot}"


def choice_of(task: Selector, preset: str) -> Choice | None:
    """What was chosen for a task, or None; `read_choices` has read it before.

    Args:
        task: Canonical selector of what was asked, without the options of a preset.
        preset: Name of the preset that has the sizes.
    """
    asked = task.show()
    for one in _CHOICES.get(task.name, ()):
        if (one.task, one.preset) == (asked, preset):
            return one if one.chosen else None
    return None


def choices_file(name: str) -> Path:
    """The file that holds what was chosen for a task."""
    module = sys.modules[registry.find("task", name).module]
    return Path(module.__file__ or "").parent / FOLDER / f"{name}.json"


def read_choices() -> None:
    """Read what was chosen for every registered task that has not been looked at.

    Raises:
        InvalidConfig: A file is no calibration.
    """
    for name in registry.registrations("task"):
        if name not in _CHOICES:
            _CHOICES[name] = stored_choices(name)


def stored_choices(name: str) -> tuple[Choice, ...]:
    """What the file of a task says now.

    Raises:
        InvalidConfig: The file is no calibration.
    """
    path = choices_file(name)
    if not path.is_file():
        return ()
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_choice(one) for one in held["choices"])
    except (ValueError, KeyError, TypeError) as error:
        why = "its fields are not those of a choice"
        if isinstance(error, json.JSONDecodeError):
            why = f"line {error.lineno} is no JSON"
        raise InvalidConfig(
            f"{path} is no calibration ({why}); remove it and run `bench calibrate {name}`."
        ) from error


def _choice(data: dict[str, Any]) -> Choice:
    chosen = data.pop("chosen")
    trials = tuple(data.pop("trials"))
    return Choice(**data, chosen=Setting(**chosen) if chosen else None, trials=trials)


def keep_choice(name: str, new: Choice) -> Path:
    """Store a choice in the place of an earlier one; returns the file.

    Raises:
        InvalidConfig: The file cannot be written.
    """
    others = [
        one for one in stored_choices(name) if (one.task, one.preset) != (new.task, new.preset)
    ]
    every = sorted((*others, new), key=lambda one: (one.preset, one.task))
    path = choices_file(name)
    text = json.dumps({"choices": [one.to_json() for one in every]}, indent=1, ensure_ascii=False)
    try:
        with written_whole(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidConfig(
            f"cannot write {path} ({error.strerror}); calibrate in a checkout that can be written."
        ) from error
    _CHOICES[name] = tuple(every)
    return path
