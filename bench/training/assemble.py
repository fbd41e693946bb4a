"""From a cell to a task and a system, with every refusal computed before anything is trained."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts
from bench.api.capabilities import Capabilities, Capability, only_needs, refusal
from bench.api.cell import Cell
from bench.api.config import build_config
from bench.api.decoder import Decoder
from bench.api.encoder import Encoder
from bench.api.errors import Refused
from bench.api.loss import JointLoss, Loss, LossSizes
from bench.api.output import Output, OutputSizes
from bench.api.registry import DEFAULTS
from bench.api.resolve import SlotPlace, VariantSpec, build_slot, resolve
from bench.api.selector import Selector, parse
from bench.api.task import Sizes, Task
from bench.api.variant import Impl, Slot
from bench.training.system import System

PLAIN_POSITIONED = "scaled_dot[position=sinusoid]"
PLAIN = "scaled_dot"
"""What stands in a backbone's other slots: relative order in self-attention, none elsewhere."""
BEYOND = (Output, Loss, JointLoss)
"""What looks at attention from outside."""

Part = tuple[str, type[Capabilities]]

PART_AXES = ("encoder", "source_order", "decoder", "combiner")
"""Axes of a backbone whose parts make claims."""


@dataclass(frozen=True)
class Assembled:
    """A task and what will be trained on it."""

    task: Task
    system: System
    spec: VariantSpec


def backbone_parts(backbone: Selector) -> list[Part]:
    """Names and claims of what a backbone is made of."""
    options = backbone.options
    named = [(axis, s) for axis in PART_AXES for s in registry.options_of(options.get(axis, ()))]
    return [(s.name, registry.find(axis, s.name).target) for axis, s in named]


def place_capabilities(task: type[Task], backbone: Selector) -> frozenset[Capability]:
    """Capabilities of a place, from data alone: nothing is built and nothing is read."""
    backbone = registry.complete("backbone", backbone)
    taken = [part.removes for _, part in backbone_parts(backbone)]
    return _offered(task, backbone).difference(*taken)


def _offered(task: type[Task], backbone: Selector) -> frozenset[Capability]:
    """Capabilities of a place before any part of the backbone takes some away."""
    registered = registry.find("backbone", backbone.name)
    config: Any = build_config(registered.config, backbone.options, backbone.name)
    capabilities = {
        *task.capabilities,
        *registered.target.given(config),
        "padding",
        "stepwise",
        "source_order",
    }
    if "decoder" in backbone.options:
        decoder = registry.find("decoder", config.decoder.name)
        options = build_config(decoder.config, config.decoder.options, config.decoder.name)
        capabilities |= decoder.target.given(options)
        capabilities |= {"source_states"} if decoder.target.attends else set()
    for _, encoder in _encoders(backbone):
        capabilities |= encoder.gives
    return frozenset(capabilities)


def _encoders(backbone: Selector) -> list[tuple[str, type[Capabilities]]]:
    """The encoder of a backbone, and those inside it, which give nothing by themselves."""
    found: list[tuple[str, type[Capabilities]]] = []
    for chosen in registry.options_of(backbone.options.get("encoder", ())):
        found.append((chosen.name, registry.find("encoder", chosen.name).target))
        found += [
            (inside.name, only_needs(registry.find(axis, inside.name).target))
            for axis, inside in registry.inner("encoder", chosen)
        ]
    return found


