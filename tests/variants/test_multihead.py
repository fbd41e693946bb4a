"""Variants in the place of `torch.nn.MultiheadAttention`."""

import pytest
import torch
from torch import nn

import variants
from bench.api.errors import BenchError, InvalidConfig, Refused
from bench.api.registry import listed_variants

variants.load_all()
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def pair(causal=False, **options):
    """PyTorch's module and ours with its state."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(8, 2, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    mine = variants.as_multihead("scaled_dot", 8, 2, causal=causal, **options)
    mine.load_state_dict(theirs.state_dict())
    return theirs.double(), mine.double()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("padding", [None, "bool", "float"])
def test_plain_heads_are_those_of_pytorch(batch_first, bias, average, padding):
    theirs, mine = pair(batch_first=batch_first, bias=bias)
    x = drawn(2, 5, 8) if batch_first else drawn(5, 2, 8)
    mask = None if padding is None else PADDING
    if padding == "float":
        mask = torch.zeros(2, 5).double().masked_fill(PADDING, float("-inf"))
    options = {"key_padding_mask": mask, "average_attn_weights": average}
    for wanted, found in zip(theirs(x, x, x, **options), mine(x, x, x, **options), strict=True):
        torch.testing.assert_close(found, wanted)
    assert mine(x, x, x, need_weights=False)[1] is None


def test_causal_heads_are_those_of_pytorch():
    theirs, mine = pair(causal=True, batch_first=True)
    x = drawn(2, 5, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    wanted, weights = theirs(x, x, x, attn_mask=mask, is_causal=True)
    found, mine_weights = mine(x, x, x, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(mine_weights, weights)
    with pytest.raises(Refused, match="not the causal mask"):
        mine(x, x, x, attn_mask=torch.zeros(5, 5))
    with pytest.raises(Refused, match="causal=True"):
        pair()[1](x, x, x, attn_mask=mask)


def test_one_sequence_without_a_batch():
    theirs, mine = pair()
    x = drawn(5, 8)
    torch.testing.assert_close(mine(x, x, x)[0], theirs(x, x, x)[0])


@pytest.mark.parametrize("bias", [False, True])
def test_the_state_goes_both_ways(bias):
    theirs, mine = pair(bias=bias)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(mine.state_dict())


def test_other_sequences_and_masks_are_refused():
    mine = pair()[1]
    x = drawn(5, 2, 8)
    with pytest.raises(Refused, match="query, key and value must be one tensor"):
        mine(x, drawn(5, 2, 8, seed=1), x)
    with pytest.raises(InvalidConfig, match="key_padding_mask must be"):
        mine(x, x, x, key_padding_mask=torch.full((2, 5), 0.5))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(listed_variants()))
def test_every_self_attention_stands_in_an_encoder_layer(name, training):
    try:
        attention = variants.as_multihead(name, 8, 2, batch_first=True)
    except BenchError as reason:
        pytest.skip(str(reason))
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    layer.self_attn = attention
    layer.double().train(training)
    x = drawn(2, 5, 8)
    try:
        found = layer(x, src_key_padding_mask=PADDING)
    except BenchError as reason:
        pytest.skip(str(reason))
    assert found.shape == x.shape
    moved = torch.where(PADDING[..., None], 9.0, x)
    if not training:
        again = layer(moved, src_key_padding_mask=PADDING)
        torch.testing.assert_close(again[~PADDING], found[~PADDING])


def test_an_encoder_layer_computes_what_pytorch_computes():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double().eval()
    x = drawn(2, 5, 8)
    wanted = layer(x, src_key_padding_mask=PADDING)
    mine = variants.as_multihead("scaled_dot", 8, 2, batch_first=True).double()
    mine.load_state_dict(layer.self_attn.state_dict())
    layer.self_attn = mine
    found = layer(x, src_key_padding_mask=PADDING)
    torch.testing.assert_close(found[~PADDING], wanted[~PADDING])
