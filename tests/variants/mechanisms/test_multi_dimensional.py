import math

import pytest
import torch
from torch.nn import functional

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source
from variants.mechanisms import multi_dimensional

FORMS = ("full", "bounded", "source2token")


@pytest.mark.parametrize("regime", ["cross", "causal"])
def test_chunks_of_queries_change_nothing(beneath, answer, draw, monkeypatch, regime):
    drawn = draw(2, 2, 7, 7, lengths=[7, 4])
    variant = beneath("multi_dimensional[width=3]", regime=regime)
    whole = answer(variant, drawn.query, drawn.source)
    for elements in (1, 300):
        monkeypatch.setattr(multi_dimensional, "CHUNK_ELEMENTS", elements)
        found = answer(variant, drawn.query, drawn.source)
        torch.testing.assert_close(found.output, whole.output, rtol=0, atol=1e-12)
        torch.testing.assert_close(found.weights, whole.weights, rtol=0, atol=1e-12)


def test_each_feature_is_attention_with_an_additive_score_of_its_own(beneath, answer, draw):
    """Feature f of the output is what a scalar perceptron with column f of the last map reads."""
    drawn = draw(lengths=())
    variant = beneath("multi_dimensional[width=3]")
    found = answer(variant, drawn.query, drawn.source)
    query = torch.einsum("bhle,hew->bhlw", drawn.query, variant.query_map)
    key = torch.einsum("bhse,hew->bhsw", drawn.source.key, variant.key_map)
    hidden = functional.elu(query[:, :, :, None] + key[:, :, None] + variant.bias[:, None, None, 0])
    weights = []
    for f in range(4):
        energy = torch.einsum("bhlsw,hw->bhls", hidden, variant.feature_map[:, :, f])
        weights.append(torch.softmax(energy, -1))
        output = torch.einsum("bhls,bhs->bhl", weights[f], drawn.source.value[..., f])
        torch.testing.assert_close(found.output[..., f], output, rtol=0, atol=1e-12)
    mean = torch.stack(weights).mean(0)
    torch.testing.assert_close(found.weights, mean, rtol=0, atol=1e-12)
    assert (weights[0] - weights[1]).abs().max() > 0.05


def test_features_that_agree_make_it_ordinary_attention(beneath, answer, draw):
    drawn = draw()
    variant = beneath("multi_dimensional[width=3]")
    found = answer(variant, drawn.query, drawn.source)
    mixed = found.weights @ drawn.source.value
    assert (found.output - mixed).abs().max() > 0.05
    with torch.no_grad():
        variant.feature_map.copy_(variant.feature_map[:, :, :1].expand_as(variant.feature_map))
    found = answer(variant, drawn.query, drawn.source)
    mixed = found.weights @ drawn.source.value
    torch.testing.assert_close(found.output, mixed, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bound", [1.0, 3.0])
def test_the_bounded_form_cannot_move_a_weight_further_than_its_bound(beneath, answer, draw, bound):
    """The best case: one key far on one side, all others far on the other."""
    drawn = draw(widths=(5, 5, 1), lengths=())
    key = -1e3 * drawn.source.key[:, :, :1].expand(-1, -1, 6, -1)
    source = Source(torch.cat((-key[:, :, :1], key[:, :, 1:]), 2), drawn.source.value)
    variant = beneath(f"multi_dimensional[form=bounded,bound={bound}]", widths=(5, 5, 1))
    most = math.e ** (2 * bound) / (math.e ** (2 * bound) + 5)
    found = answer(variant, drawn.query, source).weights.max().item()
    assert found == pytest.approx(most, abs=1e-9)


def test_without_a_query_every_query_gets_the_same(beneath, answer, draw):
    drawn = draw()
    variant = beneath("multi_dimensional[form=source2token]")
    assert "query_map" not in dict(variant.named_parameters())
    found = answer(variant, drawn.query, drawn.source)
    assert torch.equal(found.output, found.output[:, :, :1].expand_as(found.output))


@pytest.mark.parametrize("form", FORMS)
def test_outputs_lie_between_the_values_and_constants_come_out_as_they_are(
    beneath, answer, draw, form
):
    drawn = draw(lengths=())
    variant = beneath(f"multi_dimensional[form={form}]")
    output = answer(variant, drawn.query, drawn.source).output
    low, high = drawn.source.value.amin(2, True), drawn.source.value.amax(2, True)
    assert (output >= low).all()
    assert (output <= high).all()
    constant = Source(drawn.source.key, torch.full_like(drawn.source.value, 3.0))
    output = answer(variant, drawn.query, constant).output
    torch.testing.assert_close(output, torch.full_like(output, 3.0), rtol=0, atol=1e-12)


def test_other_code_and_impossible_sizes_are_refused():
    with pytest.raises(Refused, match="multi_dimensional has no impl=sdpa; use auto or eager"):
        variants.build("multi_dimensional", dim=8, heads=2, impl="sdpa")
    for options in ("width=0", "bound=0.0"):
        with pytest.raises(InvalidConfig, match="width must be at least 1 and bound positive"):
            variants.build(f"multi_dimensional[{options}]", dim=8, heads=2)
