import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import Refused
from bench.api.source import Source


def feature(x):
    return torch.where(x > 0, x + 1, x.exp())


def begin(variant, drawn, dtype=torch.float64):
    rows, heads, _, width = drawn.query.shape
    return variant.start(None, QueryShape(rows, heads, width, dtype, drawn.query.device))


@pytest.mark.parametrize("length", [63, 64, 65, 150])
def test_chunks_equal_the_quadratic_form_with_a_triangular_mask(beneath, answer, draw, length):
    drawn = draw(1, 2, length, length, lengths=())
    variant = beneath("linear_attention", regime="causal")
    found = answer(variant, drawn.query, drawn.source)
    weights = (feature(drawn.query) @ feature(drawn.source.key).mT).tril()
    expected = weights @ drawn.source.value / (weights.sum(-1, keepdim=True) + 1e-6)
    torch.testing.assert_close(found.output, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("split", [[1] * 70, [64, 6], [3, 66, 1], [65, 5]])
def test_every_split_of_the_sequence_gives_the_same_output_and_state(beneath, answer, draw, split):
    drawn = draw(2, 2, 70, 70, lengths=[70, 66])
    variant = beneath("linear_attention", regime="causal")
    whole = answer(variant, drawn.query, drawn.source)
    state, at, parts = begin(variant, drawn), 0, []
    for count in split:
        some = slice(at, at + count)
        source = drawn.source
        new = Source(source.key[:, :, some], source.value[:, :, some], source.mask[:, some])
        found = variant.attend(drawn.query[:, :, some], None, state, new=new)
        state, at = found.state, at + count
        parts.append(found.output)
    torch.testing.assert_close(torch.cat(parts, 2), whole.output, rtol=0, atol=1e-10)
    for name, leaf in whole.state.carried.items():
        torch.testing.assert_close(state.carried[name], leaf, rtol=0, atol=1e-10)


def test_the_state_does_not_grow_and_keeps_no_keys(beneath, answer, draw):
    variant = beneath("linear_attention", regime="causal")
    shapes = []
    for length in (1, 40):
        drawn = draw(2, 2, length, length, lengths=())
        after = answer(variant, drawn.query, drawn.source).state
        assert after.cache is None
        assert after.offset == length
        shapes.append({name: leaf.shape for name, leaf in after.carried.items()})
    assert shapes[0] == shapes[1] == {"matrix": (2, 2, 5, 4), "normalizer": (2, 2, 5, 1)}


def test_in_half_precision_the_state_stays_in_float32(draw):
    slot = variants.build("linear_attention", dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    assert found.state.carried["matrix"].dtype == torch.float32


def test_constant_values_come_out_as_they_are(beneath, answer, draw):
    drawn = draw()
    variant = beneath("linear_attention")
    constant = torch.full_like(drawn.source.value, 3.0)
    found = answer(variant, drawn.query, Source(drawn.source.key, constant, drawn.source.mask))
    torch.testing.assert_close(found.output, torch.full_like(found.output, 3.0), rtol=0, atol=1e-4)
    assert found.weights is None


def test_a_single_key_gives_its_value(beneath, answer, draw):
    drawn = draw(2, 2, 3, 1, lengths=())
    variant = beneath("linear_attention")
    found = answer(variant, drawn.query, drawn.source).output
    expected = drawn.source.value.expand_as(found)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_the_order_of_keys_does_not_matter_under_cross_attention(beneath, answer, draw):
    drawn = draw(lengths=())
    variant = beneath("linear_attention")
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    shuffled = Source(drawn.source.key[:, :, order], drawn.source.value[:, :, order])
    outputs = []
    for source in (drawn.source, shuffled):
        outputs.append(answer(variant, drawn.query, source).output)
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_other_implementations_and_unequal_widths_are_refused():
    with pytest.raises(Refused, match="linear_attention has no impl=sdpa; use auto or eager"):
        variants.build("linear_attention", dim=8, heads=2, impl="sdpa")
    with pytest.raises(Refused, match="needs queries and keys of equal width"):
        variants.build("linear_attention", dim=8, source_dim=6, regime="cross")
