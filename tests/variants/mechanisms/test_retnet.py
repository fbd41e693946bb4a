import pytest
import torch

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
    variant = beneath("retnet[rotation=false,forgets=false]", regime="causal")
    expected = (drawn.query @ drawn.source.key.mT).tril() @ drawn.source.value / 5**0.5
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_products_of_turned_vectors_depend_on_the_distance_alone(draw):
    query, key = draw(1, 1, 1, 1, lengths=()).query, draw(1, 1, 1, 1, seed=1, lengths=()).query
    products = [
        (turned(query, torch.tensor([i])) * turned(key, torch.tensor([j]))).sum()
        for i, j in ((7, 3), (1004, 1000))
    ]
    torch.testing.assert_close(*products)
