"""From a resolved variant to modules: the attention beneath its heads, and a slot of a backbone."""

from dataclasses import dataclass

from bench.api import registry
from bench.api.call import Dims, Regime
from bench.api.capabilities import Capability
from bench.api.chain import Chain
from bench.api.errors import Refused
from bench.api.heads import HEADS
from bench.api.history import HISTORIES
from bench.api.impl import Impl, check_code
from bench.api.mask import MASKS
from bench.api.normalizer import NORMALIZERS
from bench.api.position import POSITIONS, Position
from bench.api.readout import READOUTS
from bench.api.resolve import VariantSpec
from bench.api.score import SCORES
from bench.api.selector import parse
from bench.api.slot import Slot
from bench.api.variant import MECHANISMS, Variant


def build_variant(
    spec: VariantSpec,
    dims: Dims,
    *,
    impl: Impl = "auto",
    given: frozenset[Capability] = frozenset(),
) -> Variant:
    """Build the attention of a spec beneath its heads.

    Raises:
        Refused: The combination has no meaning in this regime, or there is no such code; the
            message is the reason.
    """
    reason = spec.refusal(given | {dims.regime})
    if reason is not None:
        raise Refused(reason)
    mechanism, kind = spec.mechanism, _kind(spec)
    check_code(spec.name, impl, kind.codes)
    if mechanism is not None:
        built = registry.make(MECHANISMS, mechanism, dims, impl)
        if spec.axes.get("position"):
            built.stack_positions(_positions(spec, kind, dims))
        return built
    positions = _positions(spec, Chain, dims)
    histories = tuple(registry.make(HISTORIES, s, dims) for s in spec.axes["history"])
    features = (*(part.num_features for part in positions), *(p.num_features for p in histories))
    dims = dims._replace(num_features=sum(features))
    return Chain(
        dims,
        positions=positions,
        score=registry.make(SCORES, spec.axes["score"][0], dims),
        mask=registry.make(MASKS, spec.axes["mask"][0], dims),
        normalizer=registry.make(NORMALIZERS, spec.axes["normalizer"][0], dims),
        readout=registry.make(READOUTS, spec.axes["readout"][0], dims),
        histories=histories,
        impl=impl,
    )


def _kind(spec: VariantSpec) -> type[Variant]:
    """The class that is built."""
    if spec.mechanism is None:
        return Chain
    return registry.find(MECHANISMS, spec.mechanism.name).target


def _positions(spec: VariantSpec, kind: type[Variant], dims: Dims) -> tuple[Position, ...]:
    """Positions of the sizes that they see."""
    found = []
    for chosen in spec.axes["position"]:
        turns = registry.find(POSITIONS, chosen.name).target.turns
        seen = kind.position_dims(dims, turns=turns)
        found.append(registry.make(POSITIONS, chosen, seen))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class SlotPlace:
    """The place of a backbone that will hold a variant."""

    regime: Regime
    query_width: int
    source_width: int
    head: str
    """Heads that `head=auto` means here."""
    source_vocab: int = 0
    word_width: int = 0
    """Width of the embedded word that comes with a query; 0 where none does."""
    layer: int = 0
    """Index of the layer in its stack, 0-based."""
    relations: int = 0
    """Labels that a pair of tokens can have, where the backbone hands them on."""
    below: tuple[int, ...] = ()
    """Layers below that hold the same attention, and what they attended to is handed on."""
    given: frozenset[Capability] = frozenset()
    """Capabilities of the task and the backbone."""


def build_slot(spec: VariantSpec, place: SlotPlace, *, impl: Impl = "auto") -> Slot:
    """Build heads and variant for a place.

    Raises:
        Refused: The variant cannot stand there; the message is the reason.
    """
    chosen = spec.axes["head"][0]
    selector = parse(place.head) if chosen.name == "auto" else chosen
    heads = registry.make(HEADS, selector, place.query_width, place.source_width, place.regime)
    link = heads.link(place.below)
    dims = heads.dims._replace(
        source_vocab=place.source_vocab,
        word_width=place.word_width,
        layer=place.layer,
        relations=place.relations,
    )
    capabilities = set(place.given)
    if dims.query_width == dims.key_width:
        capabilities.add("equal_width")
    if dims.heads == dims.kv_heads:
        capabilities.add("equal_heads")
    variant = build_variant(spec, dims, impl=impl, given=frozenset(capabilities))
    if link is not None and link.kept == "all" and not variant.remembers_keys:
        raise Refused(
            f"{selector.name} reads the cache of another layer, and {spec.name} has none."
        )
    return Slot(heads, variant, place.source_width, link)
