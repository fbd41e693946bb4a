"""From a cell to a task and a system, with every refusal computed before anything is trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts, JointLoss, Loss, Output, OutputSizes
from bench.api.cell import Cell
from bench.api.config import build_config
from bench.api.errors import Refused
from bench.api.facts import FACTS, Claims, Fact, refusal
from bench.api.resolve import SlotPlace, VariantSpec, build_slot, resolve
from bench.api.selector import Selector, parse, show_value
from bench.api.task import Sizes, Task
from bench.api.variant import Impl, Slot
from bench.train.system import System

PLAIN_POSITIONED = "scaled_dot[position=sinusoid]"
PLAIN = "scaled_dot"
"""What stands in a transformer's other slots: relative order in self-attention, none across."""

PART_AXES = ("encoder", "source_order", "wiring", "combiner")
"""Axes of a backbone whose parts make claims."""


@dataclass(frozen=True)
class Assembled:
    """A task and what will be trained on it."""

    task: Task
    system: System
    spec: VariantSpec


def backbone_parts(backbone: Selector) -> list[tuple[str, type[Claims]]]:
    """Names and claims of what a backbone is made of."""
    options = backbone.options
    named = [(axis, s) for axis in PART_AXES for s in registry.options_of(options.get(axis, ()))]
    return [(s.name, registry.entry(axis, s.name).target) for axis, s in named]


def place_facts(task: type[Task], backbone: Selector) -> frozenset[Fact]:
    """Facts of a place, from data alone: nothing is built and nothing is read."""
    facts = set(task.facts) | {"padding", "stepwise", "source_states"}
    config: Any = build_config(
        registry.entry("backbone", backbone.name).config, backbone.options, backbone.name
    )
    if "wiring" in backbone.options:
        wiring = registry.entry("wiring", config.wiring.name)
        options = build_config(wiring.config, config.wiring.options, config.wiring.name)
        facts |= wiring.target.given(options)
    return frozenset(facts.difference(*(part.takes for _, part in backbone_parts(backbone))))


def cell_refusal(spec: VariantSpec, task: type[Task], backbone: Selector, slot: str) -> str | None:
    """Say why this variant cannot be trained there, or None; needs no data and no device."""
    for axis, fixed in spec.fixes.items():
        if show_value(backbone.options.get(axis, ())) != fixed.show():
            return f"{spec.name} is {axis}={fixed}, and {backbone.name} has no such axis."
    inside = backbone_parts(backbone)
    # widths are known only once something is built; the slot refuses what does not fit
    facts = place_facts(task, backbone) | {slot, "equal_width", "equal_heads"}
    # parts take away what the task gives, and then the reason names them
    facts |= task.facts | {"source_states"}
    parts = spec.claims() + inside
    direction = backbone.options.get("direction")
    if isinstance(direction, tuple) and direction[0].name == "both":
        if "reversible_pairs" not in facts:
            return f"direction=both needs pairs that can be trained both ways, not {task.__name__}."
        takers = [name for name, part in inside if "source_states" in part.takes]
        if takers:
            return f"direction=both needs {FACTS['source_states']}, which {takers[0]} takes away."
        joint = registry.options_of(direction[0].options["joint"])[0]
        parts.append((joint.name, registry.entry("joint", joint.name).target))
    beyond = [
        name
        for name, part in parts
        if issubclass(part, Output | Loss | JointLoss) and "weights" in part.needs
    ]
    wiring = backbone.options.get("wiring")
    if isinstance(wiring, tuple) and not registry.entry("wiring", wiring[0].name).target.attends:
        return f"{beyond[0]} needs attention, and {wiring[0].name} has none." if beyond else None
    slots = registry.entry("backbone", backbone.name).target.slots
    if beyond and "cross" in slots and slot != "cross":
        return f"{beyond[0]} needs weights over the source, and the {slot} slot has none."
    return refusal(parts, facts)


def source_refusal(sizes: Sizes, backbone: str) -> str | None:
    """Say why a backbone cannot read the task's sources, or None."""
    alone = registry.entry("backbone", backbone).target.slots == ("causal",)
    if alone and sizes.source_vocabs:
        return f"{backbone} reads one sequence only, and the task has a source beside it."
    if not alone and not sizes.source_vocabs:
        return f"{backbone} reads a source, and the task has none."
    return None


def assemble(cell: Cell, data_dir: Path | None) -> Assembled:
    """Build everything a quality cell needs, on the CPU.

    Raises:
        Refused: The combination has no meaning.
        DataUnavailable: The data are not on this machine.
    """
    spec = resolve(cell.variant)
    chosen, backbone = parse(cell.task), parse(cell.backbone)
    entry = registry.entry("task", chosen.name)
    reason = cell_refusal(spec, entry.target, backbone, cell.slot)
    if reason is not None:
        raise Refused(reason)
    task: Task = registry.make("task", chosen, cell.seed, data_dir)
    reason = source_refusal(task.sizes, backbone.name)
    if reason is not None:
        raise Refused(reason)
    facts = place_facts(entry.target, backbone)
    impl: Impl = cell.impl  # type: ignore[assignment]  # checked by the planner
    there = _backbone(backbone, spec, task.sizes, cell.slot, facts, impl)
    losses: dict[str, Loss] = {
        selector.name: registry.make("loss", selector) for selector in spec.axes["loss"]
    }
    back, joint = None, None
    direction = backbone.options.get("direction")
    if isinstance(direction, tuple) and direction[0].name == "both":
        named = registry.options_of(direction[0].options["joint"])[0]
        joint = _joint(named)
        back = _backbone(backbone, spec, _reversed(task.sizes), cell.slot, facts, impl)
    return Assembled(task, System(there, losses, back, joint), spec)


def _joint(selector: Selector) -> JointLoss:
    built: JointLoss = registry.make("joint", selector)
    return built


def _reversed(sizes: Sizes) -> Sizes:
    return sizes._replace(source_vocabs=(sizes.target_vocab,), target_vocab=sizes.source_vocabs[0])


def _backbone(
    selector: Selector,
    spec: VariantSpec,
    sizes: Sizes,
    slot: str,
    facts: frozenset[Fact],
    impl: Impl,
) -> Backbone:
    def attach(place: SlotPlace) -> Slot:
        return build_slot(spec, place, impl=impl)

    def attach_default(place: SlotPlace) -> Slot:
        plain = PLAIN if place.regime == "cross" else PLAIN_POSITIONED
        return build_slot(resolve(plain), place)

    def output(widths: OutputSizes) -> Any:
        return registry.make("output", spec.axes["output"][0], widths)

    parts = BackboneParts(
        sizes=sizes,
        attach=attach,
        attach_default=attach_default,
        output=output,
        slot=slot,
        facts=facts,
    )
    built: Backbone = registry.make("backbone", selector, parts)
    return built
