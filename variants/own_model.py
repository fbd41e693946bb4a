"""Variants for a user's own model."""

from dataclasses import replace

from bench.api import registry
from bench.api.axes import BACKBONE_AXES, PLAIN
from bench.api.build import SlotPlace, build_slot
from bench.api.call import REGIMES, regime_of
from bench.api.capabilities import Capability, part_of
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused, UnknownName
from bench.api.impl import impl_of
from bench.api.loading import load_package
from bench.api.loss import LOSSES, LossSizes
from bench.api.options import options_of
from bench.api.output import OUTPUTS, OutputSizes
from bench.api.registry import Recipe
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value, parse, show_value
from bench.api.variant import Variant
from variants.attention import Attention
from variants.losses.attention_loss import AttentionLoss
from variants.outputs.output_layer import OutputLayer


def load_all() -> None:
    """Import every variant once; calling again costs nothing."""
    load_package("variants")


def build(  # noqa: PLR0913 - what a place has, by keyword
    selector: str,
    *,
    dim: int,
    heads: int | None = None,
    source_dim: int | None = None,
    regime: str = "self",
    source_vocab: int = 0,
    word_dim: int = 0,
    relations: int = 0,
    layers_below: int | None = None,
    impl: str = "auto",
    attention_only: bool = False,
    projection_bias: bool = False,
) -> Attention:
    """Build a variant with its heads, ready to be used in a model.

    Args:
        selector: A variant as on the command line, `shaw_rpr[clip=8]`.
        dim: Width of the queries. The output has it, too, but without heads: then it has the width
            of the source, which is read as it is. Heads that map nothing back, as those of `snail`,
            have a width of their own; `output_width` of what is built says it.
        heads: Number of heads; None for raw states without projections, as in classic decoders, or
            for the number that a variant with heads of its own has.
        source_dim: Width of what is attended to; `dim` if not given.
        regime: Where the keys come from: `cross` (a source), `causal` or `self` (its own queries,
            up to its own place or all), or `pool` (a source, for one query).
        source_vocab: Ids that source tokens can take, where they are handed to `prepare`; 0 where
            they are not.
        word_dim: Width of the embedded words that are handed to `attend` as
            `extras={"word": ...}`; 0 where none are.
        relations: Labels that a pair of tokens can have, where they are handed to `attend` as
            `extras={"relation": ...}`, a number for each query and token; 0 where they are not.
        layers_below: Layers of the same attention below this one, of which one is read: what layer
            `link.layer` attended to is handed to this one as `below`, where there is a `link`; None
            where layers hand nothing on.
        impl: Which code computes it: `auto` (the best there is), `eager` or `sdpa`.
        attention_only: Leave out what a variant has besides its attention: an output layer, a
            loss, a decoder or an encoder of its own, or positions that are added to the input of a
            network, which `attention.variant.embed(x, offset)` adds.
        projection_bias: Whether projections have biases, where heads have this as an option and the
            selector does not write it.

    Raises:
        UnknownName: No such variant, regime or implementation.
        InvalidConfig: A width or a number of heads has no meaning.
        Refused: The variant cannot be used there, or is more than attention; the message says why.
    """
    load_all()
    if regime not in REGIMES:
        raise UnknownName.among("regime", regime, REGIMES)
    code = impl_of(impl)
    _expect_at_least(1, dim=dim, **_given(heads=heads, source_dim=source_dim))
    more = _given(layers_below=layers_below)
    _expect_at_least(0, source_vocab=source_vocab, word_dim=word_dim, relations=relations, **more)
    if regime in ("causal", "self") and source_dim not in (None, dim):
        raise InvalidConfig(
            f'with regime="{regime}" what is attended to are the queries, of width {dim}; leave '
            f'source_dim={source_dim} out, or use regime="cross".'
        )
    asked = parse(selector)
    if not attention_only:
        _refuse_more_than_attention(asked)
    spec = resolve(asked, beneath=True)
    given: set[Capability] = {"padding", "stepwise", *_given_by_output_and_losses(spec)}
    given |= {"source_tokens"} if source_vocab else set()
    given |= {"token_extras"} if word_dim else set()
    given |= {"relations"} if relations else set()
    given |= set() if layers_below is None else {"layers_below"}
    spec = _without_output_and_losses(spec)
    place = SlotPlace(
        regime=regime_of(regime),
        query_width=dim,
        source_width=dim if source_dim is None else source_dim,
        head="raw" if heads is None else f"multi[bias={show_value(projection_bias)},heads={heads}]",
        source_vocab=source_vocab,
        word_width=word_dim,
        relations=relations,
        layer=layers_below or 0,
        below=tuple(range(layers_below or 0)),
        given=frozenset(given),
    )
    spec = _with_heads(asked, spec, heads, projection_bias)
    slot = build_slot(spec, place, impl=code)
    if not attention_only:
        _refuse_positions_of_the_input(asked, slot.variant)
    return Attention(slot.heads, slot.variant, place.source_width, slot.link)