def cell_refusal(spec: VariantSpec, task: type[Task], backbone: Selector, slot: str) -> str | None:
    """Say why this variant cannot be trained there, or None; needs no data and no device."""
    backbone = registry.complete("backbone", backbone)
    reason = _fixes_refusal(spec, backbone)
    if reason is not None:
        return reason
    # widths are known only once something is built; the slot refuses what does not fit
    capabilities = _offered(task, backbone) | {slot, "equal_width", "equal_heads"}
    if _feed_width(spec, 1):
        capabilities -= {"open_loop"}
    parts = spec.capabilities()
    wanted = [_search_needs(backbone)]
    direction = backbone.options.get("direction")
    if isinstance(direction, tuple) and direction[0].name == "both":
        if "reversible_pairs" not in capabilities:
            return f"direction=both needs pairs that can be trained both ways, not {task.__name__}."
        # weights of the two directions are compared place by place
        wanted.append(("direction=both", frozenset({"source_states", "source_order"})))
        joint = registry.options_of(direction[0].options["joint"])[0]
        parts.append((joint.name, registry.find("joint", joint.name).target))
    reason = _output_refusal(spec, task, backbone)
    reason = reason or _weights_refusal(parts, wanted, backbone, slot)
    reason = reason or _streaming_refusal(parts, backbone)
    asked = [*_asked(parts, backbone), *_encoders(backbone)]
    return reason or refusal(asked, capabilities, wanted)


def _fixes_refusal(spec: VariantSpec, backbone: Selector) -> str | None:
    """Say which axis that the variant fixes stands otherwise in the backbone, or None."""
    config = build_config(
        registry.find("backbone", backbone.name).config, backbone.options, backbone.name
    )
    has = {field.name: getattr(config, field.name) for field in fields(config)}
    for axis, fixed in spec.fixes.items():
        if axis not in has:
            return f"{spec.name} is {axis}={fixed}, and {backbone.name} has no such axis."
    for axis, fixed in spec.fixes.items():
        found = registry.complete(axis, has[axis])
        if found.show() != fixed.show():
            return f"{spec.name} is {axis}={fixed}, and this backbone has {axis}={found}."
    return None


def _output_refusal(spec: VariantSpec, task: type[Task], backbone: Selector) -> str | None:
    """Say why the output cannot answer this task through this backbone, or None."""
    name = spec.axes["output"][0].name
    if registry.find("output", name).target.sequence_only and task.ranks_tokens:
        return f"{name} predicts no single words, by which {task.__name__} is ranked."
    if task.regresses and name != DEFAULTS["output"]:
        return f"{name} predicts words, and {task.__name__} asks for numbers."
    if task.regresses and not registry.find("backbone", backbone.name).target.gives_numbers:
        return f"{backbone.name} says words, and {task.__name__} asks for numbers."
    if _feed_width(spec, 1) and "decoder" not in backbone.options:
        return f"{name} feeds the decoder word by word, and {backbone.name} reads all at once."
    return None


def _weights_refusal(
    parts: list[Part],
    wanted: list[tuple[str, frozenset[Capability]]],
    backbone: Selector,
    slot: str,
) -> str | None:
    """Say why there are no weights over the source for those parts that look at them, or None."""
    beyond = [name for name, part in parts if issubclass(part, BEYOND) and "weights" in part.needs]
    beyond += [name for name, needs in wanted if needs & {"weights", "stream"}]
    if not beyond:
        return None
    decoder = _decoder(backbone)
    if decoder is not None and not decoder[1].attends:
        return f"{beyond[0]} needs attention, and {decoder[0]} has none."
    slots = registry.find("backbone", backbone.name).target.slots
    if "cross" in slots and slot != "cross":
        return f"{beyond[0]} needs weights over the source, and the {slot} slot has none."
    return None


def _streaming_refusal(parts: list[Part], backbone: Selector) -> str | None:
    """Say why what an output looks at is not there while a search streams, or None."""
    chosen = backbone.options.get("search")
    if not isinstance(chosen, tuple):
        return None
    search = registry.find("search", chosen[0].name)
    if search.target.read != "stream":
        return None
    for name, part in parts:
        whole = "weights" in part.needs or "reads_source" in part.gives
        if issubclass(part, Output) and whole:
            return f"{search.name} reads the source key by key, and {name} looks at all of it."
    return None


def _asked(parts: list[Part], backbone: Selector) -> list[Part]:
    """The parts that are used there, and those of the backbone."""
    decoder = _decoder(backbone)
    if decoder is not None and not decoder[1].attends:
        # the attention is named but never asked, so it may need what it likes
        parts = [part for part in parts if issubclass(part[1], BEYOND)]
    return [*parts, *backbone_parts(backbone)]


