"""Slots are timed with their heads: other heads are other code, and what they keep is measured."""

from dataclasses import replace

import pytest
import torch

from bench.api.cell import Cell
from bench.api.errors import Refused
from bench.api.places import STACK
from bench.api.resolve import resolve
from bench.timing.asked_shapes import asked_shapes
from bench.timing.block import measure_block
from bench.timing.shape import WORKLOADS, AttendShape, parse_shape
from bench.timing.slot_block import measure_slots
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import MAKERS, answer, build

SHAPE = AttendShape(batch=2, heads=2, length=6, width=4, place="slot")
FLOAT = 4


def cell(variant, shape=SHAPE):
    return Cell(
        kind="speed",
        task=shape.show(),
        backbone="none",
        variant=variant,
        slot=shape.regime,
        protocol="rounds[count=2,visit_ms=0.1,samples=1,budget_ms=0.2,least=1]",
    )


def measured(*variants, shape=SHAPE, baseline="scaled_dot"):
    cells = [cell(name, shape) for name in variants]
    measure = measure_slots if shape.place == "slot" else measure_block
    found = measure(cells, cell(baseline, shape))
    return {one.variant: found[one.id] for one in cells}


def value(found, metric):
    (one,) = {row.value for row in found.rows if row.metric == metric and not row.baseline}
    return one


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_a_timed_slot_answers_as_the_slot_does(regime):
    shape = AttendShape(batch=2, heads=2, length=5, width=4, regime=regime, place="slot")
    timed = build(resolve("additive"), shape, "auto", seed=0)
    inputs = draw_inputs(shape, torch.device("cpu"), torch.float32, 1)
    x, read = inputs.query[:, 0], inputs.source.key[:, 0]
    if regime in ("causal", "self"):
        own = (x, None, inputs.source.tokens)
        wanted, _ = timed.slot.attend(x, None, timed.slot.start(None, x), own=own)
    else:
        memory = timed.slot.prepare(read, None, inputs.source.tokens)
        wanted, _ = timed.slot.attend(x, memory, timed.slot.start(memory, x))
    found = answer(timed, inputs.query, inputs.source).output
    assert torch.allclose(found[:, 0], wanted)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_of_a_slot_can_be_called(workload):
    timed = build(resolve("scaled_dot"), SHAPE, "auto", seed=0)
    found = MAKERS[workload](timed, draw_inputs(SHAPE, torch.device("cpu"), torch.float32, 0))()
    if workload == "forward_backward":
        grads = [one.grad for one in timed.parameters()]
        assert grads
        assert all(one.isfinite().all() and one.any() for one in grads)
        return
    queries = 1 if workload == "decode_step" else SHAPE.length
    assert found.output.shape == (SHAPE.batch, 1, queries, SHAPE.heads * SHAPE.width)
    assert found.output.isfinite().all()


def test_parameters_of_the_heads_are_counted():
    found = measured("scaled_dot")["scaled_dot"]
    assert value(found, "parameters_count") == 4 * 8 * 8


def test_other_heads_are_other_code_in_a_slot_and_the_same_code_beneath():
    heads = "scaled_dot[head=short_convolution[heads=2,norm=false,gate=none]]"
    beneath = AttendShape(batch=2, heads=2, length=6, width=4)
    both = measured("scaled_dot", heads), measured("scaled_dot", heads, shape=beneath)
    kept = [[value(found, "state_bytes") for found in one.values()] for one in both]
    plain = 2 * 6 * 8 * FLOAT
    assert kept[0] == [plain, plain + 3 * 24 * FLOAT]
    assert kept[1] == [plain, plain]


def test_what_a_recurrent_mechanism_keeps_does_not_grow():
    longer = AttendShape(batch=1, heads=2, length=12, width=4, place="slot")
    for name, grows in (("linear_attention", False), ("scaled_dot", True)):
        short, long = (measured(name, shape=shape)[name] for shape in (SHAPE, longer))
        assert (value(long, "state_bytes") > value(short, "state_bytes")) == grows


def test_a_slot_is_typed_in_front_of_its_sizes():
    assert asked_shapes(["slot,B=1,L=8"]) == [AttendShape(batch=1, length=8, place="slot")]
    assert asked_shapes(["slot"]) == [AttendShape(place="slot")]
    assert parse_shape(SHAPE.show()) == SHAPE
    assert "place" not in AttendShape().show()


def test_heads_that_do_not_fit_the_place_are_refused():
    shape = AttendShape(regime="cross", place="slot")
    with pytest.raises(Refused, match="causal place"):
        build(resolve("scaled_dot[head=short_convolution]"), shape, "auto", seed=0)


def test_tokens_in_a_second_stand_beside_every_time_of_a_slot():
    found = measured("scaled_dot")["scaled_dot"]
    rows = {(row.metric, row.repeat, row.baseline): row.value for row in found.rows}
    for (metric, repeat, baseline), ms in list(rows.items()):
        if metric == "forward_time_ms":
            assert rows["prefill_tokens_per_s", repeat, baseline] == pytest.approx(2 * 6e3 / ms)
        if metric == "decode_step_time_ms":
            assert rows["decode_tokens_per_s", repeat, baseline] == pytest.approx(2e3 / ms)
    beneath = AttendShape(batch=2, heads=2, length=6, width=4)
    plain = measured("scaled_dot", shape=beneath)["scaled_dot"]
    assert not [row for row in plain.rows if row.metric.endswith("tokens_per_s")]


