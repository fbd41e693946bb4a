"""Capabilities of a place in a network, and the refusals computed from them.

A component says what it needs, what it gives, what it removes and what it does not support; nobody
writes a table of legal combinations. What a place offers is said in `bench.api.places`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, Protocol, TypeGuard

from bench.api.errors import InvalidConfig

Capability = Literal[
    "cross",
    "causal",
    "self",
    "pool",
    "padding",
    "stepwise",
    "stream",
    "online",
    "unread_start",
    "draws",
    "weights",
    "simplex",
    "unit_weights",
    "signed",
    "strictly_past",
    "key_local",
    "dot_form",
    "never_positive",
    "softmax",
    "weighted_sum",
    "ordered",
    "places",
    "jumps",
    "no_history",
    "takes_features",
    "open_loop",
    "residual_sublayers",
    "source_tokens",
    "grid",
    "source_states",
    "source_order",
    "reads_source",
    "gold_alignment",
    "two_sources",
    "features",
    "token_extras",
    "relations",
    "layers_below",
    "equal_width",
    "equal_heads",
    "ponder",
    "reversible_pairs",
    "coverage_embedding",
    "loss:reinforce",
    "loss:rationale",
    "delays",
    "spans",
    "indexer",
    "selection",
]
"""What can be needed, given, removed or unsupported somewhere; a closed set."""

CAPABILITIES: Mapping[Capability, str] = MappingProxyType(
    {
        "cross": "cross attention, where keys come from another sequence",
        "causal": "causal self-attention, where keys arrive with the queries",
        "self": "bidirectional self-attention",
        "pool": "pooling, where one query reads the sequence",
        "padding": "padded keys",
        "stepwise": "queries that come one at a time",
        "stream": "hard decoding in linear time",
        "online": "an online encoder, whose states know nothing of what comes after them",
        "unread_start": "a decoder that starts without a summary of its source (summaries=none)",
        "draws": "a normalizer that draws a key",
        "weights": "explicit attention weights",
        "simplex": "weights that sum to one",
        "unit_weights": "weights between zero and one that may sum to anything",
        "signed": "weights of either sign",
        "strictly_past": "queries that read earlier keys alone",
        "key_local": "a score that looks at one key at a time",
        "dot_form": "a score that is a scaled dot product",
        "never_positive": "a score that is never positive",
        "softmax": "softmax as the normalizer",
        "weighted_sum": "a plain weighted sum of values",
        "ordered": "weights that depend on the order of keys",
        "places": "where keys stand, without the axis `position`",
        "jumps": "a choice of keys that jumps where two of them tie",
        "no_history": "no memory of earlier weights",
        "takes_features": "a score that accepts per-key features",
        "open_loop": "decoder states that do not depend on the context",
        "residual_sublayers": "residual sublayers around attention",
        "source_tokens": "the token ids of the source",
        "grid": "a source that is a picture",
        "source_states": "one state for each source token, in the order of the source",
        "source_order": "a source that is read as it stands",
        "reads_source": "an output that reads the source itself",
        "gold_alignment": "gold alignments",
        "two_sources": "a second source",
        "features": "features beside the words of the source",
        "token_extras": "per-query token embeddings",
        "relations": "labels between tokens",
        "layers_below": "a stack of layers that hand on their keys and values",
        "equal_width": "queries and keys of equal width",
        "equal_heads": "as many key heads as query heads",
        "ponder": "a mechanism that counts its hops",
        "reversible_pairs": "pairs that can be trained in both directions",
        "coverage_embedding": "coverage embeddings",
        "loss:reinforce": "the reinforce loss",
        "loss:rationale": "the rationale loss",
        "delays": "a normalizer that tells how far it has read",
        "spans": "a normalizer that learns how far it reads",
        "indexer": "an indexer that chooses keys",
        "selection": "an encoder that selects tokens",
    }
)


NOTHING: frozenset[Capability] = frozenset()

DECLARED = ("needs", "gives", "removes", "unsupported")
"""The attributes of `Capabilities`."""


class Capabilities(Protocol):
    """What every component and variant says about itself, as data on the class."""

    needs: ClassVar[frozenset[Capability]]
    gives: ClassVar[frozenset[Capability]]
    removes: ClassVar[frozenset[Capability]]
    unsupported: ClassVar[Mapping[Capability, str]]


def part_of(target: object) -> type[Capabilities]:
    """A registered class, as what it says about itself.

    Raises:
        InvalidConfig: It says nothing.
    """
    if not _says_capabilities(target):
        raise InvalidConfig(f"{target!r} declares no capabilities; inherit from its axis' class.")
    return target


def _says_capabilities(target: object) -> TypeGuard[type[Capabilities]]:
    return isinstance(target, type) and all(hasattr(target, name) for name in DECLARED)


def refusal(
    parts: Iterable[tuple[str, type[Capabilities]]],
    given: frozenset[Capability],
    wanted: Iterable[tuple[str, frozenset[Capability]]] = (),
) -> str | None:
    """Say in one sentence why the named parts cannot work together here, or None.

    Args:
        parts: Name and capabilities of each part.
        given: Capabilities of the regime, the task, the backbone and what is wanted of the result.
        wanted: What other names need under their options, beside what parts need always.
    """
    named = list(parts)
    offered = given.union(*(part.gives for _, part in named)) if named else given
    have = offered.difference(*(part.removes for _, part in named)) if named else offered
    for name, part in named:
        for capability in sorted(part.unsupported):
            if capability in have:
                return f"{name}: {part.unsupported[capability]}"
    for name, needs in [*((name, part.needs) for name, part in named), *wanted]:
        for capability in sorted(needs - have):
            removers = [other for other, remover in named if capability in remover.removes]
            if capability in offered and removers:
                return f"{name} needs {CAPABILITIES[capability]}, which {removers[0]} removes."
            return f"{name} needs {CAPABILITIES[capability]}, which nothing here gives."
    return None


def only_needs(part: type[Capabilities]) -> type[Capabilities]:
    """A part inside another one: what it needs and does not support, and nothing that it gives."""
    none: frozenset[Capability] = frozenset()
    said = {"needs": part.needs, "gives": none, "removes": none, "unsupported": part.unsupported}
    return type(part.__name__, (), said)


def check_capabilities(owner: str, *groups: Iterable[Capability]) -> None:
    """Assert at import that a class names known capabilities only."""
    for group in groups:
        for capability in group:
            assert capability in CAPABILITIES, f"{owner}: unknown capability {capability!r}"
