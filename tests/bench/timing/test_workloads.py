from dataclasses import replace

import pytest
import torch

from bench.api.resolve import resolve
from bench.api.score import Score
from bench.api.source import Source
from bench.timing.shape import WORKLOADS, AttendShape
from bench.timing.timed_inputs import draw_inputs, with_inputs
from bench.timing.workloads import (
    answer,
    build,
    decode_step,
    forward,
    forward_backward,
    forward_weights,
    make_works,
)

CPU = torch.device("cpu")
REGIMES = ("cross", "causal", "self", "pool")


def prepared(regime, selector="scaled_dot", seed=0, length=7):
    shape = AttendShape(batch=2, heads=2, length=length, width=4, regime=regime)
    variant = build(resolve(selector), shape, "auto", seed=seed)
    return variant, draw_inputs(shape, CPU, torch.float32, seed)


def test_inputs_that_all_heads_share_have_one_head():
    variant, inputs = prepared("causal", "dsa[index_width=6]")
    source = with_inputs(variant, inputs.source)
    assert source.extras["index_key"].shape == (2, 1, 7, 6)
    assert forward(variant, inputs)().output.shape == (2, 2, 7, 4)


def test_inputs_are_standard_normal_and_follow_the_seed():
    shape = AttendShape(length=512)
    inputs = draw_inputs(shape, CPU, torch.float32, 3)
    again = draw_inputs(shape, CPU, torch.float32, 3)
    assert torch.equal(inputs.query, again.query)
    assert not torch.equal(inputs.query, inputs.source.key)
    assert not torch.equal(inputs.query, draw_inputs(shape, CPU, torch.float32, 4).query)
    assert abs(float(inputs.query.mean())) < 0.02
    assert abs(float(inputs.query.std()) - 1) < 0.02


def test_parameters_follow_the_seed_and_the_callers_random_state_stays(monkeypatch):
    before = torch.get_rng_state()
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: pytest.fail("that of GPUs too"))
    one, two, three = (prepared("cross", "additive", seed)[0] for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.score.query_map, two.score.query_map)
    assert not torch.equal(one.score.query_map, three.score.query_map)


@pytest.mark.parametrize("regime", REGIMES)
def test_forward_needs_no_gradient_and_gives_no_weights(regime):
    variant, inputs = prepared(regime, "additive")
    attended = forward(variant, inputs)()
    assert attended.output.shape == inputs.query.shape
    assert not attended.output.requires_grad
    assert attended.weights is None
    queries = 1 if regime == "pool" else 7
    assert forward_weights(variant, inputs)().weights.shape == (2, 2, queries, 7)


@pytest.mark.parametrize("regime", REGIMES)
def test_backward_reaches_every_parameter_with_the_gradient_of_one_call(regime):
    variant, inputs = prepared(regime, "additive")
    work = forward_backward(variant, inputs)
    work()
    first = variant.score.v.grad.clone()
    work()
    assert torch.equal(variant.score.v.grad, first)
    output = answer(variant, inputs.query, inputs.source).output
    (expected,) = torch.autograd.grad(output, variant.score.v, inputs.gradient)
    torch.testing.assert_close(first, expected)
    assert inputs.query.grad is None


@pytest.mark.parametrize("regime", ["self", "pool"])
def test_where_all_queries_come_at_once_there_is_no_decode_step(regime):
    variant, inputs = prepared(regime)
    works, lost = make_works(resolve("scaled_dot"), variant, inputs, WORKLOADS)
    assert sorted(works) == ["forward", "forward_backward", "forward_weights"]
    assert [reason.status for reason in lost.values()] == ["refused"]
    assert "all queries come at once" in lost["decode_step"].detail


def test_a_cached_step_answers_like_all_keys_at_once():
    variant, inputs = prepared("causal")
    work = decode_step(variant, inputs)
    joined = Source(
        key=torch.cat((inputs.source.key, inputs.next_source.key), 2),
        value=torch.cat((inputs.source.value, inputs.next_source.value), 2),
    )
    query = torch.cat((inputs.query, inputs.next_query), 2)
    expected = answer(variant, query, joined).output[:, :, -1:]
    torch.testing.assert_close(work().output, expected)
    torch.testing.assert_close(work().output, expected)  # a step leaves no trace
    assert work().state.offset == 8


def test_a_step_of_cross_attention_reads_the_whole_memory():
    variant, inputs = prepared("cross")
    expected = answer(variant, inputs.next_query, inputs.source).output
    torch.testing.assert_close(decode_step(variant, inputs)().output, expected)


def test_a_variant_without_weights_has_no_such_workload():
    variant, inputs = prepared("cross")
    works, lost = make_works(resolve("scaled_dot"), variant, inputs, WORKLOADS)
    assert tuple(works) == WORKLOADS
    assert not lost
    fused = build(resolve("scaled_dot"), AttendShape(regime="cross"), "sdpa", seed=0)
    works, lost = make_works(resolve("scaled_dot"), fused, inputs, WORKLOADS)
    assert tuple(works) == ("forward", "forward_backward", "decode_step")
    assert lost["forward_weights"].status == "refused"
    assert "weights" in lost["forward_weights"].detail


def test_half_of_the_gradients_do_not_outlive_a_call_that_failed():
    variant, inputs = prepared("cross", "additive")
    work = forward_backward(variant, replace(inputs, gradient=torch.zeros(3)))
    variant.score.v.grad = torch.ones_like(variant.score.v)
    with pytest.raises(RuntimeError):
        work()
    assert all(parameter.grad is None for parameter in variant.parameters())


@pytest.mark.parametrize("variant", ["mha", "gqa", "linear_attention", "sliding_window[window=16]"])
def test_every_decode_step_is_the_same_and_copies_no_cache(variant):
    built, inputs = prepared("causal", variant, length=70)
    work = decode_step(built, inputs)
    first, second, third = work(), work(), work()
    assert torch.equal(first.output, second.output)
    assert torch.equal(first.output, third.output)
    caches = [one.state.cache for one in (first, second)]
    assert (caches[0] and caches[0].room) is (caches[1] and caches[1].room)
    whole = torch.cat((inputs.source.key, inputs.next_source.key), 2)
    if variant == "mha":
        assert torch.equal(first.state.cache.source.key, whole)
        assert first.state.offset == 71


def test_every_decode_step_writes_what_is_carried_to_the_same_place():
    built, inputs = prepared("causal", "lstmn[width=16]", length=70)
    work = decode_step(built, inputs)
    first, second = work().state.carried, work().state.carried
    for name in ("written", "tape"):
        assert first[name].shape[2] == second[name].shape[2] == 71
        assert first[name].data_ptr() == second[name].data_ptr()


def test_a_method_that_is_missing_is_a_failure_and_code_that_torch_lacks_a_refusal(monkeypatch):
    spec, (variant, inputs) = resolve("additive"), prepared("cross", "additive")

    def lost(energy):
        monkeypatch.setattr(type(variant.score), "energy", energy)
        return make_works(spec, variant, inputs, ("forward",)).lost["forward"]

    missing = lost(Score.energy)
    assert missing.status == "failed"
    assert "Score has no method `energy`; write it (see bench/api/score.py)" in missing.detail

    def without_kernel(self, call, features):
        raise NotImplementedError("no kernel for this format")

    assert lost(without_kernel) == ("refused", "no kernel for this format", False)