LONG = AttendShape(batch=2, heads=2, length=40, width=4, place="slot")
LINKED = ("cla", "cla[sharing=3]", "svformer", "value_residual")


def one_by_one(timed, x):
    """The layers of a stack written out, each asked alone with what it reads."""
    found, kept = x, {}
    for index, slot in enumerate(timed.slots):
        below = None if slot.link is None else kept[slot.link.layer]
        state = slot.start(None, found)
        own = (found, None, None)
        found, attended = slot.attend(
            found, None, state, own=own, below=below, want_memory=index in timed.read_above
        )
        kept[index] = attended.memory
    return found


@pytest.mark.parametrize("variant", LINKED)
def test_heads_that_read_layers_below_are_timed_as_a_stack(variant):
    timed = build(resolve(variant), LONG, "auto", seed=0)
    inputs = draw_inputs(LONG, torch.device("cpu"), torch.float32, 1)
    assert len(timed.slots) == STACK
    assert [slot.link is None for slot in timed.slots][:2] == [True, False]
    found = answer(timed, inputs.query, inputs.source).output[:, 0]
    assert torch.allclose(found, one_by_one(timed, inputs.query[:, 0]), atol=1e-6)
    distinct = {id(one) for slot in timed.slots for one in slot.parameters()}
    assert {id(one) for one in timed.parameters()} == distinct


@pytest.mark.parametrize("variant", LINKED)
def test_a_step_of_a_stack_goes_on_behind_the_prompt_whenever_it_is_called(variant):
    timed = build(resolve(variant), LONG, "auto", seed=0)
    inputs = draw_inputs(LONG, torch.device("cpu"), torch.float32, 1)
    step = MAKERS["decode_step"](timed, inputs)
    whole = torch.cat((inputs.query, inputs.next_query), 2)[:, 0]
    wanted = one_by_one(timed, whole)[:, -1:]
    for _ in range(3):
        assert torch.allclose(step().output[:, 0], wanted, atol=1e-6)


def test_numbers_of_a_stack_are_those_of_a_layer():
    """Of four layers two keep keys and values, or all keep keys and one values."""
    found = measured("mha", *LINKED, shape=LONG)
    kept = {name: value(one, "state_bytes") for name, one in found.items()}
    whole = kept["mha"]
    assert whole == 2 * 8 * LONG.length * FLOAT
    assert {name: kept[name] / whole for name in LINKED} == {
        "cla": 1 / 2,
        "cla[sharing=3]": 1 / 2,
        "svformer": 5 / 8,
        "value_residual": 1.0,
    }
    assert value(found["cla"], "parameters_count") == 3 * 8 * 8
    assert value(found["cla"], "layers_count") == STACK
    assert not [row for row in found["mha"].rows if row.metric == "layers_count"]
    flops = [value(found[name], "forward_flops_counted_count") for name in ("mha", "cla")]
    projected = 2 * LONG.batch * LONG.length * 8 * 8
    assert flops[0] - flops[1] == projected


def test_tokens_in_a_second_of_a_stack_are_those_that_a_layer_reads():
    found = measured("cla")["cla"]
    rows = {(row.metric, row.repeat, row.baseline): row.value for row in found.rows}
    times = [key for key in rows if key[0] == "forward_time_ms"]
    assert len(times) >= 3
    for _, repeat, baseline in times:
        ms = rows["forward_time_ms", repeat, baseline]
        assert rows["prefill_tokens_per_s", repeat, baseline] == pytest.approx(2 * 6e3 / ms)


def test_what_stands_beside_a_stack_is_not_divided():
    both = measured("cla", "scaled_dot")
    beside = {
        name: {row.value for row in one.rows if row.metric == "state_bytes" and row.baseline}
        for name, one in both.items()
    }
    assert beside["cla"] == beside["scaled_dot"] == {2 * 8 * SHAPE.length * FLOAT}


def test_a_stack_is_a_layer_too_where_it_is_the_baseline():
    found = measured("cla", "scaled_dot", baseline="cla")
    own, beside = (
        {row.metric: row.value for row in found["cla"].rows if row.baseline == whose}
        for whose in ("", "reference")
    )
    for name in ("state_bytes", "parameters_count", "forward_flops_counted_count"):
        assert own[name] == beside[name]
    single = {row.metric: row.value for row in found["scaled_dot"].rows if row.baseline}
    assert single["parameters_count"] == own["parameters_count"]


def test_a_step_needs_what_it_computes_and_no_copy_of_its_cache():
    found = {
        length: measured("mha", shape=replace(SHAPE, batch=1, length=length, regime="causal"))[
            "mha"
        ]
        for length in (64, 512)
    }
    name = "decode_step_peak_memory_bytes"
    short, long = (value(found[length], name) for length in (64, 512))
    assert 0 < short < value(found[64], "state_bytes")
    # a further key costs its energy and its weight in each head, and not its numbers
    assert (long - short) / (512 - 64) < 4 * 2 * FLOAT


def test_where_there_is_no_step_its_memory_has_the_same_reason():
    found = measured("scaled_dot", shape=replace(SHAPE, regime="self"))["scaled_dot"]
    why = {one.metric: one.detail for one in found.unmeasured}
    assert why["decode_step_peak_memory_bytes"] == why["decode_step_time_ms"]
