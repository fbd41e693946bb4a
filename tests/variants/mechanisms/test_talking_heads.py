import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.conformance import certify


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("talking_heads", regime, padded=padded)


@pytest.mark.parametrize("regime", ["cross", "causal", "self"])
def test_it_starts_as_multi_head_attention(beneath, answer, draw, regime):
    drawn = draw(queries=6, keys=6)
    found, wanted = (
        answer(beneath(name, regime=regime, seed=None), drawn.query, drawn.source)
        for name in ("talking_heads", "scaled_dot")
    )
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)


def test_heads_that_change_places_before_the_softmax_weigh_with_each_others_energies(
    beneath, answer, draw
):
    drawn = draw(lengths=())
    variant = beneath("talking_heads", seed=None)
    plain = answer(variant, drawn.query, drawn.source).weights
    with torch.no_grad():
        variant.before.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    turned = answer(variant, drawn.query, drawn.source).weights
    torch.testing.assert_close(turned, plain.flip(1), rtol=0, atol=1e-12)


def test_rows_sum_to_the_shares_that_a_head_takes_of_all(beneath, answer, draw):
    drawn = draw()
    variant = beneath("talking_heads")
    weights = answer(variant, drawn.query, drawn.source).weights
    wanted = variant.after.sum(1)[:, None].expand(3, 2, 4)
    torch.testing.assert_close(weights.sum(-1), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(variant.row_sums(), variant.after.sum(1), rtol=0, atol=0)
    assert (weights < 0).any()


def test_the_certificate_holds_what_rows_sum_to():
    assert "weight_law" in certify("talking_heads", checks=["weight_law"]).passed


def test_a_probe_may_edit_the_weights(beneath, answer, draw):
    drawn = draw(lengths=())
    variant = beneath("talking_heads")
    found = answer(variant, drawn.query, drawn.source, edit=lambda weights, call: 0 * weights)
    assert not found.output.any()


def test_other_code_and_parts_that_need_a_distribution_are_refused(beneath):
    with pytest.raises(Refused, match="talking_heads has no impl=sdpa"):
        variants.build("talking_heads", dim=8, heads=2, impl="sdpa")
    with pytest.raises(Refused, match="needs weights that sum to one"):
        beneath("talking_heads[output=pointer_generator]")
