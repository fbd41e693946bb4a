from dataclasses import replace
from itertools import count

import pytest
import torch

from bench.api import registry
from bench.api.cell import Cell
from bench.api.config import NoOptions
from bench.api.errors import InvalidConfig
from bench.api.registry import Recipe, Registration
from bench.api.variant import Variant
from bench.timing.block import group_blocks, measure_block
from bench.timing.reason import Reason
from bench.timing.shape import AttendShape, parse_rounds
from results.row import Row

TIMES = {f"{workload}_time_ms" for workload in ("forward", "forward_weights", "decode_step")}
TIMES.add("forward_backward_time_ms")


def cell(variant, regime="causal", length=6, rounds="count=2,visit_ms=4.0", **changed):
    shape = AttendShape(batch=2, heads=2, length=length, width=4, regime=regime)
    made = Cell(
        kind="speed",
        task=shape.show(),
        backbone="none",
        variant=variant,
        slot=regime,
        protocol=parse_rounds(f"rounds[{rounds}]").show(),
    )
    return replace(made, **changed)


def measure(*variants, reference="scaled_dot", **settings):
    """Outcomes by variant, on a clock that says one millisecond for every call."""
    ticks = count()
    cells = [cell(variant, **settings) for variant in variants]
    base = cell(reference, **settings)
    found = measure_block(cells, base, clock=lambda: next(ticks) * 1e-3)
    assert list(found) == [one.id for one in cells]
    return dict(zip(variants, map(rows_or_reason, found.values()), strict=True))


def rows_or_reason(outcome):
    """The rows of a cell that has all its metrics but those that are refused, or the reason."""
    if isinstance(outcome, Reason):
        return outcome
    assert {one.status for one in outcome.unmeasured} <= {"refused"}
    return list(outcome.rows)


class Breaks(Variant):
    """Raises in `mix`."""

    error: Exception = ZeroDivisionError("something\nbroke")

    def __init__(self, config, dims, impl="auto"):
        super().__init__(dims, impl)

    def mix(self, call, carried, want_weights):
        raise self.error

    def oracle(self, query, source, read, **call):
        raise NotImplementedError


class RunsOut(Breaks):
    """Raises what torch raises where memory ends."""

    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 EB")


class RunsOutBackward(Variant):
    """Answers with zeros, and runs out of memory where gradients are asked for."""

    def __init__(self, config, dims, impl="auto"):
        super().__init__(dims, impl)

    def mix(self, call, carried, want_weights):
        if torch.is_grad_enabled():
            raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 64 GiB")
        return torch.zeros_like(call.query), None, {}, {}

    def oracle(self, query, source, read, **call):
        raise NotImplementedError


class CrossOnly(Breaks):
    """Refuses causal self-attention."""

    unsupported = {"causal": "it looks ahead"}  # a class attribute of the contract


@pytest.fixture
def broken(monkeypatch):
    for name, target in (
        ("breaks", Breaks),
        ("runs_out", RunsOut),
        ("runs_out_backward", RunsOutBackward),
        ("cross_only", CrossOnly),
    ):
        entry = Registration(axis="mechanism", name=name, target=target, config=NoOptions)
        monkeypatch.setitem(registry._ENTRIES["mechanism"], name, entry)


def values(rows, metric, baseline=""):
    found = [row for row in rows if (row.metric, row.baseline) == (metric, baseline)]
    return {row.repeat: row.value for row in found}


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_every_round_gives_a_row_with_the_baseline_and_its_twin_beside_it(regime):
    rows = measure("additive", regime=regime)["additive"]
    steps = regime in ("cross", "causal")
    for metric in TIMES:
        timed = steps or metric != "decode_step_time_ms"
        for baseline in ("", "reference", "aa_control"):
            found = values(rows, metric, baseline)
            assert found == (pytest.approx({0: 1.0, 1: 1.0}) if timed else {})
    assert all(row.axis == "length" and row.x == 6 for row in rows)
    assert len({(row.metric, row.repeat, row.baseline) for row in rows}) == len(rows)
    assert all(isinstance(row, Row) for row in rows)


def test_what_is_measured_once_has_one_row_and_the_baselines_beside_it():
    rows = measure("additive", "scaled_dot")
    names = {row.metric for row in rows["additive"] if row.baseline == "reference"} - TIMES
    assert names >= {
        "parameters_count",
        "peak_memory_bytes",
        "forward_peak_memory_bytes",
        "forward_flops_counted_count",
        "forward_elementwise_count",
        "forward_transcendental_count",
    }
    own = values(rows["scaled_dot"], "peak_memory_bytes")
    assert values(rows["additive"], "peak_memory_bytes", "reference") == own
    assert values(rows["additive"], "peak_memory_bytes")[0] > own[0]
    assert values(rows["scaled_dot"], "parameters_count") == {0: 0.0}


def test_the_baseline_itself_is_its_own_reference():
    rows = measure("scaled_dot")["scaled_dot"]
    assert values(rows, "forward_time_ms") == values(rows, "forward_time_ms", "reference")
    assert set(values(rows, "forward_time_ms", "aa_control")) == {0, 1}


@pytest.mark.slow
def test_one_bad_variant_never_stops_the_others(broken):
    found = measure("breaks", "runs_out", "cross_only", "no_such_variant", "additive")
    assert found["breaks"] == Reason("failed", "ZeroDivisionError while timing: something broke")
    assert found["runs_out"].status == "out_of_memory"
    assert found["cross_only"] == Reason("refused", "cross_only: it looks ahead")
    assert found["no_such_variant"].status == "failed"
    assert isinstance(found["additive"], list)


