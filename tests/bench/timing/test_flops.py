import warnings

import pytest
import torch

from bench.api.resolve import resolve
from bench.timing.flops import analytic_flops, count_operations
from bench.timing.shape import AttendShape
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import answer, build, forward

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


@pytest.mark.parametrize(
    ("left", "unit", "flops"),
    [(True, False, 2 * 25 * 3), (True, True, 2 * 20 * 3), (False, False, 2 * 25 * 3)],
)
def test_a_triangular_system_counts_a_product_and_a_difference_for_each_unknown_before(
    left, unit, flops
):
    system = torch.rand(2, 5, 5).tril() + torch.eye(5)
    sides = torch.rand(2, 5, 3) if left else torch.rand(2, 3, 5)

    def solve():
        torch.linalg.solve_triangular(system, sides, upper=False, left=left, unitriangular=unit)

    assert count_operations(solve).matmul_flops == flops


def test_a_system_counts_its_factors_and_two_triangles_for_each_side():
    system, sides = torch.rand(2, 6, 6) + 6 * torch.eye(6), torch.rand(2, 6, 3)
    wanted = 2 * (2 * 6**3 // 3 + 2 * 6 * 6 * 3)
    assert count_operations(lambda: torch.linalg.solve(system, sides)).matmul_flops == wanted
    one = 2 * (2 * 6**3 // 3 + 2 * 6 * 6)
    assert count_operations(lambda: torch.linalg.solve(system, sides[..., 0])).matmul_flops == one


@pytest.mark.parametrize(
    ("matrices", "sides", "factored", "solved", "columns"),
    [
        ((2, 6, 6), (6,), 2, 2, 1),
        ((2, 6, 6), (6, 3), 2, 2, 3),
        ((6, 6), (4, 6, 3), 1, 4, 3),
        ((2, 1, 6, 6), (4, 6, 3), 2, 8, 3),
        ((6, 6, 6), (6, 6), 6, 6, 1),
    ],
)
def test_a_system_counts_every_side_that_it_is_broadcast_over(
    matrices, sides, factored, solved, columns
):
    system, given = torch.rand(matrices) + 6 * torch.eye(6), torch.rand(sides)
    wanted = factored * 2 * 6**3 // 3 + solved * 2 * 6 * 6 * columns
    assert count_operations(lambda: torch.linalg.solve(system, given)).matmul_flops == wanted


def test_a_sum_of_products_counts_every_product():
    first, second = torch.rand(2, 3, 5), torch.rand(2, 5, 7)
    found = count_operations(lambda: torch.addbmm(torch.rand(3, 7), first, second))
    assert found.matmul_flops == 2 * 2 * 3 * 5 * 7


def test_a_matrix_times_a_vector_counts_as_the_product_that_it_is():
    assert count_operations(lambda: torch.mv(X, X[0])).matmul_flops == 2 * 40
    assert count_operations(lambda: torch.addmv(X[:, 0], X, X[0])).matmul_flops == 2 * 40
    assert count_operations(lambda: torch.dot(X[0], X[0])).matmul_flops == 2 * 10


def test_a_product_counts_the_same_whatever_format_its_result_has():
    first, second = torch.empty(2, 3, 5, device="meta"), torch.empty(2, 5, 7, device="meta")
    halves = first.bfloat16(), second.bfloat16()
    for work in (
        lambda: torch.bmm(first, second),
        lambda: torch.bmm(*halves, out_dtype=torch.float32),
    ):
        assert count_operations(work).matmul_flops == 2 * 2 * 3 * 5 * 7


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(("layer", "gates"), [(torch.nn.LSTM, 4), (torch.nn.GRU, 3)])
@pytest.mark.parametrize("learns", [False, True])
def test_a_recurrent_layer_counts_the_products_of_its_steps(layer, gates, both_ways, learns):
    made = layer(16, 32, batch_first=True, bidirectional=both_ways)
    words = torch.rand(4, 7, 16)
    with torch.set_grad_enabled(learns):
        counted = count_operations(lambda: made(words))
    assert counted.matmul_flops == (1 + both_ways) * 2 * 4 * 7 * gates * 32 * (16 + 32)
    assert counted.transcendental >= (1 + both_ways) * 4 * 7 * 32 * gates


def test_counting_leaves_the_code_of_recurrent_layers_as_it_was():
    before = torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        count_operations(lambda: None)
    assert (torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled) == before


def test_every_softmax_counts_its_exponentials():
    q, v = torch.rand(1, 2, 5, 8), torch.rand(1, 2, 5, 6)  # unequal widths have code of their own
    fused = count_operations(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, v))
    assert fused.transcendental == 2 * 5 * 5
    assert count_operations(lambda: X.logsumexp(-1)) == (0, 40, 40)


@pytest.mark.parametrize("rows", [4, 40])  # torch has other code for more than 25 rows
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_a_distance_counts_its_components(rows, power):
    x = torch.rand(rows, 10)
    counts = count_operations(lambda: torch.cdist(x, x, p=power))
    assert counts.elementwise + counts.matmul_flops // 2 >= rows * rows * 10


X = torch.rand(4, 10)


@pytest.mark.parametrize(
    ("work", "elements"),
    [
        (X.sum, 40),
        (lambda: X.sum(0), 40),
        (lambda: X.mean(-1, keepdim=True), 40),
        (lambda: X.amax(-1), 40),
        (lambda: torch.linalg.vector_norm(X, dim=-1), 40),
        (lambda: X.var(-1), 40),
        (lambda: X.max(-1), 40),
        (lambda: X.cumsum(-1), 40),
        (lambda: X.clone().cumsum_(-1), 40),
        (lambda: X.gather(1, torch.zeros(4, 3, dtype=torch.long)), 12),
        (lambda: X.index_select(0, torch.zeros(3, dtype=torch.long)), 30),
        (lambda: X[torch.zeros(3, dtype=torch.long)], 30),
        (lambda: X.sort(-1), 40 * 4),
        (lambda: X.sort(0), 40 * 2),
        (lambda: X.sort(dim=0), 40 * 2),
        (lambda: X.sort(dim=1, stable=True), 40 * 4),
        (lambda: X.argsort(-1), 40 * 4),
        (lambda: X.topk(3, -1), 40 * 2),
        (lambda: X.topk(1, -1), 40),
        (lambda: X.topk(8, -1), 40 * 3),
    ],
)
def test_what_is_neither_a_product_nor_pointwise_has_a_rule(work, elements):
    assert count_operations(work) == (0, elements, 0)


def test_a_sum_of_products_counts_both():
    assert count_operations(lambda: (X * X).sum(-1)) == (0, 80, 0)
