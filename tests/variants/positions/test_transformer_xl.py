import math
from dataclasses import replace

import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.one_query import OneQuery
from bench.api.source import Source


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("heads", [1, 2])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, heads):
    equals_oracle("transformer_xl", regime, heads=heads)


def test_other_scores_equal_the_loops(equals_oracle):
    equals_oracle("scaled_dot[position=transformer_xl,score=additive[width=3]]", "causal")


def naive(query, key, position):
    """The four terms of section 3.3 with a vector for each pair of places."""
    length, width = query.shape[2], position.to_key.shape[1]
    distance = torch.arange(length)[:, None] - torch.arange(length)
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = distance[..., None] * frequency
    vectors = torch.cat((angle.sin(), angle.cos()), -1)
    by_place = torch.einsum("ijd,hde->hije", vectors, position.to_key)
    content = torch.einsum("bhie,bhje->bhij", query, key)
    places = torch.einsum("bhie,hije->bhij", query, by_place)
    content_bias = torch.einsum("he,bhje->bhj", position.key_bias, key).unsqueeze(2)
    place_bias = torch.einsum("he,hije->hij", position.place_bias, by_place)
    return (content + places + content_bias + place_bias) / math.sqrt(query.shape[3])


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_the_shift_equals_a_vector_for_each_pair(answer, beneath, draw, regime):
    drawn = draw(2, 2, 9, 9, lengths=())
    variant = beneath("transformer_xl", regime=regime)
    energy = naive(drawn.query, drawn.source.key, variant.positions[0])
    if regime == "causal":
        later = torch.ones(9, 9, dtype=torch.bool).triu(1)
        energy = energy.masked_fill(later, -torch.inf)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, energy.softmax(-1) @ drawn.source.value, rtol=0, atol=1e-12)


def test_without_projection_and_biases_only_content_is_left(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("transformer_xl", regime="self")
    with torch.no_grad():
        for parameter in variant.positions[0].parameters():
            parameter.zero_()
    plain = beneath("scaled_dot", regime="self")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_only_distances_matter_not_places(component, ask, draw):
    drawn = draw(1, 2, 8, 8, lengths=())
    position = component("position", "transformer_xl", regime="self")
    same = drawn.query[:, :, :1].expand_as(drawn.query)
    source = drawn.source
    alike = Source(source.key[:, :, :1].expand_as(source.key), source.value)
    energy = position.energy(ask(same, alike))
    torch.testing.assert_close(energy[..., 3:, 3:], energy[..., :5, :5], rtol=0, atol=1e-12)
    assert (energy[..., 0, 1] - energy[..., 1, 0]).abs().min() > 1e-3


def test_a_query_far_into_a_long_sequence_has_exact_angles(component, ask, draw):
    """Angles of 100,000 are multiples of 0.008 in float32."""
    drawn = draw(1, 1, 1, 3, lengths=())
    position = component("position", "transformer_xl", heads=1, regime="self").float()
    query, key, value = (x.float() for x in (drawn.query, drawn.source.key, drawn.source.value))
    found = position.energy(ask(query, Source(key, value), offset=100_000))
    one = OneQuery(query[0, 0, 0], key[0, 0], value[0, 0], 0, 100_000, False, "expected")
    one = replace(one, query=one.query.double(), key=one.key.double())
    wanted = position.double().oracle_energy(one)
    assert (found[0, 0, 0] - wanted).abs().max() < 1e-5


def test_two_sequences_and_pooling_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="transformer_xl: relative positions need one sequence"):
            variants.build("transformer_xl", dim=8, heads=2, regime=regime)
