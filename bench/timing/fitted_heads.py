"""Heads of a variant, as many and as wide as those of a timed slot.

Heads have a number of their own, made for small networks. A slot is asked with H heads of width E,
and all variants must be timed with those, or neither times nor caches could be compared.
"""

from dataclasses import fields

import torch

from bench.api import registry
from bench.api.call import Dims
from bench.api.errors import InvalidConfig, Refused
from bench.api.head_sizes import key_heads, multiples_of
from bench.api.heads import HEADS
from bench.api.options import complete
from bench.api.plain_text import message_of
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value
from bench.timing.shape import AttendShape


def fitted(spec: VariantSpec, shape: AttendShape) -> VariantSpec:
    """The same variant with the heads of a shape.

    Options `heads` become H, so that a head is as wide as the model width H * E over H. Heads that
    share keys keep their share: two query heads of `gqa[heads=4,kv_heads=2]` have one key head, and
    all heads of `mqa`. Widths that a paper gives as multiples of a head follow E where they have
    their defaults. Heads without a number of heads, such as `raw`, stay as they are.

    Raises:
        InvalidConfig: The heads cannot have this shape, such as one head with two roles.
    """
    chosen = spec.axes["head"][0]
    if chosen.name == "auto":
        return spec
    changed = _fitted(chosen, shape)
    if changed == chosen:
        return spec
    return resolve(spec.complete.with_options(head=(changed,)))


def with_heads_of(spec: VariantSpec, shape: AttendShape) -> VariantSpec:
    """The variant that is timed at a shape: a slot has the heads of the shape, which can be built.

    Raises:
        Refused: They cannot.
    """
    if shape.place != "slot":
        return spec
    try:
        found = fitted(spec, shape)
        dims_of_slot(found, shape)
    except InvalidConfig as error:
        raise Refused(f"its heads cannot have this shape: {message_of(error)}") from error
    return found


def dims_of_slot(spec: VariantSpec, shape: AttendShape) -> Dims:
    """Numbers and widths of what the heads of a timed slot hand to the mechanism.

    Args:
        spec: A fitted variant.
        shape: Of the slot.
    """
    chosen, width = spec.axes["head"][0], shape.heads * shape.width
    if chosen.name == "auto":
        return shape.dims
    with torch.random.fork_rng(devices=()):  # the caller's random state stays as it is
        return registry.make(HEADS, chosen, width, width, shape.regime).dims


def with_heads(chosen: Selector, heads: int) -> Selector:
    """The same heads in another number; those that share keys keep their share."""
    known = {field.name for field in fields(registry.find(HEADS, chosen.name).config)}
    asked = chosen.options.get("heads")
    if "heads" not in known or not isinstance(asked, int):
        return chosen
    options: dict[str, Value] = {"heads": heads}
    for name in ("kv_heads", "key_heads"):
        shared = chosen.options.get(name)
        if isinstance(shared, int):
            options[name] = key_heads(shared, asked, heads)
    return chosen.with_options(**options)


def _fitted(chosen: Selector, shape: AttendShape) -> Selector:
    usual = complete(HEADS, Selector(chosen.name)).options
    options: dict[str, Value] = {}
    for name, times in multiples_of(chosen.name).items():
        if chosen.options[name] == usual[name]:
            # whole numbers, and even ones, because positions turn pairs
            options[name] = max(2, 2 * int(times * shape.width / 2)) if times else 0
    return with_heads(chosen, shape.heads).with_options(**options)
