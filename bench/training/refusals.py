"""Why a variant cannot be trained somewhere: every refusal, before anything is built or read."""

from dataclasses import fields

from bench.api import registry
from bench.api.axes import DEFAULTS
from bench.api.backbone import BACKBONES
from bench.api.batch import Sizes
from bench.api.call import Regime
from bench.api.capabilities import Capability, refusal
from bench.api.config import build_config
from bench.api.decoder import DECODERS, Decoder
from bench.api.loss import JOINTS, JointLoss, Loss
from bench.api.options import complete, options_of
from bench.api.output import OUTPUTS, Output
from bench.api.places import UNKNOWN_UNTIL_BUILT, Part, backbone_parts, encoders, offered
from bench.api.resolve import VariantSpec
from bench.api.search import SEARCHES
from bench.api.selector import Selector
from bench.api.task import Task

BEYOND = (Output, Loss, JointLoss)
"""What reads attention and is no part of it."""


def cell_refusal(
    spec: VariantSpec, task: type[Task], backbone: Selector, slot: Regime
) -> str | None:
    """Say why this variant cannot be trained there, or None; needs no data and no device."""
    backbone = complete(BACKBONES, backbone)
    reason = _fixes_refusal(spec, backbone)
    if reason is not None:
        return reason
    capabilities = offered(task, backbone) | UNKNOWN_UNTIL_BUILT | {slot}
    if feed_width(spec, 1):
        capabilities -= {"open_loop"}
    parts = spec.parts
    wanted = [_search_needs(backbone)]
    joint = joint_of(backbone)
    if joint is not None:
        if "reversible_pairs" not in capabilities:
            return f"{joint.name} needs pairs that can be trained both ways, not {task.__name__}."
        # weights of the two directions are compared place by place
        wanted.append((joint.name, frozenset({"source_states", "source_order"})))
        parts.append((joint.name, registry.find(JOINTS, joint.name).target))
    reason = _output_refusal(spec, task, backbone)
    reason = reason or _weights_refusal(parts, wanted, backbone, slot)
    reason = reason or _streaming_refusal(parts, backbone)
    asked = [*_asked(parts, backbone), *encoders(backbone)]
    return reason or refusal(asked, capabilities, wanted)


def _fixes_refusal(spec: VariantSpec, backbone: Selector) -> str | None:
    """Say which axis that the variant fixes has another choice in the backbone, or None."""
    config = build_config(
        registry.find(BACKBONES, backbone.name).config, backbone.options, backbone.name
    )
    has = {field.name: getattr(config, field.name) for field in fields(config)}
    for axis, fixed in spec.fixes.items():
        if axis not in has:
            return f"{spec.name} is {axis}={fixed}, and {backbone.name} has no such axis."
    for axis, fixed in spec.fixes.items():
        found = complete(axis, has[axis])
        if found.show() != fixed.show():
            return f"{spec.name} is {axis}={fixed}, and this backbone has {axis}={found}."
    return None


def _output_refusal(spec: VariantSpec, task: type[Task], backbone: Selector) -> str | None:
    """Say why the output cannot answer this task through this backbone, or None."""
    name = spec.axes["output"][0].name
    if registry.find(OUTPUTS, name).target.sequence_only and task.ranks_tokens:
        return f"{name} predicts no single words, by which {task.__name__} is ranked."
    if task.regresses and name != DEFAULTS["output"]:
        return f"{name} predicts words, and {task.__name__} asks for numbers."
    if task.regresses and not registry.find(BACKBONES, backbone.name).target.gives_numbers:
        return f"{backbone.name} says words, and {task.__name__} asks for numbers."
    if feed_width(spec, 1) and "decoder" not in backbone.options:
        return f"{name} feeds the decoder word by word, and {backbone.name} reads all at once."
    return None


def _weights_refusal(
    parts: list[Part],
    wanted: list[tuple[str, frozenset[Capability]]],
    backbone: Selector,
    slot: str,
) -> str | None:
    """Say why there are no weights over the source for the parts that read them, or None."""
    beyond = [name for name, part in parts if issubclass(part, BEYOND) and "weights" in part.needs]
    beyond += [name for name, needs in wanted if needs & {"weights", "stream"}]
    if not beyond:
        return None
    decoder = _decoder(backbone)
    if decoder is not None and not decoder[1].attends:
        return f"{beyond[0]} needs attention, and {decoder[0]} has none."
    slots = registry.find(BACKBONES, backbone.name).target.slots
    if "cross" in slots and slot != "cross":
        return f"{beyond[0]} needs weights over the source, and the {slot} slot has none."
    return None


def _streaming_refusal(parts: list[Part], backbone: Selector) -> str | None:
    """Say why a streaming search does not give what an output reads, or None."""
    chosen = backbone.options.get("search")
    if not isinstance(chosen, tuple):
        return None
    search = registry.find(SEARCHES, chosen[0].name)
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
    return chosen[0].name, registry.find(DECODERS, chosen[0].name).target


def _search_needs(backbone: Selector) -> tuple[str, frozenset[Capability]]:
    """Name of the backbone's search, and what it needs under its options."""
    chosen = backbone.options.get("search")
    if not isinstance(chosen, tuple):
        return "", frozenset()
    found = registry.find(SEARCHES, chosen[0].name)
    config = build_config(found.config, chosen[0].options, found.name)
    return found.name, found.target.wanted(config)


def joint_of(backbone: Selector) -> Selector | None:
    """The loss that joins the two directions of a backbone; None where it has one direction."""
    for direction in options_of(backbone.options.get("direction", ())):
        for joint in options_of(direction.options.get("joint", ())):
            return joint
    return None


def source_refusal(sizes: Sizes, backbone: str) -> str | None:
    """Say why a backbone cannot read the task's sources, or None."""
    target = registry.find(BACKBONES, backbone).target
    if (any(sizes.source_frames) or sizes.input_frames) and not target.reads_frames:
        return f"{backbone} reads words, and the task has frames (pictures, sound, numbers)."
    alone = target.slots == ("causal",)
    if alone and sizes.source_vocabs:
        return f"{backbone} reads one sequence only, and the task has a source beside it."
    if not alone and not sizes.source_vocabs:
        return f"{backbone} reads a source, and the task has none."
    return None


def feed_width(spec: VariantSpec, source: int) -> int:
    """What the output adds to each decoder input, for source states of a width."""
    chosen = spec.axes["output"][0]
    registered = registry.find(OUTPUTS, chosen.name)
    config = build_config(registered.config, chosen.options, chosen.name)
    return registered.target.feed_width(config, source)