def _decoder(backbone: Selector) -> tuple[str, type[Decoder]] | None:
    """Name and class of the backbone's decoder, where it has one."""
    chosen = backbone.options.get("decoder")
    if not isinstance(chosen, tuple):
        return None
    return chosen[0].name, registry.find("decoder", chosen[0].name).target


def _search_needs(backbone: Selector) -> tuple[str, frozenset[Capability]]:
    """Name of the backbone's search, and what it needs under its options."""
    chosen = backbone.options.get("search")
    if not isinstance(chosen, tuple):
        return "", frozenset()
    found = registry.find("search", chosen[0].name)
    config = build_config(found.config, chosen[0].options, found.name)
    return found.name, found.target.wanted(config)


def source_refusal(sizes: Sizes, backbone: str) -> str | None:
    """Say why a backbone cannot read the task's sources, or None."""
    target = registry.find("backbone", backbone).target
    if (any(sizes.source_frames) or sizes.input_frames) and not target.reads_frames:
        return f"{backbone} reads words, and the task has frames (pictures, sound, numbers)."
    alone = target.slots == ("causal",)
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
    chosen = parse(cell.task)
    backbone = registry.complete("backbone", parse(cell.backbone))
    registered = registry.find("task", chosen.name)
    reason = cell_refusal(spec, registered.target, backbone, cell.slot)
    if reason is not None:
        raise Refused(reason)
    task: Task = registry.make("task", chosen, cell.seed, data_dir)
    reason = source_refusal(task.sizes, backbone.name)
    if reason is not None:
        raise Refused(reason)
    capabilities = place_capabilities(registered.target, backbone)
    impl: Impl = cell.impl  # type: ignore[assignment]  # checked by the planner
    there = _backbone(backbone, spec, task.sizes, cell.slot, capabilities, impl)
    losses = _losses(spec, there)
    back, joint = None, None
    direction = backbone.options.get("direction")
    if isinstance(direction, tuple) and direction[0].name == "both":
        named = registry.options_of(direction[0].options["joint"])[0]
        joint = _joint(named)
        back = _backbone(backbone, spec, _reversed(task.sizes), cell.slot, capabilities, impl)
    return Assembled(task, System(there, losses, back, joint), spec)


def _losses(spec: VariantSpec, backbone: Backbone) -> dict[str, Loss]:
    slots = backbone.variant_slots()
    dims = slots[0].heads.dims if slots else None
    known = backbone.output.sizes
    sizes = LossSizes(
        source=dims.kv_heads * dims.value_width if dims is not None else 0,
        states=known.states,
        embedded=known.embedded,
    )
    losses: dict[str, Loss] = {
        selector.name: registry.make("loss", selector) for selector in spec.axes["loss"]
    }
    for loss in losses.values():
        loss.attach(sizes)
    return losses


def _feed_width(spec: VariantSpec, source: int) -> int:
    """What the output adds to each decoder input, for source states of a width."""
    chosen = spec.axes["output"][0]
    registered = registry.find("output", chosen.name)
    config = build_config(registered.config, chosen.options, chosen.name)
    width: int = registered.target.feed_width(config, source)
    return width


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
    capabilities: frozenset[Capability],
    impl: Impl,
) -> Backbone:
    def attach(place: SlotPlace) -> Slot:
        return build_slot(spec, place, impl=impl)

    def attach_default(place: SlotPlace) -> Slot:
        plain = PLAIN if place.regime in ("cross", "pool") else PLAIN_POSITIONED
        return build_slot(resolve(plain), place)

    def output(widths: OutputSizes) -> Any:
        return registry.make("output", spec.axes["output"][0], widths)

    def feed_width(source: int) -> int:
        return _feed_width(spec, source)

    parts = BackboneParts(
        sizes=sizes,
        attach=attach,
        attach_default=attach_default,
        output=output,
        feed_width=feed_width,
        slot=slot,
        capabilities=capabilities,
    )
    built: Backbone = registry.make("backbone", selector, parts)
    for part in built.modules():
        if isinstance(part, Encoder):
            part.adapt(sizes)
    return built
