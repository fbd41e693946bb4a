"""Networks that are made as large as the baseline's."""

from contextlib import nullcontext
from dataclasses import fields, replace

import pytest
import torch

from bench.api import registry
from bench.api.backbone import BACKBONES
from bench.api.errors import Refused, UnknownName
from bench.running.plan import plan
from bench.running.request import Request
from bench.training import matching, step_time
from bench.training.matching import MEASURES, WITHIN, Matcher
from bench.training.quality import train_cell


def cells_of(variants, **changed):
    asked = {"tasks": "transduction", "preset": "smoke", "speed": False, **changed}
    made = plan(Request(variants=variants, **asked))
    return {planned.spec.name: planned.cell for planned in made.quality}


def size(matcher, cell, like=None):
    found = matcher._size(cell, like or cell)
    assert found is not None
    return found


@pytest.fixture
def steady_steps(monkeypatch):
    """Steps whose time is the number of parameters, so that no clock takes part."""

    def step_seconds(system, task, cell):
        return lambda: 1e-9 * sum(one.numel() for one in system.parameters())

    monkeypatch.setattr(matching, "step_seconds", step_seconds)


@pytest.mark.parametrize("by", MEASURES)
def test_a_network_gets_the_size_of_another_within_two_percent(by):
    cells = cells_of("multi_dimensional")
    matcher = Matcher(by, None)
    mine, target = size(matcher, cells["multi_dimensional"]), size(matcher, cells["scaled_dot"])
    assert abs(mine / target - 1) > 5 * WITHIN, "there was nothing to match"
    found = matcher.matched(cells["multi_dimensional"], cells["scaled_dot"])
    assert abs(size(matcher, found) / target - 1) <= WITHIN
    assert found.id != cells["multi_dimensional"].id


def test_the_same_network_is_found_again():
    cells = cells_of("multi_dimensional")
    asked = cells["multi_dimensional"], cells["scaled_dot"]
    assert Matcher("params", None).matched(*asked) == Matcher("params", None).matched(*asked)


def test_the_row_of_a_matched_cell_has_the_parameters_that_were_matched():
    cells = cells_of("multi_dimensional", training="adam[steps=1,evaluate_every=1]")
    matcher = Matcher("params", None)
    found = matcher.matched(cells["multi_dimensional"], cells["scaled_dot"])
    rows = {row.metric: row.value for row in train_cell(found).rows}
    assert rows["parameters_count"] == size(matcher, found)


def test_what_is_near_enough_stays_as_it_is():
    cells = cells_of("uniform")
    assert (
        Matcher("params", None).matched(cells["uniform"], cells["scaled_dot"]) is cells["uniform"]
    )


@pytest.mark.parametrize(("variant", "by"), [("gqa", "params"), ("linear_attention", "flops")])
def test_feed_forward_layers_give_what_heads_are_too_coarse_for(variant, by):
    cells = cells_of(variant, tasks="recall")
    matcher = Matcher(by, None)
    mine, target = size(matcher, cells[variant]), size(matcher, cells["scaled_dot"])
    assert abs(mine / target - 1) > WITHIN, "there was nothing to match"
    found = matcher.matched(cells[variant], cells["scaled_dot"])
    assert "feed_width=" in found.backbone
    assert abs(size(matcher, found) / target - 1) <= WITHIN


def test_a_network_without_a_fine_width_is_refused_in_one_sentence(monkeypatch):
    decoder = registry.find(BACKBONES, "transformer_decoder").target
    monkeypatch.setattr(decoder, "sized_by", ("width",))
    cells = cells_of("linear_attention", tasks="recall")
    sentence = (
        r"no width of transformer_decoder gives it the forward FLOPs of the baseline within 2%; "
        r"the nearest has [+-]\d+\.\d%\."
    )
    with pytest.raises(Refused, match=sentence):
        Matcher("flops", None).matched(cells["linear_attention"], cells["scaled_dot"])


@pytest.mark.parametrize("by", ["params", "flops", "time"])
def test_a_cell_that_cannot_be_trained_is_left_to_its_row(steady_steps, by):
    cells = cells_of("coverage_loss", tasks="recall")
    matcher = Matcher(by, None)
    assert matcher.matched(cells["coverage_loss"], cells["scaled_dot"]) is cells["coverage_loss"]


@pytest.mark.parametrize("wrong", [ZeroDivisionError("a mistake"), RuntimeError("no memory")])
def test_a_network_that_fails_is_refused_with_what_it_raised(monkeypatch, wrong):
    cells, usual = cells_of("multi_dimensional"), Matcher._built

    def built(self, cell):
        if cell.variant == "multi_dimensional":
            raise wrong
        return usual(self, cell)

    monkeypatch.setattr(Matcher, "_built", built)
    sentence = f"the size of multi_dimensional could not be measured: {type(wrong).__name__}"
    with pytest.raises(Refused, match=sentence):
        Matcher("params", None).matched(cells["multi_dimensional"], cells["scaled_dot"])


