from dataclasses import replace

import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.source import Source


@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, padded):
    equals_oracle("selective", "causal", padded=padded)


def told(*rows):
    """One-hot keys, and queries whose energies are the rows given; one head."""
    energy = torch.tensor(rows, dtype=torch.float64)
    length = len(rows)
    key = torch.eye(length, dtype=torch.float64)[None, None]
    value = torch.eye(length, dtype=torch.float64)[None, None]
    return length**0.5 * energy[None, None], Source(key, value)


def weights_of(beneath, answer, *rows):
    query, source = told(*rows)
    length = len(rows)
    variant = beneath("selective", heads=1, widths=(length, length, length), regime="causal")
    return answer(variant, query, source).weights[0, 0]


def test_what_a_token_says_lowers_a_key_for_all_tokens_after_it(beneath, answer):
    found = weights_of(
        beneath, answer, [0, 0, 0, 0, 0], [0] * 5, [0, 3, 0, 0, 0], [0, 0, 2, 0, 0], [0] * 5
    )
    wanted = torch.softmax(torch.tensor([0.0, -3, -2, 0, 0], dtype=torch.float64), 0)
    torch.testing.assert_close(found[4], wanted, rtol=0, atol=1e-12)
    third = torch.softmax(torch.tensor([0.0, 3, 0], dtype=torch.float64), 0)
    torch.testing.assert_close(found[2, :3], third, rtol=0, atol=1e-12)


def test_the_first_token_and_a_tokens_own_key_are_never_lowered(beneath, answer):
    found = weights_of(beneath, answer, [9, 0, 0, 0], [9, 9, 0, 0], [9, 0, 9, 0], [0, 0, 0, 0])
    wanted = torch.full((4,), 0.25, dtype=torch.float64)
    torch.testing.assert_close(found[3], wanted, rtol=0, atol=1e-12)


def test_energies_below_zero_lower_nothing(beneath, answer):
    found = weights_of(beneath, answer, [0, 0, 0], [0, 0, 0], [0, -5, 0])
    plain = torch.softmax(torch.tensor([0.0, -5, 0], dtype=torch.float64), 0)
    torch.testing.assert_close(found[2], plain, rtol=0, atol=1e-12)


def test_what_padding_says_lowers_nothing(beneath, answer):
    rows = ([0] * 4, [0] * 4, [0, 9, 0, 0], [0, 1, 0, 0])
    query, source = told(*rows)
    mask = torch.tensor([[True, True, False, True]])
    variant = beneath("selective", heads=1, widths=(4, 4, 4), regime="causal")
    found = answer(variant, query, replace(source, mask=mask)).weights[0, 0, 3]
    wanted = torch.softmax(torch.tensor([0.0, 1, -torch.inf, 0], dtype=torch.float64), 0)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_only_the_first_head_speaks_and_it_speaks_for_all(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("selective", regime="causal")
    plain = beneath("scaled_dot", regime="causal")
    silent = drawn.query * torch.tensor([0.0, 1.0], dtype=torch.float64)[None, :, None, None]
    found = answer(variant, silent, drawn.source).weights
    wanted = answer(plain, silent, drawn.source).weights
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    loud = answer(variant, drawn.query, drawn.source).weights
    assert (loud - answer(plain, drawn.query, drawn.source).weights)[:, 1].abs().max() > 1e-3


def test_a_sequence_of_two_tokens_is_plain_attention(beneath, answer, draw):
    drawn = draw(queries=2, keys=2, lengths=())
    found, wanted = (
        answer(beneath(name, regime="causal"), drawn.query, drawn.source).output
        for name in ("selective", "scaled_dot")
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_in_half_precision_the_sum_stays_in_float32():
    slot = variants.build("selective", dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    assert found.state.carried["lowered"].dtype == torch.float32


@pytest.mark.parametrize("regime", ["cross", "self", "pool"])
def test_what_has_no_past_is_refused(regime):
    with pytest.raises(Refused, match="selective"):
        variants.build("selective", dim=8, heads=2, regime=regime)
