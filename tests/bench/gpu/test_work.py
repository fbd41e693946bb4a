"""What the pieces of a kit hold."""

import fcntl
import io
from collections import Counter
from types import SimpleNamespace

import pytest

from bench.gpu import work
from bench.gpu.kit import GPU, REHEARSAL
from bench.gpu.work import Workshop
from bench.running.machine_lock import lock_file
from bench.running.quality_cells import roster_of
from bench.running.request import Request
from bench.running.worker import WorkerSettings
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


def test_pieces_in_processes_of_their_own_are_alone_on_the_machine(monkeypatch):
    blocked = []

    def isolated(function, *arguments, settings, timeout_s, **named):
        with lock_file().open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        blocked.append(function.__name__)
        return {"copies_bytes_per_s": 1.0}

    monkeypatch.setattr(work, "isolated", isolated)
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    session = SimpleNamespace(settings=WorkerSettings(), stream=io.StringIO())
    piece = next(one for one in Workshop(REHEARSAL, asked, session).pieces() if "ceil" in one.name)
    assert piece.work(60.0) == {"copies_bytes_per_s": 1.0}
    assert blocked == ["measure_ceilings"]
