"""What is too large is known from counts at a short length, before anything runs out."""

import pytest
import torch

from bench.api.resolve import resolve
from bench.timing.affordable import PROBED, counted, too_large
from bench.timing.shape import WORKLOADS, AttendShape, parse_rounds
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import MAKERS, build

CPU = torch.device("cpu")
LONG = 8 * PROBED


def asked(variant, protocol, length=LONG, regime="cross", among=WORKLOADS):
    shape = AttendShape(batch=1, heads=1, length=length, width=8, regime=regime)
    made = build(resolve(variant), shape, "auto", seed=0)
    return too_large(made, shape, parse_rounds(protocol), torch.float32, among=among)


def at(variant, length, workload="forward_backward"):
    shape = AttendShape(batch=1, heads=1, length=length, width=8, regime="cross")
    made = build(resolve(variant), shape, "auto", seed=0)
    return counted(MAKERS[workload](made, draw_inputs(shape, CPU, torch.float32, 0)))


@pytest.mark.parametrize("variant", ["uniform", "additive", "linear_attention", "scaled_dot"])
def test_what_is_expected_of_a_long_call_is_near_what_it_needs(variant):
    made = build(resolve(variant), AttendShape(regime="cross"), "auto", seed=0)
    short, long = at(variant, PROBED), at(variant, 4 * PROBED)
    # what is held in chunks grows less than is declared
    assert 0.75 < short.megabytes(4, made.memory_exponent) / long.megabytes(1, 0) < 2
    assert 0.75 < short.seconds(4, made.time_exponent) / long.seconds(1, 0) < 1.5


def test_a_matrix_that_would_not_fit_is_refused_in_one_sentence():
    found = asked("uniform", "rounds[most_mb=20]")
    assert set(found) == {"forward", "forward_weights", "forward_backward"}
    assert len({*found.values()}) == 1, "what holds more than a forward call is not counted"
    reason = found["forward_backward"]
    assert reason.status == "refused"
    assert reason.detail.startswith("forward at length 2048 would hold about ")
    assert reason.detail.endswith(
        " MB by its declared growth, more than the 20 MB of this protocol; --shape has no such "
        "limit."
    )


def test_a_call_that_would_take_too_long_is_refused_without_a_clock():
    found = asked("deep_mlp", "rounds[most_s=0.1]")
    assert "take about" in found["forward_backward"].detail
    assert "decode_step" not in found


def test_what_fills_a_cache_must_fit_for_a_step_to_be_timed():
    limits = "rounds[most_mb=20]"
    assert "decode_step" not in asked("additive", limits, regime="cross")
    found = asked("shaw_rpr", limits, regime="causal")
    assert found["decode_step"] == found["forward"]
    alone = asked("shaw_rpr", limits, regime="causal", among=("decode_step",))
    assert alone == {"decode_step": found["forward"]}


def test_less_than_quadratic_memory_is_timed_but_for_a_matrix_of_weights():
    limits = "rounds[most_mb=20]"
    assert not asked("linear_attention", limits)
    assert set(asked("scaled_dot", limits)) == {"forward_weights"}


@pytest.mark.parametrize(("protocol", "length"), [("rounds", LONG), ("rounds[most_mb=0.001]", 512)])
def test_nothing_is_counted_without_limits_or_at_short_lengths(protocol, length, monkeypatch):
    monkeypatch.delattr("bench.timing.affordable.counted")
    assert not asked("uniform", protocol, length)
