"""Without this guard every shape in an annotation may silently be a comment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Union

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

import variants
from tests.type_hook import checked, checked_class
from variants.heads.multi import MultiConfig, MultiHeads
from variants.normalizers.masked_softmax import masked_softmax
from variants.scores.additive import AdditiveConfig


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


def test_a_result_of_another_shape_than_the_arguments_is_refused():
    @checked
    def turned(x: Float[Tensor, "a b"]) -> Float[Tensor, "b a"]:
        return x

    turned(torch.zeros(2, 2))
    with pytest.raises(TypeCheckError, match="size of dimension"):
        turned(torch.zeros(2, 3))


def test_axes_of_a_call_are_not_those_of_the_calls_within():
    @checked
    def inner(x: Float[Tensor, " a"]) -> Float[Tensor, " a"]:
        return x

    @checked
    def outer(x: Float[Tensor, " a"]) -> Float[Tensor, " b"]:
        return inner(x[1:])

    assert outer(torch.zeros(3)).shape == (2,)


def test_an_axis_may_be_named_after_an_argument():
    @checked
    def first(x: Float[Tensor, " n"], count: int) -> Float[Tensor, " {count}"]:
        return x[:count]

    first(torch.zeros(3), 2)
    with pytest.raises(TypeCheckError):
        first(torch.zeros(3), 4)


def test_arguments_of_a_generator_are_checked():
    @checked
    def rows(x: Float[Tensor, "a b"]) -> Iterator[Tensor]:
        yield from x

    assert len(list(rows(torch.zeros(2, 3)))) == 2
    with pytest.raises(TypeCheckError):
        rows(torch.zeros(2))


def test_fields_of_a_dataclass_are_checked():
    @checked_class
    @dataclass
    class Pair:
        left: Float[Tensor, " a"]
        right: Float[Tensor, " a"]

    Pair(torch.zeros(2), right=torch.zeros(2))
    with pytest.raises(TypeCheckError):
        Pair(torch.zeros(2), torch.zeros(3))


Tree = Mapping[str, Union[Tensor, "Tree"]]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_values_of_a_tree_are_checked_at_every_depth(depth):
    @checked
    def take(tree: Tree) -> None:
        del tree

    right, wrong = torch.zeros(1), 1
    for _ in range(depth):
        right, wrong = {"one": right}, {"one": wrong}
    take(right)
    with pytest.raises(TypeCheckError):
        take(wrong)
