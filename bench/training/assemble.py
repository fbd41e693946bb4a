"""From a cell to a task and a system, with every refusal computed before anything is trained."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.api import registry
from bench.api.axes import PLAIN, PLAIN_POSITION
from bench.api.backbone import BACKBONES, Backbone, BackboneParts
from bench.api.batch import Sizes
from bench.api.build import SlotPlace, build_slot
from bench.api.call import regime_of
from bench.api.capabilities import Capability
from bench.api.cell import Cell
from bench.api.encoder import Encoder
from bench.api.errors import Refused
from bench.api.impl import Impl, impl_of
from bench.api.loss import JOINTS, LOSSES, Loss, LossSizes
from bench.api.options import complete
from bench.api.output import OUTPUTS, Output, OutputSizes
from bench.api.places import trained_place
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.api.slot import Slot
from bench.api.task import TASKS, Task
from bench.training.refusals import cell_refusal, feed_width, joint_of, source_refusal
from bench.training.system import System


@dataclass(frozen=True)
class Assembled:
    """A task and what will be trained on it."""

    task: Task
    system: System
    spec: VariantSpec


def assemble(cell: Cell, data_dir: Path | None, known: Task | None = None) -> Assembled:
    """Build everything a quality cell needs, on the CPU.

    Args:
        cell: What is asked.
        data_dir: The data directory.
        known: The cell's task, if it has been made.

    Raises:
        Refused: The combination has no meaning.
        DataUnavailable: The data are not on this machine.
    """
    spec = resolve(cell.variant)
    chosen = parse(cell.task)
    backbone = complete(BACKBONES, parse(cell.backbone))
    registered = registry.find(TASKS, chosen.name)
    network = registry.find(BACKBONES, backbone.name).target
    regime = network.regimes.get(cell.slot) or regime_of(cell.slot)
    reason = cell_refusal(spec, registered.target, backbone, regime)
    if reason is not None:
        raise Refused(reason)
    task = known or registry.make(TASKS, chosen, cell.seed, data_dir)
    reason = source_refusal(task.sizes, backbone.name)
    if reason is not None:
        raise Refused(reason)
    capabilities = trained_place(registered.target, backbone)
    impl = impl_of(cell.impl)
    there = _backbone(backbone, spec, task.sizes, cell.slot, capabilities, impl)
    losses = _losses(spec, there)
    back, joint = None, None
    named = joint_of(backbone)
    if named is not None:
        joint = registry.make(JOINTS, named)
        back = _backbone(backbone, spec, _reversed(task.sizes), cell.slot, capabilities, impl)
    return Assembled(task, System(there, losses, back, joint), spec)


def _losses(spec: VariantSpec, backbone: Backbone) -> dict[str, Loss]:
    slots = backbone.variant_slots()
    dims = slots[0].heads.dims if slots else None
    known = backbone.output.sizes
    sizes = LossSizes(
        source=dims.num_value_heads * dims.value_width if dims is not None else 0,
        states=known.states,
        embedded=known.embedded,
    )
    losses: dict[str, Loss] = {
        selector.name: registry.make(LOSSES, selector) for selector in spec.axes["loss"]
    }
    for loss in losses.values():
        loss.attach(sizes)
    return losses


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
    def attach_named(named: Selector, place: SlotPlace) -> Slot:
        other = resolve(named)
        if other.axes["output"] != spec.axes["output"] or other.axes["loss"] or other.fixes:
            raise Refused(f"{named} is more than attention, and a layer of a stack holds no more.")
        return build_slot(other, place)

    def output(widths: OutputSizes) -> Output:
        return registry.make(OUTPUTS, spec.axes["output"][0], widths)

    parts = BackboneParts(
        sizes=sizes,
        attach=partial(build_slot, spec, impl=impl),
        attach_default=_attach_default,
        attach_named=attach_named,
        output=output,
        feed_width=partial(feed_width, spec),
        slot=slot,
        capabilities=capabilities,
    )
    built = registry.make(BACKBONES, selector, parts)
    for part in built.modules():
        if isinstance(part, Encoder):
            part.adapt(sizes)
    return built


def _attach_default(place: SlotPlace) -> Slot:
    """Ordinary multi-head attention, for slots that do not hold the variant."""
    # keys of its own sequence have an order, which the query must know
    ordered = place.regime not in ("cross", "pool")
    position = {"position": (Selector(PLAIN_POSITION),)} if ordered else {}
    return build_slot(resolve(Selector(PLAIN, position)), place)
