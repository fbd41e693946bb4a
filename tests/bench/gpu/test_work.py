"""What the pieces of a kit hold."""

import fcntl
import io
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from bench.gpu import work
from bench.gpu.kit import GPU, REHEARSAL
from bench.gpu.work import Workshop
from bench.running.code_of_cells import CodeOfCells
from bench.running.machine_lock import lock_file
from bench.running.quality_cells import roster_of
from bench.running.request import Request
from bench.running.worker import WorkerSettings
from bench.timing.asked_shapes import asked_shapes
from bench.timing.shape import parse_shape


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


def test_every_code_and_format_is_certified_at_the_shapes_at_which_it_is_timed():
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    certified = {}

    def certify(variants, impl, on):
        certified[on.dtype, impl] = {*on.shapes}
        return {}

    shop = Workshop(REHEARSAL, asked, SimpleNamespace(certify=certify))
    pieces = [one for one in shop.pieces() if one.name.startswith("certificates")]
    assert all(piece.work(1.0) == {"red": []} for piece in pieces)
    timed = {}
    for one in shop.planned():
        if one.cell.kind == "speed":
            shape = parse_shape(one.cell.task)
            timed.setdefault((one.cell.dtype, one.cell.impl), set()).add(shape)
    assert certified == timed
    assert set(timed) == {*REHEARSAL.slot_codes}


def test_a_layer_is_certified_before_it_is_timed():
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    kinds = [one.title.partition(":")[0] for one in Workshop(REHEARSAL, asked, None).pieces()]
    assert kinds[0] == "certificates"
    before = kinds.index("layer, eager in float32") - 1
    assert kinds[before] == "certificates"


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


def test_what_waited_for_the_machine_has_only_the_time_that_is_left(monkeypatch):
    now, given = [0.0], []

    @contextmanager
    def machine_lock(**_):
        now[0] += 50.0
        yield

    def isolated(*_, timeout_s, **named):
        given.append(timeout_s)
        return {}

    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(work, "machine_lock", machine_lock)
    monkeypatch.setattr(work, "isolated", isolated)
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    session = SimpleNamespace(settings=WorkerSettings(), stream=io.StringIO())
    piece = next(one for one in Workshop(REHEARSAL, asked, session).pieces() if "ceil" in one.name)
    assert piece.work(60.0) == {}
    assert given == [10.0]
    assert piece.work(40.0).status == "timeout"
    assert given == [10.0], "begun when the time was over"


def test_what_waits_for_the_machine_ends_with_its_time(monkeypatch):
    given = []
    monkeypatch.setattr(work, "isolated", lambda *_, **named: given.append(named))
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    session = SimpleNamespace(settings=WorkerSettings(), stream=io.StringIO())
    piece = next(one for one in Workshop(REHEARSAL, asked, session).pieces() if "ceil" in one.name)
    with lock_file().open("a") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        found = piece.work(0.05)
    assert found.status == "timeout"
    assert "held this machine until the time was over" in found.detail
    assert not given


@pytest.mark.parametrize("kind", ["speed", "training"])
def test_cells_that_waited_for_the_machine_have_only_the_time_that_is_left(monkeypatch, kind):
    now, ends = [100.0], []

    def busy(planned, end_s):
        ends.append(end_s)
        now[0] += 60.0

    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=lambda: now[0]))
    ledger = SimpleNamespace(newest=dict)
    session = SimpleNamespace(
        train=busy,
        measure=busy,
        wants=lambda cell: True,
        store=SimpleNamespace(ledger=lambda: ledger),
    )
    asked = Request(variants="dot", dtype="bfloat16", preset="smoke")
    pieces = Workshop(REHEARSAL, asked, session).pieces()
    piece = next(one for one in pieces if one.name.startswith(kind))
    found = piece.work(60.0)
    assert ends == [160.0]
    assert found.status == "timeout"
    assert "was not finished" in found.detail
    assert piece.work(61.0).status == "failed"


def names_of_pieces():
    asked = Request(variants="dot,additive", dtype="bfloat16", preset="smoke")
    return [one.name for one in Workshop(REHEARSAL, asked, session=None).pieces()]


def test_an_edit_makes_other_pieces_of_what_it_concerns_and_of_nothing_else(monkeypatch):
    before = names_of_pieces()
    assert names_of_pieces() == before
    assert len(set(before)) == len(before)
    honest = CodeOfCells.of_certificate

    def edited(code, variant):
        return honest(code, variant) + ("edited" if variant.startswith("additive") else "")

    monkeypatch.setattr(CodeOfCells, "of_certificate", edited)
    after = names_of_pieces()
    changed = {one for one, two in zip(before, after, strict=True) if one != two}
    assert changed
    assert all("additive" in name for name in changed)
    assert any("additive" not in name for name in before)
    assert {name for name in before if "additive" in name} == changed
