"""Variants for a user's own model."""

from typing import Literal

from bench.api.build import SlotPlace, build_slot
from bench.api.capabilities import Capability
from bench.api.registry import load_package
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.variant import Impl, Slot


def load_all() -> None:
    """Import every variant once; calling again costs nothing."""
    load_package("variants")


def build(
    selector: str,
    *,
    dim: int,
    heads: int | None = None,
    source_dim: int | None = None,
    regime: Literal["cross", "causal", "self", "pool"] = "self",
    source_vocab: int = 0,
    word_dim: int = 0,
    impl: Impl = "auto",
) -> Slot:
    """Build a variant with its heads, ready to be used in a model.

    Args:
        selector: A variant as on the command line, `shaw_rpr[clip=8]`.
        dim: Width of the queries (and of the output).
        heads: Number of heads; None for raw states without projections, as in classic decoders.
        source_dim: Width of what is attended to; `dim` if not given.
        regime: Where the keys come from.
        source_vocab: Ids that source tokens can take, where they are handed to `prepare`; 0 where
            they are not.
        word_dim: Width of the embedded words that are handed to `attend` as
            `extras={"word": ...}`; 0 where none are.
        impl: Which code computes it.

    Raises:
        UnknownName: No such variant.
        Refused: The variant cannot be used there; the message says why.
    """
    load_all()
    spec = resolve(parse(selector), beneath=True)
    given: set[Capability] = {"padding", "stepwise"}
    given |= {"source_tokens"} if source_vocab else set()
    given |= {"token_extras"} if word_dim else set()
    place = SlotPlace(
        regime=regime,
        query_width=dim,
        source_width=dim if source_dim is None else source_dim,
        head="raw" if heads is None else f"multi[heads={heads}]",
        source_vocab=source_vocab,
        word_width=word_dim,
        given=frozenset(given),
    )
    return build_slot(spec, place, impl=impl)
