import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from variants.mechanisms.linformer import LinformerConfig


def test_with_identities_it_is_softmax_attention(beneath, answer, draw):
    drawn = draw(2, 2, 4, 6, lengths=())
    variant = beneath("linformer[rank=6,longest=6]")
    with torch.no_grad():
        variant.mix_keys.copy_(torch.eye(6))
        variant.mix_values.copy_(torch.eye(6))
    found = answer(variant, drawn.query, drawn.source).output
    expected = answer(beneath("scaled_dot"), drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected)


def test_padding_is_made_zero_before_it_is_mixed(beneath, answer, draw):
    drawn = draw(3, 2, 4, 6)
    variant = beneath("linformer[rank=4]")
    found = answer(variant, drawn.query, drawn.source).output
    for row in range(3):
        query, source = drawn.row(row)
        alone = answer(variant, query, source).output
        torch.testing.assert_close(found[row : row + 1], alone)


def test_a_sequence_longer_than_the_matrices_is_refused(beneath, draw):
    variant = beneath("linformer[longest=5]")
    with pytest.raises(Refused, match="end at longest=5, but the sequence has 6 tokens"):
        variant.prepare(draw().source)


def test_causal_attention_is_refused():
    with pytest.raises(Refused, match="later ones reach earlier queries"):
        variants.build("linformer", dim=8, heads=2, regime="causal")


def test_no_row_and_no_column_are_refused():
    for options in ({"rank": 0}, {"longest": 0}):
        with pytest.raises(InvalidConfig, match="must be at least 1"):
            LinformerConfig(**options)
