import pytest
import torch

from bench.api.resolve import resolve
from bench.timing.flops import analytic_flops, count_operations
from bench.timing.shape import AttendShape
from bench.timing.workloads import answer, build, draw_inputs, forward

CROSS = AttendShape(batch=2, heads=3, length=11, width=8, regime="cross")


def prepared(selector, shape, impl="auto"):
    variant = build(resolve(selector), shape, impl, seed=0)
    return variant, draw_inputs(shape, torch.device("cpu"), torch.float32, 0)


@pytest.mark.parametrize("impl", ["eager", "sdpa"])
def test_the_formula_of_dot_product_attention_is_what_torch_counts(impl):
    variant, inputs = prepared("scaled_dot", CROSS, impl)
    assert analytic_flops(variant, CROSS) == 4 * 2 * 3 * 11 * 11 * 8
    counted = count_operations(forward(variant, inputs))
    assert counted.matmul_flops == analytic_flops(variant, CROSS)


def test_causality_halves_the_formula_and_not_the_count():
    shape = AttendShape(batch=2, heads=3, length=11, width=8, regime="causal")
    variant, inputs = prepared("scaled_dot", shape)
    assert analytic_flops(variant, shape) == 2 * 2 * 3 * 11 * 11 * 8
    assert count_operations(forward(variant, inputs)).matmul_flops == 4 * 2 * 3 * 11 * 11 * 8


@pytest.mark.parametrize("impl", ["eager", "sdpa"])
def test_softmax_is_one_exponential_a_pair_in_plain_and_in_fused_code(impl):
    variant, inputs = prepared("scaled_dot", CROSS, impl)
    counted = count_operations(forward(variant, inputs))
    assert counted.transcendental == 2 * 3 * 11 * 11


def test_the_tanh_of_additive_attention_is_free_to_torch_and_counted_here():
    variant, inputs = prepared("additive[width=16]", CROSS)
    counted = count_operations(forward(variant, inputs))
    pairs = 2 * 3 * 11 * 11
    assert counted.transcendental == pairs * 16 + pairs
    assert counted.elementwise >= 2 * pairs * 16


def test_moves_compute_nothing():
    x = torch.randn(10)
    counted = count_operations(lambda: (x.clone(), torch.zeros(4).copy_(x[:4]), x.view(2, 5)))
    assert counted == (0, 0, 0)


def test_operations_in_place_count_like_others():
    x = torch.rand(10)
    assert count_operations(lambda: x.clone().tanh_().add_(1)) == (0, 20, 10)


def test_there_is_no_formula_where_nobody_wrote_one():
    variant, _ = prepared("conv_attention", CROSS)
    assert analytic_flops(variant, CROSS) is None


def test_a_score_may_bring_its_own_formula():
    variant, _ = prepared("additive", CROSS)

    def flops(batch, heads, queries, keys, dims):
        return 1000 * batch * heads * queries * keys

    variant.score.flops = flops
    pairs = 2 * 3 * 11 * 11
    assert analytic_flops(variant, CROSS) == 1000 * pairs + 2 * pairs * 8


def test_counting_does_not_change_the_answer():
    variant, inputs = prepared("scaled_dot", CROSS)
    results = []
    count_operations(lambda: results.append(answer(variant, inputs.query, inputs.source).output))
    assert torch.equal(results[0], answer(variant, inputs.query, inputs.source).output)
