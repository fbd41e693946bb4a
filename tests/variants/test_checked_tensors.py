"""Tensors that a user hands to attention: a wrong one is refused in a sentence."""

import re
from functools import partial

import numpy as np
import pytest
import torch

import variants
from bench.api.errors import InvalidConfig

pytestmark = pytest.mark.usefixtures("unchecked_annotations")  # users have none
LABELS = 4


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(*shape):
    return torch.randint(LABELS, shape, generator=torch.Generator().manual_seed(3))


def labeled(regime):
    return variants.build("relation_aware", dim=8, heads=2, relations=LABELS, regime=regime).eval()


@pytest.mark.parametrize("shape", [(1, 4, 8), (2, 3, 8), (2, 4, 6), (4, 8)])
def test_values_have_the_shape_of_the_source(shape):
    attention = variants.build("additive", dim=8, regime="cross")
    sentence = f"the values must have the shape of the source, (2, 4, 8), got {shape}."
    with pytest.raises(InvalidConfig, match=f"^{re.escape(sentence)}$"):
        attention.prepare(drawn(2, 4, 8), values=drawn(*shape))


@pytest.mark.parametrize("regime", ["self", "causal"])
@pytest.mark.parametrize(
    "shape", [(2, 5, 9), (2, 9, 5), (2, 1, 5), (1, 5, 5), (2, 5, 4), (3, 5, 5), (5, 5), ()]
)
def test_a_label_belongs_to_each_query_and_token(regime, shape):
    attention, x = labeled(regime), drawn(2, 5, 8)
    assert attention(x, extras={"relation": labels(2, 5, 5)}).shape == x.shape
    sentence = (
        f'"relation" must have shape (2, 5, 5), a label for each query and token, got {shape}.'
    )
    with pytest.raises(InvalidConfig, match=f"^{re.escape(sentence)}$"):
        attention(x, extras={"relation": labels(*shape)})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (torch.zeros(2, 5, 5), "whole numbers (int64), got torch.float32"),
        (torch.zeros(2, 5, 5, dtype=torch.bool), "whole numbers (int64), got torch.bool"),
        (torch.full((2, 5, 5), -2), "labels from 0 to 3; this one has others"),
        (torch.full((2, 5, 5), LABELS), "labels from 0 to 3; this one has others"),
        (np.zeros((2, 5, 5), dtype=int), "a torch.Tensor, got ndarray"),
    ],
)
def test_labels_are_whole_numbers_below_their_count(wrong, sentence):
    for regime in ("self", "causal"):
        with pytest.raises(InvalidConfig, match=f'^"relation" must .*{re.escape(sentence)}'):
            labeled(regime)(drawn(2, 5, 8), extras={"relation": wrong})


@pytest.mark.parametrize("split", [(1, 1, 1, 1, 1), (3, 2)])
@pytest.mark.parametrize("later", [True, False])
def test_a_step_may_have_labels_of_tokens_that_come_later(split, later):
    attention, x, told = labeled("causal"), drawn(2, 5, 8), labels(2, 5, 5)
    wanted, found = attention(x, extras={"relation": told}), []
    state, end = attention.start(None, x), 0
    for count in split:
        begin, end = end, end + count
        new, own = x[:, begin:end], told[:, begin:end]
        step = partial(attention.attend, new, None, state, own=(new, None, None))
        with pytest.raises(InvalidConfig, match=rf"must have shape \(2, {count}, {end}\), a label"):
            step(extras={"relation": own[..., : end - 1]})
        output, answer = step(extras={"relation": own if later else own[..., :end]})
        found.append(output)
        state = answer.state
    torch.testing.assert_close(torch.cat(found, 1), wanted)


@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 1, 4), (2, 3, 5), (2, 4)])
def test_a_word_belongs_to_each_query(shape):
    sizes = {"source_vocab": 11, "word_dim": 4, "attention_only": True}
    attention = variants.build("mi_coverage", dim=8, regime="cross", **sizes)
    tokens = torch.arange(10).view(2, 5)
    sentence = f'"word" must have shape (2, 3, 4), a vector for each query, got {shape}.'
    with pytest.raises(InvalidConfig, match=f"^{re.escape(sentence)}$"):
        attention(drawn(2, 3, 8), drawn(2, 5, 8), tokens=tokens, extras={"word": drawn(*shape)})


def test_inputs_that_are_not_read_are_not_looked_at():
    attention, x = variants.build("scaled_dot", dim=8), drawn(2, 5, 8)
    assert torch.equal(attention(x, extras={"relation": labels(1), "word": x}), attention(x))


def test_lists_and_arrays_are_no_tensors():
    attention = variants.build("additive", dim=8, regime="cross")
    x, source = drawn(2, 3, 8), drawn(2, 4, 8)
    for call, sentence in (
        (lambda: attention(x.numpy(), source), "the queries must be a torch.Tensor, got ndarray"),
        (lambda: attention(x, source.tolist()), "the source must be a torch.Tensor, got list"),
        (
            lambda: attention(x, source, mask=[[1] * 4] * 2),
            "the mask must be a torch.Tensor, got l",
        ),
        (lambda: attention(x, source, mask=np.ones((2, 4))), "the mask must be a .*, got ndarray"),
        (lambda: attention.prepare(source, values=[1]), "the values must be a .*, got list"),
    ):
        with pytest.raises(InvalidConfig, match=f"^{sentence}"):
            call()