def test_a_call_that_runs_out_of_memory_leaves_the_rows_of_the_other_calls(broken):
    one = cell("runs_out_backward")
    ticks = count()
    (found,) = measure_block([one], cell("scaled_dot"), clock=lambda: next(ticks) * 1e-3).values()
    assert set(values(found.rows, "forward_time_ms")) == {0, 1}
    assert set(values(found.rows, "forward_time_ms", "reference")) == {0, 1}
    assert set(values(found.rows, "decode_step_time_ms")) == {0, 1}
    assert set(values(found.rows, "forward_peak_memory_bytes")) == {0}
    why = {one.metric: (one.status, one.detail) for one in found.unmeasured}
    spent = (
        "out_of_memory",
        "timing ran out of memory: 68.7 GB were asked for at once",
    )
    assert why["forward_backward_time_ms"] == why["peak_memory_bytes"] == spent
    assert why["forward_weights_time_ms"] == (
        "refused",
        "this mechanism gives no attention weights.",
    )
    assert len(why) == 3
    assert not {one.metric for one in found.rows} & set(why)


def test_a_baseline_that_loses_a_call_is_still_the_reference_of_the_others(broken):
    base = cell("runs_out_backward")
    found = measure_block([cell("additive")], base, clock=iter(range(10**6)).__next__)
    (rows,) = map(rows_or_reason, found.values())
    assert values(rows, "forward_time_ms", "aa_control")
    assert values(rows, "forward_backward_time_ms")
    assert not values(rows, "forward_backward_time_ms", "reference")


def test_without_a_baseline_there_are_times_but_no_comparison(broken):
    rows = measure("additive", reference="breaks")["additive"]
    assert {row.metric for row in rows} > TIMES
    assert not any(row.baseline for row in rows)


def test_the_same_code_under_two_names_is_timed_once(monkeypatch):
    built = []
    original = Variant.__init__

    def note(self, dims, impl="auto"):
        built.append(self)
        original(self, dims, impl)

    monkeypatch.setattr(Variant, "__init__", note)
    found = measure("additive", "additive[head=raw]", "additive[width=8]")
    assert len(built) == 3  # baseline, additive, the narrow one
    assert found["additive"] == found["additive[head=raw]"] != found["additive[width=8]"]


def test_a_control_is_timed_by_itself(monkeypatch):
    recipe = Recipe(axes={"score": "scaled_dot"})
    entry = Registration(axis="recipe", name="twin", target=recipe, control="negative")
    monkeypatch.setitem(registry._ENTRIES["recipe"], "twin", entry)
    seen = []
    cells = [cell("scaled_dot"), cell("twin")]
    ticks = count()
    measure_block(
        cells, cells[0], clock=lambda: next(ticks) * 1e-3, progress=lambda *at: seen.append(at)
    )
    assert seen[-1] == (24, 24)  # baseline, A/A control, twin: four workloads, two rounds


@pytest.mark.parametrize(
    "changed", [{"seed": 1}, {"length": 7}, {"kind": "trial"}, {"dtype": "float64"}]
)
def test_cells_that_do_not_belong_together_are_an_error(changed):
    with pytest.raises(InvalidConfig, match="cannot time"):
        measure_block([cell("additive", **changed)], cell("scaled_dot"))


def test_slot_and_shape_must_agree():
    odd = cell("scaled_dot", slot="cross")
    with pytest.raises(InvalidConfig, match="has regime causal, the cell has slot cross"):
        measure_block([odd], odd)


def test_the_dtype_of_the_cell_is_the_dtype_that_is_timed():
    small, large = (
        measure("scaled_dot", dtype=dtype)["scaled_dot"] for dtype in ("float32", "float64")
    )
    metric = "peak_memory_bytes"
    assert values(large, metric)[0] == pytest.approx(2 * values(small, metric)[0], rel=0.05)
    with pytest.raises(InvalidConfig, match="no floating-point dtype"):
        measure("scaled_dot", dtype="int64")


def test_blocks_hold_cells_of_one_shape_in_the_order_of_first_sight():
    cells = [cell("a"), cell("a", length=7), cell("b"), cell("b", length=7), cell("c", seed=1)]
    blocks = group_blocks(cells)
    assert [[one.variant for one in block] for block in blocks] == [["a", "b"], ["a", "b"], ["c"]]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_gpu_gives_the_same_rows():
    found = measure_block([cell("additive", device="cuda")], cell("scaled_dot", device="cuda"))
    (rows,) = map(rows_or_reason, found.values())
    assert {row.metric for row in rows} > TIMES


def test_the_baseline_is_timed_beyond_the_limits_and_others_say_what_is_missing():
    limits = "count=2,visit_ms=1,least=1,samples=1,most_mb=1,most_s=0.000001"
    found = measure("uniform", "scaled_dot", rounds=limits, length=516, regime="cross")
    assert TIMES & {row.metric for row in found["uniform"]} == {"decode_step_time_ms"}
    timed = {row.metric for row in found["scaled_dot"] if row.repeat == 0}
    assert timed >= TIMES - {"forward_weights_time_ms"}
    assert "forward_weights_time_ms" not in timed
