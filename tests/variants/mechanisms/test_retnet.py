from dataclasses import replace

import pytest
import torch

from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.api.source import leaf
from variants.mechanisms.retnet import turned

RATES = (0.96875, 0.984375)
"""1 - 2^-5 and 1 - 2^-6."""


@pytest.mark.parametrize("length", [5, 64, 150])
def test_it_equals_the_parallel_form_of_the_paper(beneath, answer, draw, length):
    drawn = draw(2, 2, length, length, lengths=())
    variant = beneath("retnet", regime="causal")
    place = torch.arange(length)
    gap = (place[:, None] - place).to(torch.float64)
    decay = torch.stack([(rate**gap).tril() for rate in RATES])
    query, key = turned(drawn.query, place), turned(drawn.source.key, place)
    expected = (query @ key.mT / 5**0.5 * decay) @ drawn.source.value
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_without_forgetting_it_is_linear_attention_without_a_sum_of_weights(beneath, answer, draw):
    drawn = draw(2, 2, 70, 70, lengths=())
    variant = beneath("retnet[forgets=false]", regime="causal")
    query, key = (turned(x, torch.arange(70)) for x in (drawn.query, drawn.source.key))
    expected = (query @ key.mT).tril() @ drawn.source.value / 5**0.5
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_without_rotation_and_forgetting_it_is_refused_because_it_would_tell_no_places():
    with pytest.raises(InvalidConfig, match="nothing tells places apart; leave one of them true"):
        resolve("retnet[rotation=false,forgets=false]")


def behind(variant, drawn, places, at):
    """The state behind some tokens, and the answer to the last one, standing at a place."""
    source, query = drawn.source, drawn.query
    state = variant.start(None, QueryShape(1, 2, 5, query.dtype, query.device))
    some = source.narrow(0, places)
    first = variant.attend(query[:, :, :places], None, state, new=some).state
    last = source.narrow(7, 1)
    found = variant.attend(query[:, :, 7:], None, replace(first, offset=at), new=last)
    return leaf(first.carried, "matrix"), found.output


@pytest.mark.parametrize("rotation", ["true", "false"])
def test_padding_takes_places_where_they_turn_but_does_not_decay(beneath, draw, rotation):
    variant = beneath(f"retnet[rotation={rotation}]", regime="causal")
    drawn = draw(1, 2, 8, 8, lengths=())
    mask = torch.tensor([[True] * 4 + [False] * 3 + [True]])
    padded = drawn._replace(source=replace(drawn.source, mask=mask))
    carried, answered = behind(variant, padded, 7, 7)
    same, gap = behind(variant, drawn, 4, 7)
    _, moved = behind(variant, drawn, 4, 4)
    torch.testing.assert_close(carried, same)
    torch.testing.assert_close(answered, gap)
    assert variant.counts_places == (rotation == "true")
    assert torch.allclose(answered, moved) != variant.counts_places


def test_products_of_turned_vectors_depend_on_the_distance_alone(draw):
    query, key = draw(1, 1, 1, 1, lengths=()).query, draw(1, 1, 1, 1, seed=1, lengths=()).query
    products = [
        (turned(query, torch.tensor([i])) * turned(key, torch.tensor([j]))).sum()
        for i, j in ((7, 3), (1004, 1000))
    ]
    torch.testing.assert_close(*products)
