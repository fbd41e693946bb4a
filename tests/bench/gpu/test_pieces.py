import json

import pytest

from bench.gpu.pieces import STATE, Piece, State, do_pieces
from bench.gpu.summary import red_variants, summary_text
from bench.timing.reason import Reason


class Clock:
    """Moves only where a piece says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines():
    return []


def piece(clock, name, seconds=10.0, takes=None, found=None, done=None):
    def work(left):
        if done is not None:
            done.append((name, left))
        clock.now += seconds if takes is None else takes
        if isinstance(found, Exception):
            raise found
        return found

    return Piece(name=name, title=f"the {name}", seconds=seconds, work=work)


def test_what_fits_the_time_is_done_and_the_rest_is_for_the_next_call(tmp_path, clock, lines):
    done = []
    pieces = [
        piece(clock, "one", 40.0, done=done),
        piece(clock, "two", 40.0, done=done),
        piece(clock, "short", 5.0, done=done),
    ]
    left = do_pieces(pieces, State(tmp_path), 1.0, lines.append, clock)
    assert done == [("one", 60.0), ("short", 20.0)]
    assert [one.name for one in left] == ["two"]
    assert any("later" in line and "the two" in line for line in lines)
    assert do_pieces(pieces, State(tmp_path), 1.0, lines.append, clock) == []
    assert [name for name, _ in done] == ["one", "short", "two"]
    assert "2 of 3 pieces were done before." in lines


def test_a_piece_that_fails_leaves_a_reason_and_is_tried_once_more(tmp_path, clock, lines):
    done = []
    pieces = [
        piece(clock, "breaks", found=ZeroDivisionError("by\nzero"), done=done),
        piece(clock, "gives up", found=Reason("timeout", "took longer than 9 s."), done=done),
        piece(clock, "works", found={"answer": 42}, done=done),
    ]
    for _ in range(3):
        do_pieces(pieces, State(tmp_path), 5.0, lines.append, clock)
    assert [name for name, _ in done].count("breaks") == 2
    assert [name for name, _ in done].count("works") == 1
    state = State(tmp_path)
    assert state.of("breaks")["detail"] == "ZeroDivisionError while timing: by zero"
    assert state.of("gives up")["status"] == "timeout"
    assert state.of("works")["found"] == {"answer": 42}


def test_an_interrupt_keeps_what_was_finished(tmp_path, clock, lines):
    def interrupted(left):
        raise KeyboardInterrupt

    pieces = [
        piece(clock, "one"),
        Piece(name="two", title="two", seconds=1.0, work=interrupted),
    ]
    with pytest.raises(KeyboardInterrupt):
        do_pieces(pieces, State(tmp_path), 5.0, lines.append, clock)
    assert State(tmp_path).of("one")["status"] == "ok"
    assert State(tmp_path).open(pieces[1])


def test_a_torn_file_is_an_empty_one(tmp_path, clock):
    (tmp_path / STATE).write_text('{"pieces": {"one"')
    assert State(tmp_path).open(piece(clock, "one"))


def test_the_summary_has_a_table_of_each_kind_and_says_what_is_missing(tmp_path, clock, lines):
    ceilings = {"copy_bytes_per_s": 4.3e12, "tanh_float32_per_s": "failed for a reason"}
    code = {"variant": "dot", "workload": "forward", "median_ms": 2.0, "status": "ok"}
    codes = [
        {**code, "code": "eager", "first_call_s": 0.1, "off": 0.0},
        {**code, "code": "compiled", "median_ms": 1.0, "first_call_s": 9.0, "off": 1e-3},
        {**code, "code": "auto", "status": "out_of_memory", "detail": "64 GiB more."},
    ]
    longest = {"variant": "dot", "workload": "forward_backward", "length": 0, "ended": "failed"}
    pieces = [
        piece(clock, "ceilings / x", found=ceilings),
        piece(clock, "compiled / dot", found=codes),
        piece(clock, "longest sequence / dot", found=longest),
        piece(clock, "training / dot", found=Reason("failed", "no room.")),
        piece(clock, "speed / dot", seconds=1e6),
    ]
    state = State(tmp_path)
    do_pieces(pieces, state, 5.0, lines.append, clock)
    text = summary_text(pieces, state, {"gpu": "NVIDIA H200", "packages": {"torch": "2.11"}})
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    assert ["copy", "4.3", "TB/s"] in cells
    assert ["tanh float32", "failed for a reason", "10⁹/s"] in cells
    assert ["dot", "forward", "compiled", "1", "0.5", "9", "0.001"] in [
        [*line[:4], *(f"{float(x):g}" for x in line[4:])] for line in cells if "compiled" in line
    ]
    assert any("out_of_memory: 64 GiB more." in line for line in text.splitlines())
    assert ["dot", "forward and backward", "–", "failed"] in cells
    assert ["the training / dot", "failed", "no room."] in cells
    assert ["the speed / dot", "not yet", "no time was left"] in cells
    assert "NVIDIA H200, torch 2.11" in text
    assert json.loads((tmp_path / STATE).read_text())["pieces"]


def test_red_certificates_are_told(tmp_path, clock, lines):
    pieces = [
        piece(clock, "certificates / dot, general", found={"red": ["general"]}),
        piece(clock, "certificates / additive", found={"red": []}),
        piece(clock, "certificates / general, eager", found={"red": ["general"]}),
    ]
    state = State(tmp_path)
    do_pieces(pieces, state, 5.0, lines.append, clock)
    assert red_variants(pieces, state) == ["general"]
