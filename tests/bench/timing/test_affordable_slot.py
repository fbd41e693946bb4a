"""A slot that would not fit is refused from counts at two short lengths."""

import pytest
import torch

from bench.api.cell import Cell
from bench.api.resolve import resolve
from bench.timing.affordable import counted
from bench.timing.affordable_slot import INPUTS, expected, too_large_slot
from bench.timing.asked_shapes import SERVED
from bench.timing.shape import AttendShape, parse_rounds
from bench.timing.slot_block import measure_slots
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import build, forward

SHAPE = AttendShape(batch=1, heads=2, length=2048, width=8, place="slot")
TIGHT = "rounds[count=1,visit_ms=0.1,samples=1,budget_ms=0.2,least=1,most_mb=20,workloads=forward]"


@pytest.mark.parametrize("impl", ["auto", "eager"])
@pytest.mark.parametrize("variant", ["scaled_dot", "retnet", "sliding_window[window=16]"])
def test_what_is_expected_is_near_what_is_held(variant, impl):
    spec = resolve(variant)
    megabytes, _ = expected(spec, SHAPE, impl, torch.float32)
    made = build(spec, SHAPE, impl, seed=0)
    call = forward(made, draw_inputs(SHAPE, torch.device("cpu"), torch.float32, 0))
    held = counted(call).peak_bytes + INPUTS * SHAPE.length * 16 * 4
    assert 0.8 < 1e6 * megabytes / held < 1.5


def test_a_fused_call_is_not_taken_for_the_matrix_it_never_holds():
    fused, plain = (
        expected(resolve("scaled_dot"), SHAPE, impl, torch.float32)[0] for impl in ("auto", "eager")
    )
    assert 20 * fused < plain


@pytest.mark.slow
def test_long_prompts_of_many_rows_are_refused_in_a_sentence_that_says_what_to_type():
    shape = AttendShape(batch=64, heads=8, length=131072, width=64, place="slot")
    limits = parse_rounds("rounds[most_mb=1000]")
    said = too_large_slot(resolve("retnet"), shape, limits, "auto", torch.bfloat16)
    assert said.startswith("reading 131072 tokens of 64 rows would hold about ")
    assert said.endswith("--shape slot,B=64,H=8,L=131072,E=64 has no such limit.")
    limits = parse_rounds("rounds[most_s=5]")
    assert "take about" in too_large_slot(resolve("mha"), shape, limits, "auto", torch.float32)
    unlimited = parse_rounds("rounds")
    assert too_large_slot(resolve("mha"), shape, unlimited, "auto", torch.float32) is None


def cell(variant, impl="eager"):
    return Cell(
        kind="speed",
        task=SHAPE.show(),
        backbone="none",
        variant=variant,
        slot="causal",
        protocol=TIGHT,
        impl=impl,
    )


def test_what_fits_is_timed_without_a_baseline_that_does_not():
    cells = [cell("scaled_dot"), cell("retnet")]
    base, other = (measure_slots(cells, cells[0])[one.id] for one in cells)
    assert (base.status, base.detail[:20]) == ("refused", "reading 2048 tokens ")
    assert {row.baseline for row in other.rows} == {""}
    assert "prefill_tokens_per_s" in {row.metric for row in other.rows}


def test_nothing_is_built_where_everything_is_refused(monkeypatch):
    monkeypatch.setattr("bench.timing.slot_block.measure_block", None)
    one = cell("scaled_dot")
    assert measure_slots([one], one)[one.id].status == "refused"


def test_the_protocol_of_slots_reads_and_decodes_and_has_no_limit_of_its_own():
    protocol = parse_rounds(SERVED)
    assert protocol.asked == ("forward", "decode_step")
    assert (protocol.most_mb, protocol.most_s) == (0, 0)
