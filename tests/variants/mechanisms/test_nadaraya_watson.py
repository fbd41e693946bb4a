import math

import pytest
import torch

import variants
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from bench.api.source import Source
from variants.mechanisms.distance_kernels import KERNELS
from variants.mechanisms.nadaraya_watson import NadarayaWatsonConfig

EDGED = ("boxcar", "epanechnikov", "triangular")


def line(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[None, None, :, None]


def regression(beneath, answer, query: float, options: str, keys=(0, 1, 2), values=(0, 1, 4)):
    """The prediction at one point of a regression on a line."""
    selector = f"nadaraya_watson[{options}]"
    variant = beneath(selector, heads=1, widths=(1, 1, 1), seed=None)
    found = answer(variant, line(query), Source(line(*keys), line(*values)))
    return found.output.item(), found.weights.flatten().tolist()


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_equals_the_loops(kernel, regime, equals_oracle):
    equals_oracle(f"nadaraya_watson[kernel={kernel},empty=nearest]", regime)


@pytest.mark.parametrize("options", ["beta=1e4,learn=false", "kernel=laplace,beta=1e8,learn=false"])
def test_a_narrow_kernel_equals_the_loops_though_its_masses_vanish(options, equals_oracle):
    equals_oracle(f"nadaraya_watson[{options}]", "cross")


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "triangular", "epanechnikov"])
def test_a_precision_a_dimension_equals_the_loops_and_matters(kernel, beneath, answer, draw):
    drawn = draw(2, 2, 3, 5, lengths=())
    selector = f"nadaraya_watson[kernel={kernel},ard=true,empty=nearest]"
    ard = beneath(selector)
    assert ard.raw_beta.shape == (2, 1, 5)
    found = answer(ard, drawn.query, drawn.source)
    for row in range(2):
        query, source = drawn.row(row)
        output, weights = ard.oracle(query[0], source, "expected")
        torch.testing.assert_close(found.output[row], output, rtol=0, atol=1e-10)
        torch.testing.assert_close(found.weights[row], weights, rtol=0, atol=1e-10)
    plain = beneath(selector.replace("ard=true,", ""))
    with torch.no_grad():
        plain.raw_beta.fill_(0.3)
        ard.raw_beta.fill_(0.3)
    equal = [answer(v, drawn.query, drawn.source).output for v in (ard, plain)]
    torch.testing.assert_close(*equal, rtol=0, atol=1e-12)
    with torch.no_grad():
        ard.raw_beta[:, :, 0] = 4.0
    assert not torch.allclose(answer(ard, drawn.query, drawn.source).output, equal[0], atol=1e-4)


@pytest.mark.parametrize(
    ("query", "beta", "expected"),
    [(0.5, 0.0, 1.666667), (0.5, 2.0, 0.721826), (0.5, 8.0, 0.500587), (0.6, 8.0, 0.691679)],
)
def test_golden_gaussian_regression(query, beta, expected, beneath, answer):
    found, _ = regression(beneath, answer, query, f"beta={beta},learn=false")
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("kernel", "weights"),
    [
        # bandwidth 2 and distances .5, .5, 1.5 make u = .25, .25, .75
        ("gaussian", [math.exp(-1 / 32), math.exp(-1 / 32), math.exp(-9 / 32)]),
        ("laplace", [math.exp(-1 / 4), math.exp(-1 / 4), math.exp(-3 / 4)]),
        ("boxcar", [1, 1, 1]),
        ("epanechnikov", [15 / 16, 15 / 16, 7 / 16]),
        ("triangular", [3 / 4, 3 / 4, 1 / 4]),
        ("constant", [1, 1, 1]),
    ],
)
def test_kernels_by_hand(kernel, weights, beneath, answer):
    _, found = regression(beneath, answer, 0.5, f"kernel={kernel},beta=0.25,learn=false")
    assert found == pytest.approx([w / sum(weights) for w in weights], abs=1e-12)


@pytest.mark.parametrize("kernel", EDGED)
def test_beyond_the_edge_a_kernel_is_exactly_zero(kernel, beneath, answer):
    _, weights = regression(beneath, answer, 0.3, f"kernel={kernel},beta=1.0,learn=false")
    assert weights[2] == 0.0
    assert weights[0] > 0
    assert weights[1] > 0


