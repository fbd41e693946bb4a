"""What a study may change of a variant and its training, and the cell of one trial.

Nothing here knows Optuna; `bench.study` asks it for the parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.api import registry
from bench.api.config import Range, search_ranges
from bench.api.errors import InvalidConfig, Refused
from bench.api.options import complete, options_of
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value
from bench.api.task import Task
from bench.running.quality_cells import PlannedCell, quality_cell
from bench.study_request import StudyRequest
from bench.training.protocol import AdamProtocol
from results.row import Record

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


def knobs_of(spec: VariantSpec, asked: StudyRequest) -> list[Knob]:
    """The learning rate, and at most two options of the components in the variant.

    What was asked with a value of its own keeps it.
    """
    training = asked.request.protocol_selector
    knobs = []
    if training is None or "lr" not in training.options:
        knobs.append(Knob("lr", "protocol", "lr", search_ranges(AdamProtocol)["lr"]))
    own = []
    usual = {(axis, one.name): one for axis, one in _components(resolve(Selector(spec.name)))}
    for axis, selector in _components(spec):
        config = registry.find(axis, selector.name).config
        before = usual.get((axis, selector.name)) or complete(axis, Selector(selector.name))
        own += [
            Knob(f"{selector.name}.{key}", axis, key, found)
            for key, found in search_ranges(config).items()
            if selector.options[key] == before.options[key]
        ]
    return [*knobs, *own[:MOST_KNOBS]]


def _components(spec: VariantSpec) -> list[tuple[str, Selector]]:
    """What a variant is made of, with the axis of each."""
    owned = [] if spec.mechanism is None else [("mechanism", spec.mechanism)]
    chosen = [(axis, one) for axis, several in spec.axes.items() for one in several]
    return [*owned, *((axis, one) for axis, one in chosen if one.name != "auto")]


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


def drawn_cell(
    spec: VariantSpec, asked: StudyRequest, knobs: Sequence[Knob], parameters: Parameters
) -> PlannedCell | str:
    """The cell of a trial, or why there is none: options are drawn independently of one another.

    So some do not go together, as `start` and `by_layer` of `differential`.
    """
    try:
        return trial_cell(spec, asked, knobs, parameters)
    except (InvalidConfig, Refused) as error:
        return str(error)


def choosing_metrics(target: type[Task]) -> tuple[str, ...]:
    """Metrics of validation by which trials are chosen, the first one that has a value.

    What chose the weights of a trial comes first (ADR 29). Without patience nothing did, and what
    ranks chooses.
    """
    ranks = target.ranking_metric().name
    beyond = target.headline is not None and target.headline.kind == "beyond_training"
    return (target.choosing_metric().name, ranks) if beyond else (ranks,)


def choosing_value(record: Record, target: type[Task]) -> tuple[str, float] | None:
    """By which metric a trial is chosen, and its value on validation; None where it has none."""
    for metric in choosing_metrics(target):
        value = record.value(metric, "validation")
        if value is not None:
            return metric, value
    return None


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