@pytest.mark.parametrize("by", ["params", "flops", "time"])
def test_nothing_is_matched_with_a_baseline_that_cannot_be_trained(steady_steps, by):
    cells = cells_of("coverage_loss", tasks="recall")
    with pytest.raises(Refused, match="the baseline cannot be trained on this task"):
        Matcher(by, None).matched(cells["scaled_dot"], cells["coverage_loss"])


def test_the_state_of_every_generator_that_a_measurement_seeds_comes_back(monkeypatch):
    forked = []

    def fork_rng(devices):
        forked.append([*devices])
        return nullcontext()

    monkeypatch.setattr(torch.random, "fork_rng", fork_rng)
    monkeypatch.setattr(Matcher, "_built", lambda *_: (None, None))
    monkeypatch.setitem(MEASURES, "params", (lambda *_: 1, "trained parameters"))
    cell = cells_of("uniform")["uniform"]
    for device, wanted in (("cpu", []), ("cuda", [torch.device("cuda")])):
        forked.clear()
        size(Matcher("params", None), replace(cell, device=device))
        assert forked == [wanted]


@pytest.mark.parametrize("name", registry.registrations(BACKBONES))
def test_what_sizes_a_network_is_one_of_its_widths(name):
    registered = registry.find(BACKBONES, name)
    known = {field.name: field.type for field in fields(registered.config)}
    assert set(registered.target.sized_by) <= set(known)
    assert all(
        isinstance(getattr(registered.config, knob), int) for knob in registered.target.sized_by
    )


def test_steps_of_equal_time_are_found_beside_the_baseline(steady_steps):
    cells = cells_of("multi_dimensional")
    mine, like = cells["multi_dimensional"], cells["scaled_dot"]
    matcher = Matcher("time", None)
    assert abs(size(matcher, mine, like) / step_time.UNIT - 1) > 5 * WITHIN, "nothing to match"
    found = matcher.matched(mine, like)
    assert abs(size(matcher, found, like) / step_time.UNIT - 1) <= WITHIN
    counted = Matcher("params", None)
    assert abs(size(counted, found) / size(counted, like) - 1) <= WITHIN


def test_a_machine_on_which_a_network_differs_from_itself_matches_nothing(monkeypatch):
    cells = cells_of("multi_dimensional")
    ticks = iter(range(10**6))

    def step_seconds(system, task, cell):
        return lambda: 1.0 + 0.2 * (next(ticks) % 4 in (1, 2))

    monkeypatch.setattr(matching, "step_seconds", step_seconds)
    with pytest.raises(Refused, match=r"two timings of the baseline's training step differ"):
        Matcher("time", None).matched(cells["multi_dimensional"], cells["scaled_dot"])


def test_a_baseline_that_differed_from_itself_once_is_matched_with_nothing(
    monkeypatch, steady_steps
):
    noisy = iter([True, False])
    timed = []

    def refuse_noise(step, within):
        if next(noisy):
            raise Refused("two timings differ")

    monkeypatch.setattr(matching, "refuse_noise", refuse_noise)
    monkeypatch.setattr(matching, "relative_time", lambda *steps: timed.append(steps) or 1)
    cells = cells_of("multi_dimensional,uniform")
    matcher = Matcher("time", None)
    for variant in ("multi_dimensional", "uniform"):
        with pytest.raises(Refused, match="two timings differ"):
            matcher.matched(cells[variant], cells["scaled_dot"])
    assert not timed, "something was timed before the noise was known"


def test_the_time_of_a_step_is_that_of_both_passes_of_one_batch(monkeypatch):
    ticks = iter([1.0, 3.5])
    monkeypatch.setattr(step_time, "clock", lambda: next(ticks))
    cell = cells_of("scaled_dot")["scaled_dot"]
    system, task = Matcher("time", None)._built(cell)
    seen = []
    for one in system.parameters():
        one.register_hook(seen.append)
    assert step_time.step_seconds(system, task, cell)() == 2.5
    assert seen, "no gradient was computed"
    assert all(one.grad is None for one in system.parameters()), "the next step starts anew"


def test_a_ratio_of_times_is_the_median_over_rounds_in_which_both_take_turns():
    order = []

    def step(name, spent):
        return lambda: order.append(name) or spent

    assert step_time.relative_time(step("a", 3.0), step("b", 2.0)) == 1.5 * step_time.UNIT
    firsts = order[::2]
    assert {"a", "b"} == set(firsts), "one of them always came first"
    assert len(order) == 2 * (step_time.ROUNDS + 1)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.0, 9.0, *[1.0] * step_time.ROUNDS], 1.0),  # one interruption moves no median
        ([9.0, *[1.0, 2.0] * step_time.ROUNDS], 1.5),  # the first round is not counted
    ],
)
def test_neither_an_interruption_nor_the_first_round_moves_a_ratio_of_times(ratios, expected):
    spent = iter(ratios)
    found = step_time.relative_time(lambda: next(spent), lambda: 1.0)
    assert step_time.ROUNDS % 2 == 0
    assert found == expected * step_time.UNIT


def test_what_cannot_be_matched_is_said():
    with pytest.raises(UnknownName, match="no match named 'parms'; did you mean 'params'"):
        Request(match="parms")
