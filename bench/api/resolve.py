"""From a variant selector to components: defaults filled in, refusals computed, modules built."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from bench.api import registry
from bench.api.axes import ABSENT, BACKBONE_AXES, CHAIN_AXES, DEFAULTS, PLAIN, STACKED, VARIANT_AXES
from bench.api.backbone import BACKBONES
from bench.api.capabilities import Capabilities, Capability, only_needs, part_of, refusal
from bench.api.chain import Chain
from bench.api.errors import InvalidConfig, Refused, UnknownName
from bench.api.options import canonical, complete, default_moved, inner, options_of
from bench.api.registry import Recipe, Registration
from bench.api.selector import Selector, Value, parse, parse_names
from bench.api.variant import MECHANISMS

Axes = Mapping[str, tuple[Selector, ...]]

USUAL: Axes = {axis: parse_names(text) for axis, text in DEFAULTS.items()}
"""What a chain uses on an axis that nothing sets, parsed."""


@dataclass(frozen=True)
class VariantSpec:
    """A variant selector with every choice written out."""

    name: str
    registered: Registration[object]
    axes: Axes
    """Selectors by variant axis; empty tuples where an axis has nothing."""
    mechanism: Selector | None
    """Set where one mechanism replaces the chain."""
    fixes: Mapping[str, Selector]
    """Backbone axes that the variant fixes."""

    @cached_property
    def complete(self) -> Selector:
        """The selector with every axis and every option written out."""
        options = {axis: chosen or (Selector(ABSENT[axis]),) for axis, chosen in self._places()}
        own = {} if self.mechanism is None else self.mechanism.options
        return Selector(self.name, {**options, **own})

    @cached_property
    def canonical(self) -> Selector:
        """The selector without what its name alone means; equal variants print alike."""
        usual = dict(resolve(Selector(self.name))._places())
        options: dict[str, Value] = {}
        for axis, chosen in self._places():
            if chosen != usual.get(axis) or any(_default_moved(axis, one) for one in chosen):
                shown = tuple(_canonical(axis, one) for one in chosen)
                options.update(self._short(axis, shown or (Selector(ABSENT[axis]),)))
        if self.mechanism is not None:
            options.update(canonical("mechanism", self.mechanism).options)
        return Selector(self.name, options)

    def _places(self) -> Iterator[tuple[str, tuple[Selector, ...]]]:
        """What stands on each axis of the variant and of the backbone."""
        yield from self.axes.items()
        yield from ((axis, (fixed,)) for axis, fixed in self.fixes.items())

    def _short(self, axis: str, chosen: tuple[Selector, ...]) -> dict[str, Value]:
        """`width=8` for `additive[score=additive[width=8]]`; else the axis and what stands there.

        An option that is named like an axis can only be written inside its component.
        """
        (first, *others) = chosen
        itself = axis == self.registered.axis and first.name == self.name and not others
        if itself and not {*first.options} & {*VARIANT_AXES, *BACKBONE_AXES}:
            return dict(first.options)
        return {axis: chosen}

    @cached_property
    def revision(self) -> str:
        """`name:number` of everything whose code decides the numbers, where it is above 1."""
        return self._revision(tuple(self.axes))

    @cached_property
    def attention_revision(self) -> str:
        """The same for the attention alone, which is what is timed: without output and loss."""
        return self._revision(tuple(axis for axis in self.axes if axis not in ("output", "loss")))

    def _revision(self, axes: tuple[str, ...]) -> str:
        used = [(self.registered.name, self.registered.revision)]
        for axis, chosen in ((axis, self.axes[axis]) for axis in axes):
            for selector in (s for s in chosen if s.name != "auto"):
                named = [(axis, selector), *inner(axis, selector)]
                used += [(s.name, registry.find(a, s.name).revision) for a, s in named]
        return registry.show_revisions(used)

    @cached_property
    def parts(self) -> list[tuple[str, type[Capabilities]]]:
        """Names and classes of all parts, for `refusal`."""
        parts: list[tuple[str, type[Capabilities]]] = []
        if self.mechanism is not None:
            parts.append(
                (self.mechanism.name, registry.find(MECHANISMS, self.mechanism.name).target)
            )
        for axis, chosen in self.axes.items():
            for selector in (one for one in chosen if one.name != "auto"):
                parts.append((selector.name, part_of(registry.find(axis, selector.name).target)))
                parts += [
                    (named.name, only_needs(part_of(registry.find(inside, named.name).target)))
                    for inside, named in inner(axis, selector)
                ]
        if self.mechanism is None:
            parts.append((self.name, Chain))
        return parts

    def refusal(self, given: frozenset[Capability]) -> str | None:
        """Say why this variant cannot stand in a place with these capabilities, or None."""
        return refusal(self.parts, given)


def resolve(selector: Selector | str, *, beneath: bool = False) -> VariantSpec:
    """Write out what a variant selector means.

    Args:
        selector: A variant as on the command line.
        beneath: Leave out the backbone axes that it fixes; for attention in a model of one's own,
            where no backbone is known.

    Raises:
        UnknownName: No recipe, mechanism or component has this name, or an option is unknown.
        InvalidConfig: An option has a wrong value.
    """
    asked = parse(selector) if isinstance(selector, str) else selector
    found = find(asked.name)
    known_axes = (*VARIANT_AXES, *BACKBONE_AXES)
    given = {key: value for key, value in asked.options.items() if key in known_axes}
    own = {key: value for key, value in asked.options.items() if key not in known_axes}
    if found.axis == "mechanism":
        return _resolve_mechanism(found, given, own)
    recipe = found.target if isinstance(found.target, Recipe) else Recipe(axes={}, main=found.axis)
    axes = {axis: _axis(axis, names) for axis, names in USUAL.items()}
    for axis, names in recipe.chosen.items():
        axes[axis] = _axis(axis, names)
    if found.axis != "recipe":
        axes[found.axis] = (Selector(found.name),)
    fixed = {} if beneath else recipe.fixed
    fixes = {axis: complete(axis, selector) for axis, selector in fixed.items()}
    for axis, value in given.items():
        if axis in BACKBONE_AXES:
            fixes[axis] = _fixed(axis, value)
        else:
            axes[axis] = _axis(axis, options_of(value, axis))
    if own:
        axes, fixes = _give_own(found, recipe.main, axes, fixes, own)
    written = {axis: tuple(_written(axis, s) for s in axes[axis]) for axis in VARIANT_AXES}
    return VariantSpec(found.name, found, written, None, fixes)


def find(name: str) -> Registration[object]:
    """Find a recipe, a mechanism or the one component of this name.

    Raises:
        UnknownName: There is none.
        InvalidConfig: The name is the word for nothing, or a component of several axes.
    """
    for axis in ("recipe", "mechanism"):
        if name in registry.registrations(axis):
            return registry.find(axis, name)
    owners = [axis for axis in VARIANT_AXES if name in registry.registrations(axis)]
    if name in ABSENT.values() and owners:
        # the word for nothing is a choice on an axis; alone it could mean anything
        choices = " or ".join(f"{PLAIN}[{axis}={name}]" for axis in owners)
        raise InvalidConfig(f"{name!r} is no variant; write {choices}.")
    if len(owners) == 1:
        return registry.find(owners[0], name)
    if owners:
        choices = " or ".join(f"{PLAIN}[{axis}={name}]" for axis in owners)
        raise InvalidConfig(f"{name!r} is a component of several axes; write {choices}.")
    known = {
        candidate for axis in registry.NAMED_ALONE for candidate in registry.registrations(axis)
    }
    raise UnknownName.among("variant", name, known, see="bench list variants")


def _axis(axis: str, chosen: tuple[Selector, ...]) -> tuple[Selector, ...]:
    """Drop the word for nothing; refuse several where only one makes sense."""
    kept = tuple(s for s in chosen if s.show() != ABSENT.get(axis) or len(chosen) > 1)
    if any(s.name == ABSENT.get(axis) for s in kept):
        raise InvalidConfig(f"{axis}={'+'.join(map(str, chosen))}: 'none' stands alone.")
    if len(kept) > 1 and axis not in STACKED:
        raise InvalidConfig(f"{axis} takes one name, got {'+'.join(map(str, chosen))}.")
    return kept


def _fixed(axis: str, value: Value) -> Selector:
    (chosen,) = _axis(axis, options_of(value, axis))
    return complete(axis, chosen)


def _give_own(
    found: Registration[object],
    main: str,
    axes: dict[str, tuple[Selector, ...]],
    fixes: dict[str, Selector],
    own: dict[str, Value],
) -> tuple[dict[str, tuple[Selector, ...]], dict[str, Selector]]:
    """Pass options without an axis name to the component that the name is about."""
    target = fixes.get(main) or next(iter(axes.get(main, ())), None)
    if target is None or target.name == "auto":  # nothing stands there that could have options
        raise _unknown_option(found.name, min(own), ())
    known = [field.name for field in fields(registry.find(main, target.name).config)]
    for key in own:
        if key not in known:
            raise _unknown_option(found.name, key, known)
    changed = target.with_options(**own)
    if main in fixes:
        return axes, {**fixes, main: complete(main, changed)}
    return {**axes, main: (changed, *axes[main][1:])}, fixes


def _unknown_option(name: str, key: str, known: Iterable[str]) -> InvalidConfig:
    """Suggest an option or an axis, because either may be meant."""
    return InvalidConfig(
        str(UnknownName.among(f"option of {name}", key, [*known, *VARIANT_AXES, *BACKBONE_AXES]))
    )


def _resolve_mechanism(
    found: Registration[object], given: Mapping[str, Value], own: Mapping[str, Value]
) -> VariantSpec:
    target = registry.find(MECHANISMS, found.name).target
    takes, usual = target.takes_positions, {**USUAL, "loss": parse_names(target.usual_loss)}
    has = ("head", *(("position",) if takes else ()), "output", "loss")
    for axis in given:
        if axis in CHAIN_AXES and axis not in has:
            raise InvalidConfig(
                f"{found.name} replaces the whole chain and has no axis {axis!r}; it has "
                f"{', '.join(has[:-1])} and {has[-1]}."
            )
    axes = {}
    for axis in has:
        asked = given.get(axis, usual[axis])
        chosen = _axis(axis, options_of(asked, axis))
        axes[axis] = tuple(_written(axis, s) for s in chosen)
    known = [field.name for field in fields(found.config)]
    for key in own:
        if key not in known:
            raise _unknown_option(found.name, key, known)
    mechanism = complete("mechanism", Selector(found.name, own))
    fixes = {axis: _fixed(axis, value) for axis, value in given.items() if axis in BACKBONE_AXES}
    return VariantSpec(found.name, found, axes, mechanism, fixes)


def _written(axis: str, selector: Selector) -> Selector:
    if axis == "head" and selector.name == "auto":
        if selector.options:
            raise InvalidConfig("head=auto takes no options; name the heads, head=multi[heads=4].")
        return selector
    return complete(axis, selector)


def _canonical(axis: str, selector: Selector) -> Selector:
    return selector if selector.name == "auto" else canonical(axis, selector)


def _default_moved(axis: str, selector: Selector) -> bool:
    return selector.name != "auto" and default_moved(axis, selector)


def canonical_backbone(selector: Selector | str, fixes: Mapping[str, Selector]) -> Selector:
    """A backbone without its defaults, with the axes that a variant fixes put in.

    Raises:
        Refused: The variant fixes an axis that this backbone does not have.
    """
    asked = parse(selector) if isinstance(selector, str) else selector
    known = {field.name for field in fields(registry.find(BACKBONES, asked.name).config)}
    for axis, fixed in fixes.items():
        if axis not in known:
            raise Refused(f"the variant fixes {axis}={fixed}, and {asked.name} has no such axis.")
        asked = asked.with_options(**{axis: (fixed,)})
    return canonical(BACKBONES, asked)