def build_loss(
    selector: str, *, source_dim: int = 0, state_dim: int = 0, word_dim: int = 0
) -> AttentionLoss:
    """Build a loss on attention, `coverage_loss[weight=0.5]`, as a callable.

    Args:
        selector: A loss with its options; `bench list loss` names them.
        source_dim: Width of the values of a key, all heads together, for losses that read them.
        state_dim: Width of decoder states, for losses that predict from them.
        word_dim: Width of decoder inputs, for losses that predict from them.

    Raises:
        UnknownName: No such loss.
        InvalidConfig: An option has a wrong value, or a width has no meaning.
        Refused: The loss has no meaning outside of a network of the bench, or needs a width.
    """
    load_all()
    _expect_at_least(0, source_dim=source_dim, state_dim=state_dim, word_dim=word_dim)
    sizes = LossSizes(source=source_dim, states=state_dim, embedded=word_dim)
    return AttentionLoss(registry.make(LOSSES, parse(selector)), sizes)


def build_output(
    selector: str,
    *,
    vocab: int,
    state_dim: int,
    context_dim: int,
    word_dim: int,
    unk: int,
    source_dim: int = 0,
) -> OutputLayer:
    """Build an output layer, `pointer_generator`, for a decoder of a user's own.

    A lexicon is estimated from training pairs, before training: `layer.fit(pairs)`. In it id 0 is
    padding, which translates to nothing, and 1 and 2 are the beginning and the end, which translate
    to themselves as `unk` does: number the words of a model with a lexicon so.

    Args:
        selector: An output with its options; `bench list output` names them.
        vocab: Size of the vocabulary.
        state_dim: Width of decoder states.
        context_dim: Width of what the attention returns.
        word_dim: Width of decoder inputs.
        unk: Id of the unknown word.
        source_dim: Width of the states of the source; `context_dim` if not given.

    Raises:
        UnknownName: No such output.
        InvalidConfig: An option has a wrong value, a width has no meaning, or the unknown word is
            not in the vocabulary.
        Refused: The output is more than a layer, because it feeds the decoder.
    """
    load_all()
    _expect_at_least(1, vocab=vocab, state_dim=state_dim, context_dim=context_dim)
    _expect_at_least(0, word_dim=word_dim, unk=unk, **_given(source_dim=source_dim))
    if unk >= vocab:
        raise InvalidConfig(f"unk must be an id of the vocabulary, 0 to {vocab - 1}, got {unk!r}.")
    sizes = OutputSizes(
        vocab=vocab,
        states=state_dim,
        context=context_dim,
        embedded=word_dim,
        unk=unk,
        source=source_dim or context_dim,
        source_vocab=vocab,
    )
    chosen = parse(selector)
    _refuse_feeding(chosen, sizes.source)
    return OutputLayer(registry.make(OUTPUTS, chosen, sizes))


def _given(**sizes: int | None) -> dict[str, int]:
    """Those that are not left out."""
    return {name: value for name, value in sizes.items() if value is not None}


def _expect_at_least(least: int, **sizes: int) -> None:
    for name, value in sizes.items():
        # a truth value is a whole number to Python
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least:
            raise InvalidConfig(
                f"{name} must be a whole number of at least {least}, got {value!r}."
            )


