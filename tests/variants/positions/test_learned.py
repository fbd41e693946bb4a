import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


def test_vectorized_code_equals_the_loops(component):
    position = component("position", "learned[max_length=9]", regime="causal")
    x = torch.randn(2, 5, 10, dtype=torch.float64)
    found = position.embed(x, 3)
    for row in range(2):
        for place in range(5):
            expected = position.oracle_embed(x[row, place], 3 + place)
            torch.testing.assert_close(found[row, place], expected, rtol=0, atol=1e-10)


def test_the_last_place_is_served_and_the_one_beyond_is_refused(component):
    position = component("position", "learned[max_length=6]", regime="causal")
    assert position.embed(torch.zeros(1, 2, 10, dtype=torch.float64), 4).shape == (1, 2, 10)
    sentence = (
        "learned: the table ends at max_length=6, but the sequence has 7 tokens; raise max_length."
    )
    with pytest.raises(Refused) as error:
        position.embed(torch.zeros(1, 2, 10), 5)
    assert str(error.value) == sentence


def test_only_the_places_in_use_get_gradients(component):
    position = component("position", "learned[max_length=6]", regime="causal")
    position.embed(torch.zeros(1, 2, 10, dtype=torch.float64), 1).sum().backward()
    used = position.table.grad.abs().sum(1) > 0
    assert used.tolist() == [False, True, True, False, False, False]


def test_vectors_begin_as_large_as_sinusoids(component):
    torch.manual_seed(0)
    position = component("position", "learned", regime="causal", seed=None)
    assert position.table.square().mean().item() == pytest.approx(0.5, rel=0.05)


def test_places_without_a_stack_and_empty_tables_are_refused():
    with pytest.raises(Refused, match="learned: it acts on the input of self-attention"):
        variants.build("learned", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match="max_length must be at least 1, got 0"):
        variants.build("learned[max_length=0]", dim=8, heads=2, regime="self")