def test_no_precision_is_the_mean_and_a_huge_one_the_nearest_neighbor(beneath, answer):
    for kernel in ("gaussian", "laplace"):
        for beta, expected in ((0.0, 5 / 3), (1e7, 4.0)):
            options = f"kernel={kernel},beta={beta},learn=false"
            found, _ = regression(beneath, answer, 1.7, options)
            assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_lie_between_the_values(kernel, beneath, answer, draw):
    drawn = draw(3, 2, 4, 6, lengths=())
    variant = beneath(f"nadaraya_watson[kernel={kernel},empty=nearest]")
    output = answer(variant, drawn.query, drawn.source).output
    low = drawn.source.value.amin(2, keepdim=True)
    high = drawn.source.value.amax(2, keepdim=True)
    assert (output >= low - 1e-12).all()
    assert (output <= high + 1e-12).all()


def test_gaussian_weights_of_keys_of_one_norm_are_a_dot_product_scaled_by_beta(
    beneath, answer, draw
):
    drawn = draw(2, 2, 3, 5, lengths=())
    key = torch.nn.functional.normalize(drawn.source.key, dim=-1) * 1.3
    variant = beneath("nadaraya_watson[beta=0.7,learn=false]")
    found = answer(variant, drawn.query, Source(key, drawn.source.value)).weights
    expected = torch.softmax(0.7 * drawn.query @ key.mT, -1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    uneven = answer(variant, drawn.query, drawn.source).weights
    assert not torch.allclose(uneven, torch.softmax(0.7 * drawn.query @ drawn.source.key.mT, -1))


def test_at_its_start_it_is_the_scaled_dot_product_on_keys_of_one_norm(beneath, answer, draw):
    drawn = draw(2, 2, 3, 5)
    key = torch.nn.functional.normalize(drawn.source.key, dim=-1)
    source = Source(key, drawn.source.value, drawn.source.mask)
    one = answer(beneath("nadaraya_watson", seed=None), drawn.query, source).output
    two = answer(beneath("scaled_dot"), drawn.query, source).output
    torch.testing.assert_close(one, two, rtol=0, atol=1e-7)


@pytest.mark.parametrize("regime", ["cross", "causal"])
def test_gaussian_regression_is_softmax_of_the_gaussian_kernel_score(regime, beneath, answer, draw):
    drawn = draw(2, 2, 6, 6)
    mechanism = beneath("nadaraya_watson[beta=0.7]", regime=regime, seed=None)
    chain = beneath("gaussian_kernel[beta=0.7]", regime=regime, seed=None)
    one, two = (answer(v, drawn.query, drawn.source) for v in (mechanism, chain))
    torch.testing.assert_close(one.output, two.output, rtol=0, atol=1e-10)
    torch.testing.assert_close(one.weights, two.weights, rtol=0, atol=1e-10)


def test_gaussian_weights_do_not_change_when_queries_and_keys_move_together(beneath, answer, draw):
    drawn = draw(2, 2, 3, 5)
    variant = beneath("nadaraya_watson")
    shift = torch.linspace(-2, 2, 5, dtype=torch.float64)
    moved = Source(drawn.source.key + shift, drawn.source.value, drawn.source.mask)
    one = answer(variant, drawn.query, drawn.source).weights
    two = answer(variant, drawn.query + shift, moved).weights
    torch.testing.assert_close(one, two, rtol=0, atol=1e-10)
    assert not torch.allclose(answer(variant, drawn.query + shift, drawn.source).weights, one)


@pytest.mark.parametrize("regime", ["cross", "self"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shift", [2.0**13, 2.0**17])
def test_far_from_the_origin_single_precision_keeps_small_distances(kernel, regime, shift, beneath):
    """Numbers and their shifts are exact in float32, so that nothing else is rounded."""
    x = torch.tensor([0.0, 0.25, 1.0, 1.5, 2.0, 3.25])[None, None, :, None]
    y = torch.tensor([0.0, 1.0, -2.0, 3.0, 0.5, 7.0])[None, None, :, None]
    query = x if regime == "self" else torch.tensor([0.5, 1.25, 2.75])[None, None, :, None]
    variant = beneath(
        f"nadaraya_watson[kernel={kernel},beta=4.0,learn=false,empty=nearest]",
        heads=1,
        widths=(1, 1, 1),
        regime=regime,
        seed=None,
    )

    def weights(moved, dtype):
        source = Source((x + moved).to(dtype), y.to(dtype))
        memory = variant.prepare(source)
        state = variant.start(memory, None)
        return variant.attend((query + moved).to(dtype), memory, state).weights.double()

    near = weights(0.0, torch.float64)
    torch.testing.assert_close(weights(shift, torch.float32), near, rtol=0, atol=1e-6)


def test_the_point_that_vectors_are_counted_from_gets_no_gradient_of_its_own(beneath, draw):
    drawn = draw(2, 2, 3, 5, lengths=())
    variant = beneath("nadaraya_watson")
    grads = []
    for order in ([0, 1, 2, 3, 4], [3, 1, 2, 0, 4]):
        key = drawn.source.key[:, :, order].clone().requires_grad_()
        memory = variant.prepare(Source(key, drawn.source.value[:, :, order]))
        output = variant.attend(drawn.query, memory, variant.start(memory, None)).output
        output.square().sum().backward()
        grads.append(key.grad[:, :, order])
    torch.testing.assert_close(*grads, rtol=0, atol=1e-12)


def test_the_constant_kernel_is_the_uniform_score(beneath, answer, draw):
    drawn = draw()
    constant = answer(beneath("nadaraya_watson[kernel=constant]"), drawn.query, drawn.source)
    uniform = answer(beneath("uniform"), drawn.query, drawn.source)
    torch.testing.assert_close(constant.output, uniform.output, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", EDGED)
def test_a_query_without_neighbors_answers_zero_or_its_nearest_key(kernel, beneath, answer):
    far = f"kernel={kernel},beta=1.0,learn=false"
    value, weights = regression(beneath, answer, 9.0, far)
    assert value == 0.0
    assert weights == [0.0, 0.0, 0.0]
    value, weights = regression(beneath, answer, 9.0, f"{far},empty=nearest")
    assert value == 4.0
    assert weights == [0.0, 0.0, 1.0]


def test_the_nearest_key_is_never_a_masked_one(beneath, answer):
    variant = beneath(
        "nadaraya_watson[kernel=triangular,beta=1.0,learn=false,empty=nearest]",
        heads=1,
        widths=(1, 1, 1),
        seed=None,
    )
    mask = torch.tensor([[True, True, False]])
    found = answer(variant, line(9.0), Source(line(0, 1, 2), line(0, 1, 4), mask))
    assert found.output.item() == 1.0
    nobody = Source(line(0, 1, 2), line(0, 1, 4), torch.zeros_like(mask))
    assert not answer(variant, line(9.0), nobody).output.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_query_on_its_key_has_finite_gradients(kernel, beneath, answer, draw):
    drawn = draw(1, 2, 4, 4, lengths=())
    variant = beneath(f"nadaraya_watson[kernel={kernel}]")
    query = drawn.source.key.clone().requires_grad_()
    key = drawn.source.key.clone().requires_grad_()
    value = drawn.source.value.requires_grad_()
    answer(variant, query, Source(key, value)).output.sum().backward()
    assert value.grad.isfinite().all()
    for leaf in (query, key, *variant.parameters()):
        assert leaf.grad is None or leaf.grad.isfinite().all()


@pytest.mark.parametrize("regime", ["self", "causal"])
@pytest.mark.parametrize("kernel", ["gaussian", "boxcar"])
def test_leaving_one_out_equals_the_loops_and_hides_the_diagonal(kernel, regime, equals_oracle):
    selector = f"nadaraya_watson[leave_one_out=true,kernel={kernel},empty=nearest]"
    compared = equals_oracle(selector, regime)
    assert not compared.parallel.weights.diagonal(dim1=-2, dim2=-1).any()
    first = compared.parallel.output[:, :, 0]
    assert (not first.any()) == (regime == "causal"), "before the first key there is none"


def test_the_error_of_leaving_one_out_does_not_fall_to_zero_with_the_bandwidth(beneath, answer):
    x, y = line(0, 1, 2, 3), line(0, 1, 4, 9)
    errors = {}
    for left_out in ("false", "true"):
        variant = beneath(
            f"nadaraya_watson[beta=1e6,learn=false,leave_one_out={left_out}]",
            heads=1,
            widths=(1, 1, 1),
            regime="self",
        )
        errors[left_out] = (answer(variant, x, Source(x, y)).output - y).square().mean().item()
    assert errors["false"] < 1e-20
    assert errors["true"] > 1.0


def test_the_bandwidth_is_learned_by_leaving_one_out(beneath, answer):
    x = torch.linspace(0, 3, 25, dtype=torch.float64)[None, None, :, None]
    y = torch.sin(3 * x)
    variant = beneath(
        "nadaraya_watson[beta=1.0,leave_one_out=true]",
        heads=1,
        widths=(1, 1, 1),
        regime="self",
        seed=None,
    )

    def error():
        return (answer(variant, x, Source(x, y)).output - y).square().mean()

    before = error().item()
    optimizer = torch.optim.Adam(variant.parameters(), lr=3.0)
    for _ in range(40):
        optimizer.zero_grad()
        error().backward()
        optimizer.step()
    assert error().item() < 0.1 * before
    assert variant.beta(x).item() > 10


def test_learning_starts_at_the_precision_that_was_asked_for(beneath):
    like = torch.zeros(1, dtype=torch.float64)
    for beta in (0.02, 0.5, 7.0):
        variant = beneath(f"nadaraya_watson[beta={beta}]", seed=None)
        torch.testing.assert_close(variant.beta(like), torch.full((2, 1, 1), beta).double())
    assert beneath("nadaraya_watson", seed=None).start_beta == 5**-0.5
    assert beneath("nadaraya_watson[kernel=boxcar]").start_beta == 1 / 20


@pytest.mark.parametrize("kernel", EDGED)
def test_questions_are_drawn_within_reach_of_a_kernel_with_an_edge(beneath, kernel):
    default = beneath(f"nadaraya_watson[kernel={kernel}]")
    assert default.spread == 1.0
    narrow = beneath(f"nadaraya_watson[kernel={kernel},beta={100 * default.start_beta}]")
    assert narrow.spread == pytest.approx(0.1)
    assert beneath("nadaraya_watson[beta=1000]").spread == 1.0


@pytest.mark.parametrize("options", ["learn=false", "kernel=boxcar", "kernel=constant"])
def test_without_a_gradient_there_is_nothing_to_learn(options, beneath):
    assert not list(beneath(f"nadaraya_watson[{options}]").parameters())


def test_multi_head_projections_make_the_distance_one_in_a_learned_space():
    slot = variants.build("nadaraya_watson", dim=8, heads=2, regime="self")
    names = {name for name, _ in slot.named_parameters()}
    assert {"heads.to_query.weight", "heads.to_key.weight", "variant.raw_beta"} <= names


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("beta=-1.0", "beta must be at least 0"),
        ("beta=0.0", "a learned beta cannot be 0"),
        ("ard=true,learn=false", "needs a precision that is learned"),
        ("ard=true,kernel=boxcar", "needs a precision that is learned"),
    ],
)
def test_options_without_a_meaning_are_refused(options, reason):
    asked = parse(f"nadaraya_watson[{options}]")
    with pytest.raises(InvalidConfig, match=reason):
        build_config(NadarayaWatsonConfig, asked.options, asked.name)


def test_places_without_a_meaning_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match=f"in {regime} attention they are not"):
            variants.build("nadaraya_watson[leave_one_out=true]", dim=8, regime=regime)
    with pytest.raises(Refused, match="equal width"):
        variants.build("nadaraya_watson", dim=8, source_dim=6, regime="cross")
    with pytest.raises(Refused, match="impl=sdpa"):
        variants.build("nadaraya_watson", dim=8, heads=2, impl="sdpa")


def test_an_edit_of_the_weights_is_what_the_values_are_mixed_by(beneath, draw):
    drawn = draw(widths=(5, 5, 4), lengths=())
    variant = beneath("nadaraya_watson", widths=(5, 5, 4))
    memory = variant.prepare(drawn.source)

    def first_key(weights, call):
        return torch.zeros_like(weights).index_fill(3, torch.tensor([0]), 1.0)

    state = variant.start(memory, None)
    found = variant.attend(drawn.query, memory, state, edit=first_key)
    expected = drawn.source.value[:, :, :1].expand_as(found.output)
    assert torch.equal(found.output, expected)
    assert torch.equal(found.weights, first_key(found.weights, None))
