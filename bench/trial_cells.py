"""What a study may change of a variant and its training, and the cell of one trial.

Nothing here knows Optuna; `bench.study` asks it for the parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.api import registry
from bench.api.config import Range, search_ranges
from bench.api.options import options_of
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value
from bench.running.quality_cells import PlannedCell, quality_cell
from bench.study_request import StudyRequest
from bench.training.protocol import AdamProtocol

MOST_KNOBS = 2
"""Options of a variant that a study may change, so that no variant gets a larger space."""
Parameters = dict[str, bool | int | float | str]
"""What Optuna chose, by the name of the knob."""


@dataclass(frozen=True)
class Knob:
    """One thing a study turns: where it lives and which values it may take."""

    name: str
    """Parameter name in Optuna: `lr`, `additive.width`."""
    axis: str
    """`protocol`, or the axis of the component that owns the option."""
    option: str
    range: Range


def knobs_of(spec: VariantSpec) -> list[Knob]:
    """The learning rate, and at most two options of the components in the variant."""
    rates = search_ranges(AdamProtocol)
    knobs = [Knob("lr", "protocol", "lr", rates["lr"])]
    owned: list[tuple[str, Selector]] = []
    if spec.mechanism is not None:
        owned.append(("mechanism", spec.mechanism))
    owned += [(axis, s) for axis, chosen in spec.axes.items() for s in chosen if s.name != "auto"]
    for axis, selector in owned:
        ranges = search_ranges(registry.find(axis, selector.name).config)
        knobs += [Knob(f"{selector.name}.{key}", axis, key, r) for key, r in ranges.items()]
    return knobs[: 1 + MOST_KNOBS]


def trial_cell(
    spec: VariantSpec, asked: StudyRequest, knobs: Sequence[Knob], parameters: Parameters
) -> PlannedCell:
    """The cell of one trial: the variant and the protocol with the parameters put in."""
    protocol: dict[str, Value] = {}
    if asked.request.protocol_selector is not None:
        protocol.update(asked.request.protocol_selector.options)
    if asked.trial_seconds > 0:
        # the end of a trial is not known in steps, so a rate cannot fall towards it
        protocol = {"cooldown": 0.0, **protocol, "cpu_seconds": asked.trial_seconds}
    variant = spec.complete
    for knob in knobs:
        value = parameters[knob.name]
        if knob.axis == "protocol":
            protocol[knob.option] = _as_option(value)
        else:
            variant = _set_option(variant, knob, value)
    request = replace(asked.request, training=Selector("adam", protocol).show())
    default_task = DefaultTask(task=asked.request.tasks)
    planned = quality_cell(request, resolve(variant), default_task, asked.request.first_seed)
    return replace(planned, cell=replace(planned.cell, kind="trial"))


def _set_option(variant: Selector, knob: Knob, value: bool | int | float | str) -> Selector:
    put = _as_option(value)
    if knob.axis == "mechanism":
        return variant.with_options(**{knob.option: put})
    owner = knob.name.rpartition(".")[0]
    # read from the variant, not the spec: an earlier knob may have changed the same component
    changed = tuple(
        s.with_options(**{knob.option: put}) if s.name == owner else s
        for s in options_of(variant.options[knob.axis])
    )
    return variant.with_options(**{knob.axis: changed})


def _as_option(value: bool | int | float | str) -> Value:
    return (Selector(value),) if isinstance(value, str) else value


def final_cell(planned: PlannedCell, name: str, seed: int) -> PlannedCell:
    """The cell that reruns a best trial on a fresh seed, under the name that reports print.

    Args:
        planned: The best trial.
        name: The variant that was tuned, as asked.
        seed: The fresh seed.
    """
    cell = replace(planned.cell, kind="quality", seed=seed)
    return replace(planned, cell=cell, shown_variant=f"{name} tuned")
