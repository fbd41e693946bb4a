"""Where variants are certified: small places in every regime, of sizes that no two axes share.

Every size is another prime, so that two axes which were mixed up cannot fit by accident. Options
are taken as asked in some places and at the small end of their search range in others, where a
window of ten keys is not wider than the whole sentence. What stands only in places with small
options is asked there with its own, too, and in causal places some checks ask both.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import nn

from bench.api import registry
from bench.api.axes import CHAIN_AXES
from bench.api.build import SlotPlace, build_slot
from bench.api.call import REGIMES, Regime
from bench.api.capabilities import Capability
from bench.api.config import IntRange, search_ranges
from bench.api.decoder import DECODERS
from bench.api.errors import BenchError, InvalidConfig, Refused
from bench.api.impl import Impl
from bench.api.normalizer import NORMALIZERS
from bench.api.places import ANYWHERE, UNKNOWN_UNTIL_BUILT
from bench.api.position import POSITIONS
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.variant import Variant

ROWS, HEADS, WIDTH, KEYS, QUERIES, SOURCE_WIDTH, VOCAB = 3, 2, 5, 7, 11, 13, 17
ODD_HEADS = 3
"""Heads of one place, where what is made for each head may be another number."""
WORD_WIDTH = 19
WEIGHTED: frozenset[Capability] = frozenset({"weights", "unit_weights", "signed"})
"""Capabilities of which each is a matrix of weights, with a law of its own (`checks_weights`)."""
RELATIONS = 23
"""Labels of pairs of tokens, for variants that are told of them."""


@dataclass(frozen=True)
class Placed:
    """A variant in its heads in one regime, with parameters drawn, in float64."""

    regime: Regime
    slot: Slot
    gives: frozenset[Capability]
    source_width: int
    note: str
    """Heads and options, for sentences."""
    placement: "Placement"
    told_relations: bool = False
    """Whether it needs labels between tokens; what does not is spared a number for every pair."""
    told_words: bool = False
    """Whether it reads the words that come with queries."""
    reseeded: bool = False
    """Whether building it set the seed of torch, so that what is drawn later is always the same."""

    @property
    def variant(self) -> Variant:
        """The attention beneath the heads."""
        return self.slot.variant

    @property
    def weights(self) -> bool:
        """Whether its code can return weights at all."""
        return self.variant.impl != "sdpa"

    @property
    def own(self) -> bool:
        """Whether keys come from the queries' own sequence."""
        return self.regime in ("causal", "self")

    @contextmanager
    def scored(self) -> Iterator[None]:
        """Run after `eval()`, as networks are scored."""
        self.slot.eval()
        try:
            yield
        finally:
            self.slot.train()

    @property
    def where(self) -> str:
        """The place, in words."""
        return f"{self.regime} with {self.note}"


@dataclass(frozen=True)
class Placement:
    """A regime, the heads that `head=auto` means there, and which options are used."""

    regime: Regime
    head: str
    smallest: bool
    count: int = HEADS
    """Heads where there are several."""
    below: tuple[int, ...] = ()
    """Layers below that hold the same attention."""
    again: bool = False
    """Whether it repeats a place with the options as asked, which another place has, too."""


PLACEMENTS: tuple[Placement, ...] = (
    Placement("cross", "raw", smallest=False),
    Placement("cross", "multi", smallest=True),
    Placement("causal", "multi", smallest=True),
    Placement("self", "multi", smallest=False, count=ODD_HEADS),
    Placement("pool", "raw", smallest=True),
)
SHORT_WINDOW = Selector("sliding_window", {"window": 3})
"""A mask behind which a cache of a few keys forgets some."""
IN_A_WINDOW = Placement("causal", "multi", smallest=False)
ABOVE = Placement("causal", "multi", smallest=True, below=(0,))
"""The second layer of a stack, for heads that read a layer below them."""


