import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.source import Source


def test_golden_weights_of_a_source_shorter_than_the_places(beneath, answer, golden):
    variant = beneath("location[max_keys=4]", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        variant.score.weight.copy_(
            torch.tensor([[[0.0, math.log(2), math.log(3), 5.0], [9.0] * 4]], dtype=torch.float64)
        )
    found = answer(variant, golden.query, golden.source)
    assert found.weights.flatten().tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=1e-12)


def test_words_beyond_the_last_place_get_no_weight_and_the_others_share_it_all(
    beneath, answer, draw
):
    drawn = draw(2, 2, 4, 9, lengths=[9, 4])
    found = answer(beneath("location[max_keys=5]"), drawn.query, drawn.source)
    assert not found.weights[..., 5:].any()
    assert (found.weights[0, :, :, :5] > 0).all()
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))
    drawn.source.key[:, :, 5:] = 1e6
    drawn.source.value[:, :, 5:] = 1e6
    again = answer(beneath("location[max_keys=5]"), drawn.query, drawn.source)
    assert torch.equal(again.output, found.output)


def test_a_long_source_is_read_as_if_it_were_cut(beneath, answer, draw):
    drawn = draw(2, 2, 4, 9, lengths=())
    variant = beneath("location[max_keys=5]")
    cut = Source(drawn.source.key[:, :, :5], drawn.source.value[:, :, :5])
    outputs = [answer(variant, drawn.query, source).output for source in (drawn.source, cut)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_what_stands_in_the_source_does_not_matter_but_its_order_does(beneath, answer, draw):
    drawn = draw(lengths=())
    variant = beneath("location[max_keys=8]")
    plain = answer(variant, drawn.query, drawn.source)
    other = Source(torch.randn_like(drawn.source.key), drawn.source.value)
    assert torch.equal(answer(variant, drawn.query, other).weights, plain.weights)
    turned = Source(drawn.source.key.flip(2), drawn.source.value.flip(2))
    assert (answer(variant, drawn.query, turned).output - plain.output).abs().max() > 0.01


def test_a_row_whose_only_real_keys_lie_beyond_the_places_reads_zero(beneath, answer, draw):
    drawn = draw(2, 2, 3, 6, lengths=())
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1, :4] = False
    source = Source(drawn.source.key, drawn.source.value, mask)
    drawn.query.requires_grad_()
    found = answer(beneath("location[max_keys=4]"), drawn.query, source)
    assert found.output[0].abs().min() > 0
    assert not found.output[1].any()
    found.output.sum().backward()
    assert drawn.query.grad.isfinite().all()


def test_no_places_are_refused():
    with pytest.raises(InvalidConfig, match="location: max_keys must be at least 1, got 0"):
        variants.build("location[max_keys=0]", dim=4, heads=1)