def _refuse_feeding(asked: Selector, source_dim: int) -> None:
    """Refuse an output that widens decoder inputs, which a layer behind the decoder never sees."""
    found = registry.find(OUTPUTS, asked.name)
    config = build_config(found.config, asked.options, asked.name)
    if found.target.feed_width(config, source_dim):
        raise Refused(
            f"{asked} feeds the decoder with what it reads of the last word, which a layer behind "
            "the decoder cannot; turn that off, as copynet[selective_read=false] does."
        )


def _refuse_more_than_attention(asked: Selector) -> None:
    """Refuse what would lose a part without a word."""
    spec = resolve(asked, beneath=True)
    recipe = spec.registered.target
    fixes = recipe.fixes if isinstance(recipe, Recipe) else {}
    fixed = {axis: parse(text).name for axis, text in fixes.items()}
    fixed |= {axis: "" for axis in BACKBONE_AXES if axis in asked.options}
    more = [f"{axis} {name}".strip() for axis, name in fixed.items()]
    usual = resolve(PLAIN).axes
    for axis in ("output", "loss"):
        more += [f"{axis} {one.name}" for one in spec.axes[axis] if one not in usual[axis]]
    if more:
        raise Refused(
            f"{asked} is more than attention, and build would leave out its {', its '.join(more)}; "
            "pass attention_only=True for the attention alone, and see variants.build_output and "
            "variants.build_loss."
        )


def _refuse_positions_of_the_input(asked: Selector, variant: Variant) -> None:
    """Refuse positions that a network adds to its input, which attention by itself never does."""
    if any(one.is_added() for one in variant.positions):
        raise Refused(
            f"{asked} adds positions to the input of a network, and attention alone would leave "
            "them out; pass attention_only=True, and add them before the first layer with "
            "x = attention.variant.embed(x, offset), where offset is the place of the first vector."
        )


def _given_by_output_and_losses(spec: VariantSpec) -> frozenset[Capability]:
    """What they would give: whoever leaves out a loss brings it along in a training loop."""
    chosen = [(axis, one.name) for axis in ("output", "loss") for one in spec.axes[axis]]
    parts = [part_of(registry.find(axis, name).target) for axis, name in chosen]
    return frozenset[Capability]().union(*(part.gives for part in parts))


def _without_output_and_losses(spec: VariantSpec) -> VariantSpec:
    """The same attention with the output and the losses of plain attention."""
    usual = resolve(PLAIN).axes
    return replace(spec, axes={**spec.axes, "output": usual["output"], "loss": usual["loss"]})


def _with_heads(asked: Selector, spec: VariantSpec, heads: int | None, bias: bool) -> VariantSpec:
    """Give the number of heads, and biases if they are wanted, to a variant with its own heads.

    Raises:
        InvalidConfig: Its selector names another number, or its heads cannot be counted.
    """
    chosen = spec.axes["head"][0]
    if chosen.name == "auto":
        return spec
    written = _written_of_heads(asked, spec)
    options: dict[str, Value] = {}
    if heads is not None and "heads" in chosen.options:
        if written.get("heads", heads) != heads:
            raise InvalidConfig(
                f"{asked} and heads={heads} name two numbers of heads; leave one out."
            )
        options["heads"] = heads
    elif heads not in (None, 1):
        raise InvalidConfig(
            f"{asked} has {chosen.name} heads, whose number is not an option; leave heads out."
        )
    if bias and "bias" in chosen.options and "bias" not in written:
        options["bias"] = bias
    return replace(spec, axes={**spec.axes, "head": (chosen.with_options(**options),)})


def _written_of_heads(asked: Selector, spec: VariantSpec) -> dict[str, Value]:
    """Options of heads that a selector writes, behind its own name or behind that of the heads."""
    target = spec.registered.target
    main = target.main if isinstance(target, Recipe) else spec.registered.axis
    found = dict(asked.options) if main == "head" else {}
    for named in options_of(asked.options.get("head", ())):
        found |= named.options
    return found