def gives(spec: VariantSpec) -> frozenset[Capability]:
    """Capabilities that the parts of a variant give and none of them makes untrue."""
    parts = [part for _, part in spec.parts]
    given = frozenset[Capability]().union(*(part.gives for part in parts))
    return given.difference(*(part.removes for part in parts))


def refusals(spec: VariantSpec) -> dict[Regime, str]:
    """Regimes in which a variant cannot stand at all, with the reason."""
    found: dict[Regime, str] = {}
    for regime in REGIMES:
        reasons = [spec.refusal(given | UNKNOWN_UNTIL_BUILT | {regime}) for given in _offers()]
        if None not in reasons:
            found[regime] = reasons[0] or ""
    return found


def stands_nowhere(spec: VariantSpec) -> bool:
    """Whether every place that could be offered refuses a variant, so that nothing can be proved.

    What has no attention is certified by its decoder, wherever that stands.
    """
    decoder = spec.fixes.get("decoder")
    attends = decoder is None or registry.find(DECODERS, decoder.name).target.attends
    return bool(attends) and len(refusals(spec)) == len(REGIMES)


def smallest(spec: VariantSpec) -> VariantSpec:
    """The same variant with whole-number options at the small end of their search ranges."""
    options = dict(spec.complete.options)
    for axis in CHAIN_AXES:
        if spec.axes.get(axis):
            options[axis] = tuple(_small(axis, chosen) for chosen in spec.axes[axis])
    if spec.mechanism is not None:
        options.update(_small("mechanism", spec.mechanism).options)
    try:
        return resolve(Selector(spec.name, options))
    except InvalidConfig:
        return spec  # options that only make sense together stay as asked


def in_a_window(spec: VariantSpec) -> VariantSpec | None:
    """The same behind a short window, where its parts say that keys may be forgotten there.

    A position that goes by places and a normalizer to which hidden keys are nothing say so of
    every mask, and are right with a full one whatever they do. None where there is no such part.
    """
    axes = spec.axes
    if spec.mechanism is not None or [one.name for one in axes["mask"]] != ["full"]:
        return None
    positions = (registry.find(POSITIONS, one.name).target for one in axes.get("position", ()))
    normalizers = (registry.find(NORMALIZERS, one.name).target for one in axes["normalizer"])
    by_place = any(one.by_place for one in positions)
    declared = by_place or any(one.visible_alone for one in normalizers)
    if not declared or "dot_form" not in gives(spec):
        return None
    try:
        return resolve(Selector(spec.name, {**spec.complete.options, "mask": (SHORT_WINDOW,)}))
    except BenchError:
        return None


def placements(spec: VariantSpec, regimes: Iterable[Regime] = REGIMES) -> list[Placement]:
    """Where to ask a variant: with small options, with its own, and above a layer that it reads.

    Causal places are asked with its own, too, for windows and blocks are others there.
    """
    linked = any("layers_below" in part.needs for _, part in spec.parts)
    every = (*PLACEMENTS, ABOVE) if linked else PLACEMENTS
    found = [one for one in every if one.regime in regimes]
    refused = refusals(spec)
    stands = [one for one in found if one.regime not in refused]
    as_asked = any(not one.smallest for one in stands)
    if smallest(spec).canonical == spec.canonical:
        return found
    repeated = [one for one in stands if not as_asked or one.regime == "causal"]
    return [*found, *(replace(one, smallest=False, again=as_asked) for one in repeated)]


def build_subject(
    spec: VariantSpec,
    placement: Placement,
    impl: Impl = "auto",
    *,
    fresh: int | None = None,
    width: int | None = None,
) -> Placed:
    """Build a variant for one placement, with as few capabilities removed as it asks for.

    Args:
        spec: The variant.
        placement: Where it stands.
        impl: Code to use.
        fresh: Seed of parameters as training starts with them; None moves them off their start.
        width: Of the states of queries and source, rounded up to what heads can split; None for
            small ones.

    Raises:
        Refused: The variant cannot stand there; the message is the reason.
    """
    used = smallest(spec) if placement.smallest else spec
    first: BenchError | None = None
    for place in _slot_places(used, placement, width):
        try:
            slot, reseeded = _built(used, place, impl, fresh)
        except BenchError as error:
            first = first or error
            continue
        chosen = used.axes["head"][0]
        note = place.head if chosen.name == "auto" else str(chosen)
        note += " heads, smallest options" if placement.smallest else " heads"
        note += " above another layer" if placement.below else ""
        needs = frozenset[Capability]().union(*(part.needs for _, part in used.parts))
        where = (placement.regime, slot, gives(used), place.source_width, note, placement)
        relations, words = "relations" in needs, "token_extras" in needs
        return Placed(*where, relations, words, reseeded=reseeded)
    raise Refused(str(first))


