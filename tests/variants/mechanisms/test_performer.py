import math

import pytest
import torch

from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig
from bench.api.source import Source
from variants.mechanisms.chunked_state import Steps, run
from variants.mechanisms.performer import PerformerConfig, orthogonal_directions

NOWHERE = torch.arange(1)


def test_the_mean_over_draws_is_the_exponential_of_the_scaled_product(beneath, draw):
    drawn = draw(1, 1, 1, 1, widths=(5, 5, 4), lengths=())
    query, key = 0.7 * drawn.query, 0.7 * drawn.source.key
    found = []
    for seed in range(400):
        variant = beneath(f"performer[directions=20,seed={seed}]", heads=1)
        exponents = variant._exponents(query)
        products = exponents.exp() * variant.of_keys(key, NOWHERE) * variant.num_maps**-0.5
        found.append(float(products.sum()))
    expected = math.exp(float((query * key).sum()) / math.sqrt(5))
    mean = sum(found) / len(found)
    spread = math.sqrt(sum((x - mean) ** 2 for x in found)) / len(found)
    assert abs(mean - expected) < 4 * spread < 0.1 * expected


def test_many_directions_come_near_softmax_attention(beneath, answer, draw):
    drawn = draw(1, 1, 6, 6, lengths=())
    drawn.source.key.mul_(0.5)
    gaps = []
    for count in (16, 4096):
        variant = beneath(f"performer[directions={count}]", heads=1)
        found = answer(variant, 0.5 * drawn.query, drawn.source).output
        energy = 0.5 * drawn.query @ drawn.source.key.mT / math.sqrt(5)
        expected = energy.softmax(-1) @ drawn.source.value
        gaps.append(float((found - expected).abs().max()))
    assert gaps[1] < 0.05
    assert gaps[1] < gaps[0]


@pytest.mark.parametrize("spread", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_long_keys_do_not_fade(beneath, answer, draw, regime, spread):
    drawn = draw(2, 2, 150, 150, widths=(64, 64, 3), lengths=())
    variant = beneath("performer", regime=regime, widths=(64, 64, 3)).float()
    query, key = (spread * x.float() for x in (drawn.query, drawn.source.key))
    source = Source(key, torch.ones(2, 2, 150, 3))
    found = [answer(variant, query, source).output]
    if regime == "causal":  # one token after the other, and then all chunks at once, as on a GPU
        state, steps = variant.start(None, QueryShape(2, 2, 64, query.dtype, query.device)), []
        for at in range(150):
            new = source.narrow(at, 1)
            attended = variant.attend(query[:, :, at : at + 1], None, state, new=new)
            state = attended.state
            steps.append(attended.output)
        place = torch.arange(150)
        features = variant.of_queries(query, place), variant.of_keys(key, place)
        read, _ = run(Steps(*features, source.value), torch.zeros(2, 2, 64, 3), at_once=2)
        found += [torch.cat(steps, 2), read / (read + variant.eps)]
    for output in found:
        torch.testing.assert_close(output, torch.ones_like(output), rtol=0, atol=1e-3)


def test_a_row_without_keys_is_zero_and_has_finite_gradients_in_single_precision(
    beneath, answer, draw
):
    drawn = draw(2, 2, 70, 70, widths=(64, 64, 3), lengths=())
    variant = beneath("performer", regime="causal", widths=(64, 64, 3)).float()
    query, key, value = (
        x.float().requires_grad_() for x in (drawn.query, drawn.source.key, drawn.source.value)
    )
    mask = torch.arange(70) >= torch.tensor([[70], [66]])
    output = answer(variant, query, Source(key, value, mask)).output
    assert not output[0].any()
    assert not output[1, :, :66].any()
    assert output[1, :, 66:].all()
    gradients = torch.autograd.grad(output.square().sum() + output.sum(), (query, key, value))
    assert all(found.isfinite().all() for found in gradients)
    assert gradients[2][1, :, 66:].all()


def test_directions_of_a_block_are_orthogonal_and_those_of_a_seed_are_the_same():
    drawn = orthogonal_directions(7, 5, seed=3)
    products = drawn[:5] @ drawn[:5].T
    torch.testing.assert_close(products, torch.diag(products.diagonal()), rtol=0, atol=1e-5)
    assert drawn.shape == (7, 5)
    assert torch.equal(drawn, orthogonal_directions(7, 5, seed=3))
    assert not torch.equal(drawn, orthogonal_directions(7, 5, seed=4))


def test_lengths_of_directions_are_those_of_normal_vectors():
    squares = orthogonal_directions(4000, 8, seed=0).square().sum(1)
    assert abs(float(squares.mean()) - 8) < 0.3


def test_the_directions_are_no_parameter_but_are_stored(beneath):
    variant = beneath("performer")
    assert not list(variant.parameters())
    assert set(variant.state_dict()) == {"directions"}


def test_no_direction_is_refused():
    with pytest.raises(InvalidConfig, match="directions must be positive, got 0"):
        PerformerConfig(directions=0)
