import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.source import Source


def test_golden_maximum_of_every_feature_with_and_without_a_mask(beneath, answer, golden):
    variant = beneath("max_pooling", heads=1, widths=(2, 2, 2))
    found = answer(variant, golden.query, golden.source)
    assert found.output.flatten().tolist() == [3.0, 3.0]
    assert found.weights is None
    masked = Source(golden.source.key, golden.source.value, torch.tensor([[True, True, False]]))
    assert answer(variant, golden.query, masked).output.flatten().tolist() == [1.0, 2.0]


def test_negative_values_are_not_lost_to_padding_and_no_keys_give_zero(beneath, answer, draw):
    drawn = draw(2, 2, 3, 6, lengths=[4, 0])
    value = (-1 - drawn.source.value.abs()).requires_grad_()
    source = Source(drawn.source.key, value, drawn.source.mask)
    output = answer(beneath("max_pooling"), drawn.query, source).output
    expected = value[0, :, None, :4].amax(2).expand(-1, 3, -1)
    assert torch.equal(output[0], expected)
    assert (output[0] < -0.9).all()
    assert not output[1].any()
    output.sum().backward()
    assert value.grad.isfinite().all()
    assert value.grad[0, :, :4].sum() == 3 * 2 * 4
    assert not value.grad[0, :, 4:].any()
    assert not value.grad[1].any()


def test_causal_places_and_other_code_are_refused():
    with pytest.raises(Refused, match="may leave out the query's own value"):
        variants.build("max_pooling", dim=8, heads=2, regime="causal")
    with pytest.raises(Refused, match="max_pooling has no impl=sdpa; use auto or eager"):
        variants.build("max_pooling", dim=8, heads=2, regime="self", impl="sdpa")
