"""Without this guard every shape in an annotation may silently be a comment."""

import pytest
import torch
from jaxtyping import TypeCheckError

import variants
from variants.heads.multi import MultiConfig, MultiHeads
from variants.normalizers.masked_softmax import masked_softmax
from variants.scores.additive import AdditiveConfig

pytestmark = pytest.mark.annotations


def test_a_wrong_rank_is_refused():
    with pytest.raises(TypeCheckError):
        masked_softmax(torch.zeros(2, 3), None)


def test_two_axes_of_one_name_must_have_one_size():
    heads = MultiHeads(MultiConfig(heads=2), 6, 6, "cross")
    with pytest.raises(TypeCheckError):
        heads.source(torch.zeros(2, 5, 6), torch.ones(2, 4, dtype=torch.bool), None)


def test_a_wrong_element_type_is_refused():
    with pytest.raises(TypeCheckError):
        masked_softmax(torch.zeros(1, 1, 2, 3), torch.ones(1, 1, 2, 3))


def test_a_config_of_another_component_is_refused():
    with pytest.raises(TypeCheckError):
        MultiHeads(AdditiveConfig(), 6, 6, "cross")


def test_right_shapes_pass_through_the_hook():
    slot = variants.build("additive[width=8]", dim=6, heads=2, source_dim=4, regime="cross")
    x = torch.zeros(2, 3, 6)
    memory = slot.prepare(torch.zeros(2, 5, 4), None, None)
    output, _ = slot.attend(x, memory, slot.start(memory, x))
    assert output.shape == (2, 3, 6)