def code_refusal(spec: VariantSpec, placement: Placement, impl: Impl) -> str | None:
    """Why code is refused in a place where the variant stands by its usual code, or None."""
    used = smallest(spec) if placement.smallest else spec
    for place in _slot_places(used, placement, None):
        try:
            _built(used, place, "auto", None)
        except BenchError:
            continue
        try:
            _built(used, place, impl, None)
        except BenchError as error:
            return str(error)
        return None
    return None


def _slot_places(spec: VariantSpec, placement: Placement, width: int | None) -> Iterator[SlotPlace]:
    """Places to try, those that offer the most first."""
    for given in _offers():
        for query_width, source_width, head in _widths(spec, placement, width):
            yield SlotPlace(
                regime=placement.regime,
                query_width=query_width,
                source_width=source_width,
                head=head,
                source_vocab=VOCAB,
                word_width=WORD_WIDTH,
                relations=RELATIONS,
                layer=len(placement.below),
                below=placement.below,
                given=given,
            )


def shake(module: nn.Module, seed: int, *, bold: bool = False) -> None:
    """Move every parameter off the value it starts at, so that no term hides behind a zero.

    Args:
        module: What to change.
        seed: Another seed, other parameters.
        bold: Forget the start and draw standard normals.
    """
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
            spread = float(parameter.std()) if parameter.numel() > 1 else 0.0
            step = drawn if bold else drawn * (spread or 0.5)
            parameter.copy_(step if bold else parameter + step)


def _built(spec: VariantSpec, place: SlotPlace, impl: Impl, fresh: int | None) -> tuple[Slot, bool]:
    """A slot, and whether building it set the seed of torch."""
    seed = fresh or 0
    # initialization draws from torch's global generator, which is none of our caller's business
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        slot = build_slot(spec, place, impl=impl).double()
        reseeded = torch.initial_seed() != seed
    if fresh is None:
        shake(slot, zlib.crc32(f"{spec.name} {place.regime}".encode()))
    return slot, reseeded


def _offers() -> Iterable[frozenset[Capability]]:
    yield ANYWHERE
    for capability in sorted(ANYWHERE):
        yield ANYWHERE - {capability}


def _widths(
    spec: VariantSpec, placement: Placement, asked_width: int | None
) -> list[tuple[int, int, str]]:
    """Model width, source width and heads to try, the least equal widths first."""
    chosen = spec.axes["head"][0]
    if chosen.name == "auto":
        head, count = placement.head, placement.count
        if head == "multi":
            head = f"multi[heads={count}]"
    else:
        asked = chosen.options.get("heads", 1)
        head, count = str(chosen), asked if isinstance(asked, int) else 1
    if asked_width is not None:
        fitting = -(-asked_width // count) * count
        return [(fitting, fitting, head)]
    width = WIDTH if head.partition("[")[0] == "raw" else WIDTH * count
    if placement.regime in ("causal", "self"):
        return [(width, width, head)]
    return [(width, SOURCE_WIDTH, head), (width, width, head)]


def _small(axis: str, chosen: Selector) -> Selector:
    ranges = search_ranges(registry.find(axis, chosen.name).config)
    low = {name: r.low for name, r in ranges.items() if isinstance(r, IntRange)}
    return chosen.with_options(**{n: v for n, v in low.items() if chosen.options.get(n) != v})
