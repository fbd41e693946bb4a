"""What a place offers to attention, said here for everybody who asks.

A variant is trained in a slot of a backbone on a task, timed beneath its heads on random inputs,
and certified wherever anything could be offered.
"""

from bench.api import registry
from bench.api.backbone import BACKBONES
from bench.api.call import Regime
from bench.api.capabilities import Capabilities, Capability, only_needs, part_of
from bench.api.config import build_config
from bench.api.decoder import DECODERS
from bench.api.encoder import ENCODERS
from bench.api.options import complete, inner, options_of
from bench.api.resolve import VariantSpec
from bench.api.selector import Selector
from bench.api.task import Task

EVERY_BACKBONE: frozenset[Capability] = frozenset({"padding", "stepwise", "source_order"})
"""What any backbone offers, unless a part of it removes it."""

UNKNOWN_UNTIL_BUILT: frozenset[Capability] = frozenset({"equal_width", "equal_heads"})
"""Widths are known once something is built; the slot refuses what does not fit."""

BENEATH_HEADS: frozenset[Capability] = frozenset(
    {
        "padding",
        "open_loop",
        "source_tokens",
        "source_states",
        "gold_alignment",
        "token_extras",
        "reversible_pairs",
        "selection",
    }
)
"""Offered where outputs and losses are not run, so that they lack nothing."""

ANYWHERE = BENEATH_HEADS | frozenset[Capability](
    {"stepwise", "two_sources", "relations", "layers_below"}
)
"""Everything a task or a backbone could offer; a variant refused here is refused everywhere."""

Part = tuple[str, type[Capabilities]]
"""Name and class of something that says what it needs, gives, removes and does not support."""

STACK = 4
"""Layers of a timed stack, as many as the default network of heads that read layers below."""

PART_AXES = ("encoder", "source_order", "decoder", "combiner")
"""Axes of a backbone whose parts have capabilities."""


def timed_place(regime: Regime, *, with_heads: bool = False) -> frozenset[Capability]:
    """What a timed place offers; a decode step needs `stepwise` too.

    Args:
        regime: Where the keys come from.
        with_heads: Whether attention is timed with its heads; heads that read the layer below are
            then timed in a stack of layers.
    """
    stacked: frozenset[Capability] = frozenset({"layers_below"} if with_heads else ())
    return BENEATH_HEADS | UNKNOWN_UNTIL_BUILT | {regime} | stacked


def timed_layers(spec: VariantSpec) -> int:
    """Layers that are called where a slot is timed: several where heads read those below them."""
    stacked = any("layers_below" in part.needs for _, part in spec.parts)
    return STACK if stacked else 1


def trained_place(task: type[Task], backbone: Selector) -> frozenset[Capability]:
    """What a backbone on a task offers, from data alone: nothing is built and nothing is read."""
    backbone = complete(BACKBONES, backbone)
    removed = [part.removes for _, part in backbone_parts(backbone)]
    return offered(task, backbone).difference(*removed)


def offered(task: type[Task], backbone: Selector) -> frozenset[Capability]:
    """The same before any part of the backbone removes something, for sentences that name it."""
    registered = registry.find(BACKBONES, backbone.name)
    config = build_config(registered.config, backbone.options, backbone.name)
    found = {*EVERY_BACKBONE, *task.capabilities, *registered.target.given(config)}
    for chosen in options_of(backbone.options.get("decoder", ())):
        decoder = registry.find(DECODERS, chosen.name)
        options = build_config(decoder.config, chosen.options, chosen.name)
        found |= decoder.target.given(options)
        found |= {"source_states"} if decoder.target.attends else set()
    for _, encoder in encoders(backbone):
        found |= encoder.gives
    return frozenset(found)


def backbone_parts(backbone: Selector) -> list[Part]:
    """Names and classes of what a backbone is made of."""
    options = backbone.options
    named = [(axis, s) for axis in PART_AXES for s in options_of(options.get(axis, ()))]
    return [(s.name, part_of(registry.find(axis, s.name).target)) for axis, s in named]


def encoders(backbone: Selector) -> list[Part]:
    """The encoder of a backbone, and those inside it, which give nothing by themselves."""
    found: list[Part] = []
    for chosen in options_of(backbone.options.get("encoder", ())):
        found.append((chosen.name, registry.find(ENCODERS, chosen.name).target))
        found += [
            (inside.name, only_needs(part_of(registry.find(axis, inside.name).target)))
            for axis, inside in inner("encoder", chosen)
        ]
    return found
