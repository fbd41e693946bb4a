"""What the pieces of a kit hold."""

from collections import Counter

import pytest

from bench.gpu.kit import GPU, REHEARSAL
from bench.gpu.work import Workshop
from bench.running.quality_cells import roster_of
from bench.running.request import Request
from bench.timing.asked_shapes import asked_shapes


@pytest.mark.parametrize("kit", [GPU, REHEARSAL], ids=["gpu", "rehearsal"])
def test_every_variant_is_timed_as_a_layer_at_every_shape_and_with_every_code(kit):
    variants = [*roster_of("quick")]
    asked = Request(
        variants=",".join(variants), device=kit.device, dtype=kit.dtype, preset=kit.preset
    )
    shop = Workshop(kit, asked, session=None)
    cells = [one.cell for one in shop.planned() if "place=slot" in one.cell.task]
    wanted = {one.spec.canonical.show() for one in shop.variants}
    shapes = [shape for one in kit.slot_shapes for shape in asked_shapes((one,))]
    assert {cell.variant for cell in cells} == wanted
    timed = Counter((cell.variant, cell.dtype, cell.impl) for cell in cells)
    assert set(timed.values()) == {len(shapes)}
    assert {(dtype, impl) for _, dtype, impl in timed} == {*kit.slot_codes}
