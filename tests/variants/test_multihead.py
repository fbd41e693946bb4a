"""Variants in the place of `torch.nn.MultiheadAttention`."""

import copy
import functools
import re
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import variants
from bench.api.errors import BenchError, InvalidConfig, Refused, UnknownName
from bench.api.registry import listed_variants

variants.load_all()
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def pair(causal=False, cross=False, **options):
    """PyTorch's module and ours with its state."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(8, 2, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    mine = variants.as_multihead("mha", 8, 2, causal=causal, cross=cross, **options)
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
    with pytest.raises(Refused, match="attn_mask shows the future"):
        mine(x, x, x, attn_mask=torch.zeros(5, 5))


def masks(rows, queries, keys, heads=2):
    """Every kind of mask that PyTorch takes; each query sees a key."""
    hidden = drawn(queries, keys, seed=3) > 0.3
    hidden[:, 0] = False
    each = drawn(rows * heads, queries, keys, seed=4) > 0.3
    each[:, :, 0] = False
    return {
        "bool": hidden,
        "float": torch.zeros(queries, keys).double().masked_fill(hidden, float("-inf")),
        "numbers": drawn(queries, keys, seed=5).masked_fill(hidden, float("-inf")),
        "each head": each,
        "each head, numbers": drawn(rows * heads, queries, keys, seed=6),
    }


@pytest.mark.parametrize("kind", masks(2, 5, 5))
@pytest.mark.parametrize("padding", [None, "right", "left", "numbers"])
@pytest.mark.parametrize("need_weights", [False, True])
def test_masks_are_those_of_pytorch(kind, padding, need_weights):
    theirs, mine = pair(batch_first=True)
    x = drawn(2, 5, 8)
    mask = masks(2, 5, 5)[kind]
    hidden = {"right": PADDING, "left": torch.tensor([[False, True, False, False, True]] * 2)}
    padded = hidden.get(padding)
    if padding == "numbers":
        padded = drawn(2, 5, seed=7)
    options = {"attn_mask": mask, "key_padding_mask": padded, "need_weights": need_weights}
    if mask.dtype == torch.bool and padding == "numbers":
        options["attn_mask"] = masks(2, 5, 5)["float"]  # PyTorch warns where the two kinds differ
    elif mask.dtype != torch.bool and padding in hidden:
        options["key_padding_mask"] = torch.zeros(2, 5).double().masked_fill(padded, float("-inf"))
    wanted, found = theirs(x, x, x, **options), mine(x, x, x, **options)
    torch.testing.assert_close(found, wanted)


def test_a_window_is_a_mask_that_a_causal_module_takes():
    theirs, mine = pair(causal=True, batch_first=True)
    x = drawn(2, 5, 8)
    outside = torch.ones(5, 5, dtype=torch.bool)
    window = outside.triu(1) | outside.tril(-2)
    wanted = theirs(x, x, x, attn_mask=window)
    torch.testing.assert_close(mine(x, x, x, attn_mask=window), wanted)


def test_a_query_without_any_key_gets_zeros():
    mine = pair(bias=False, batch_first=True)[1]
    x = drawn(2, 5, 8).requires_grad_()
    mask = torch.zeros(5, 5, dtype=torch.bool)
    mask[2] = True
    output, weights = mine(x, x, x, attn_mask=mask)
    assert not output[:, 2].any()
    assert not weights[:, 2].any()
    output.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("kdim", [8, 6])
@pytest.mark.parametrize("bias", [False, True])
def test_another_sequence_is_attended_to_as_in_pytorch(kdim, bias):
    theirs, mine = pair(bias=bias, batch_first=True, kdim=kdim, vdim=kdim, cross=True)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(mine.state_dict())
    x, key, value = drawn(2, 3, 8), drawn(2, 5, kdim, seed=1), drawn(2, 5, kdim, seed=2)
    for options in ({}, {"key_padding_mask": PADDING}, {"attn_mask": masks(2, 3, 5)["each head"]}):
        wanted = theirs(x, key, value, **options)
        torch.testing.assert_close(mine(x, key, value, **options), wanted)


def test_gradients_are_those_of_pytorch():
    theirs, mine = pair(batch_first=True)
    x, options = drawn(2, 5, 8), {"key_padding_mask": PADDING, "attn_mask": masks(2, 5, 5)["bool"]}
    for module in (theirs, mine):
        module(x, x, x, **options)[0].square().sum().backward()
    heads = mine.attention.heads
    packed = torch.cat([one.weight.grad for one in (heads.to_query, heads.to_key, heads.to_value)])
    torch.testing.assert_close(packed, theirs.in_proj_weight.grad)
    torch.testing.assert_close(heads.to_output.weight.grad, theirs.out_proj.weight.grad)
    torch.testing.assert_close(heads.to_output.bias.grad, theirs.out_proj.bias.grad)


def test_dropped_weights_are_those_of_pytorch_and_only_in_training():
    theirs, mine = pair(dropout=0.5, batch_first=True)
    x = drawn(2, 5, 8)
    for module in (theirs, mine):
        module.train()
    torch.manual_seed(1)
    wanted = theirs(x, x, x)
    torch.manual_seed(1)
    torch.testing.assert_close(mine(x, x, x), wanted)
    torch.testing.assert_close(mine.eval()(x, x, x), theirs.eval()(x, x, x))
    with pytest.raises(Refused, match="no weights that could be dropped"):
        variants.as_multihead("linear_attention", 8, 2, dropout=0.1)


def test_what_a_module_cannot_do_is_said_in_a_sentence():
    linear = variants.as_multihead("linear_attention", 8, 2, batch_first=True).double()
    x = drawn(2, 5, 8)
    with pytest.raises(Refused, match="Build it with causal=True for the causal mask"):
        linear(x, x, x, attn_mask=torch.zeros(5, 5))
    with pytest.raises(Refused, match="Pass truth values, or -inf for padding"):
        linear(x, x, x, key_padding_mask=torch.zeros(2, 5).masked_fill(PADDING, -9.0))
    with pytest.raises(Refused, match="there is none"):
        linear(x, x, x, is_causal=True)
    with pytest.raises(Refused, match="no causal order"):
        variants.as_multihead("mha", 8, 2, causal=True, cross=True)
    with pytest.raises(Refused, match="build it with cross=True"):
        variants.as_multihead("mha", 8, 2, kdim=6, vdim=6)
    with pytest.raises(Refused, match="snail returns 16 numbers for each query, because its heads"):
        variants.as_multihead("snail", 8, 1, causal=True)
    for options in ({"kdim": 6}, {"kdim": 6, "cross": True}):
        with pytest.raises(Refused, match="kdim=6 and vdim=8; give both the same, and cross=True"):
            variants.as_multihead("mha", 8, 2, **options)
    mine = pair()[1]
    with pytest.raises(InvalidConfig, match="attn_mask must have shape"):
        mine(x, x, x, attn_mask=torch.zeros(5, 4))
    with pytest.raises(InvalidConfig, match="key_padding_mask must have shape"):
        mine(x, x, x, key_padding_mask=torch.zeros(5, 4))
    with pytest.raises(InvalidConfig, match="truth values or numbers"):
        mine(x, x, x, attn_mask=torch.zeros(2, 2, dtype=torch.long))


@pytest.mark.parametrize(
    ("name", "options", "remedy"),
    [
        ("gla", {}, "with causal=True"),
        ("gla", {"cross": True}, "with causal=True"),
        ("location_aware", {}, "with cross=True"),
        ("shaw_rpr", {"cross": True}, "without cross"),
    ],
)
def test_a_variant_that_stands_elsewhere_says_which_option_helps(name, options, remedy):
    with pytest.raises(Refused, match=rf"^{name}: [^.]*; build it {remedy}\.$"):
        variants.as_multihead(name, 8, 2, **options)
    words = remedy.removeprefix("with ").split("=")[0]
    helps = {} if remedy.startswith("without") else {words: True}
    assert variants.as_multihead(name, 8, 2, **helps) is not None


def test_where_no_option_helps_none_is_named():
    for options in ({}, {"kdim": 4, "vdim": 4, "cross": True}):
        name = "gla" if options else "sinusoid"
        with pytest.raises(Refused) as refusal:
            variants.as_multihead(name, 8, 2, **options)
        assert "build it" not in str(refusal.value)


@pytest.mark.usefixtures("unchecked_annotations")  # users have none
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_value_belongs_to_each_key(batch_first):
    mine = pair(cross=True, batch_first=batch_first)[1]
    x, key = drawn(2, 2, 8), drawn(2, 4, 8)
    for shape in ((1, 4, 8), (2, 3, 8), (2, 4, 6), (4, 8)):
        sentence = f"value must have the shape of key, (2, 4, 8), got {shape}."
        with pytest.raises(InvalidConfig, match=f"^{re.escape(sentence)}$"):
            mine(x, key, drawn(*shape))


@pytest.mark.usefixtures("unchecked_annotations")
def test_what_is_no_tensor_is_refused():
    mine, x = pair(cross=True, batch_first=True)[1], drawn(2, 5, 8)
    calls = {
        "query": ((None, x, x), {}),
        "key": ((x, x.tolist(), x), {}),
        "value": ((x, x, None), {}),
        "key_padding_mask": ((x, x, x), {"key_padding_mask": PADDING.numpy()}),
        "attn_mask": ((x, x, x), {"attn_mask": [[False] * 5] * 5}),
    }
    for name, (given, masks) in calls.items():
        with pytest.raises(InvalidConfig, match=rf"^{name} must be a torch\.Tensor, got \w+\.$"):
            mine(*given, **masks)


def test_one_sequence_without_a_batch():
    theirs, mine = pair()
    x = drawn(5, 8)
    torch.testing.assert_close(mine(x, x, x)[0], theirs(x, x, x)[0])


@pytest.mark.parametrize("bias", [False, True])
def test_the_state_goes_both_ways(bias):
    theirs, mine = pair(bias=bias)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(mine.state_dict())


@pytest.mark.parametrize("name", ["to_query", "to_output"])
def test_a_state_with_a_map_that_is_not_plain_is_loaded_again(name):
    mine = variants.as_multihead("mha", 8, 2)
    again = copy.deepcopy(mine)
    for module in (mine, again):
        parametrizations.weight_norm(getattr(module.attention.heads, name))
    with torch.no_grad():
        for parameter in mine.parameters():
            nn.init.normal_(parameter)
    again.load_state_dict(mine.state_dict())
    x = torch.randn(5, 2, 8)
    assert torch.equal(again(x, x, x)[0], mine(x, x, x)[0])


def test_a_state_in_which_one_map_has_no_bias_is_loaded_again():
    mine, again = (variants.as_multihead("mha", 8, 2) for _ in range(2))
    for module in (mine, again):
        module.attention.heads.to_key.bias = None  # softmax would cancel it
    again.load_state_dict(mine.state_dict())
    x = torch.randn(5, 2, 8)
    assert torch.equal(again(x, x, x)[0], mine(x, x, x)[0])


def test_other_sequences_are_refused():
    mine = pair()[1]
    x = drawn(5, 2, 8)
    with pytest.raises(Refused, match="query, key and value must be one tensor"):
        mine(x, drawn(5, 2, 8, seed=1), x)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(listed_variants()))
def test_every_self_attention_stands_in_an_encoder_layer(name, training):
    x, asked = drawn(2, 5, 8), {}
    try:
        layer = encoder_layer(name, training)
        found = layer(x, src_key_padding_mask=PADDING)
    except BenchError:
        # recurrences and windows of the past stand where order is time
        asked = {"src_mask": torch.ones(5, 5, dtype=torch.bool).triu(1), "is_causal": True}
        try:
            layer = encoder_layer(name, training, causal=True)
            found = layer(x, src_key_padding_mask=PADDING, **asked)
        except BenchError as reason:
            pytest.skip(str(reason))
    assert found.shape == x.shape
    moved = torch.where(PADDING[..., None], 9.0, x)
    if not training:
        again = layer(moved, src_key_padding_mask=PADDING, **asked)
        torch.testing.assert_close(again[~PADDING], found[~PADDING])


def encoder_layer(name, training, **options):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    options |= {"batch_first": True, "attention_only": True}
    layer.self_attn = variants.as_multihead(name, 8, 2, **options)
    return layer.double().train(training)


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


def test_heads_write_out_what_they_keep_though_masks_may_come():
    """The twin for masks shares the heads, and cannot do so."""
    attention = variants.as_multihead("mla", 64, 4, batch_first=True).double().eval()
    (masked,) = attention._with_given_mask
    assert attention.attention.heads.any_width
    assert not masked.heads.any_width
    moved = copy.deepcopy(attention).float()
    (again,) = moved._with_given_mask
    assert [*again.heads.parameters()] == [*moved.attention.heads.parameters()]
    assert {one.dtype for one in again.heads.parameters()} == {torch.float32}
    x = drawn(1, 80, 64)
    wanted, _ = attention(x, x, x, attn_mask=torch.zeros(80, 80, dtype=torch.bool))
    torch.testing.assert_close(attention(x, x, x)[0], wanted)


MASKED = ("scaled_dot[mask=luong_local_p]", "general[mask=luong_local_p,normalizer=learned_sink]")
"""Masks with weights of their own under scores that have fused code."""


@functools.cache
def self_attentions(name):
    """What is built of a variant, by whether it is causal; or else the reason why nothing is."""
    found, reasons = {}, []
    for causal in (False, True):
        options = {"batch_first": True, "attention_only": True, "causal": causal}
        try:
            found[causal] = variants.as_multihead(name, 8, 2, **options).double().eval()
        except BenchError as reason:
            reasons.append(str(reason))
    return found, reasons


@pytest.mark.parametrize("name", [*sorted(listed_variants()), *MASKED])
def test_every_variant_follows_a_mask_or_refuses_it(name):
    built, reasons = self_attentions(name)
    if not built:
        pytest.skip("; ".join(reasons))
    x, own = drawn(1, 5, 8), torch.eye(5, dtype=torch.bool)
    for causal, attention in built.items():
        # each query does not see the key after it, or before it where it sees no later ones
        mask = own.roll(-1, 1) | own.new_ones(5, 5).triu(1) if causal else own.roll(1, 1)
        if not attention._with_given_mask:
            with pytest.raises(Refused, match=f"{name} has no energies of single keys, which this"):
                attention(x, x, x, attn_mask=mask)
            continue
        output, weights = attention(x, x, x, attn_mask=mask, average_attn_weights=False)
        if weights is not None:
            assert not weights[:, :, mask].any()
        assert output.isfinite().all()
        alone, _ = attention(x, x, x, attn_mask=mask, need_weights=False)
        torch.testing.assert_close(alone, output)


def test_most_variants_are_asked_whether_they_follow_a_mask():
    assert sum(bool(self_attentions(name)[0]) for name in listed_variants()) >= 150


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("swapped", ["before", "after"])
def test_a_stack_of_layers_computes_what_pytorch_computes(gradients, swapped):
    def stack(attention=None):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        if attention is not None and swapped == "before":
            layer.self_attn = attention
        found = nn.TransformerEncoder(layer, 2)
        if attention is not None and swapped == "after":
            for one in found.layers:
                one.self_attn = copy.deepcopy(attention)
        return found.double().eval()

    theirs = stack()
    mine = stack(variants.as_multihead("scaled_dot", 8, 2, batch_first=True))
    mine.load_state_dict(theirs.state_dict())
    x = drawn(2, 5, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    for frozen in (False, True):
        mine.requires_grad_(not frozen)
        with torch.set_grad_enabled(gradients):
            wanted = theirs(x, src_key_padding_mask=PADDING)
            found = mine(x, src_key_padding_mask=PADDING)
            torch.testing.assert_close(found[~PADDING], wanted[~PADDING])
            wanted, found = (stack(x, mask=mask, is_causal=True) for stack in (theirs, mine))
            torch.testing.assert_close(found, wanted)


def test_a_decoder_layer_computes_what_pytorch_computes():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    x, memory = drawn(2, 3, 8), drawn(2, 5, 8, seed=1)
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    options = {"tgt_mask": mask, "tgt_is_causal": True, "memory_key_padding_mask": PADDING}
    wanted = layer(x, memory, **options)
    state = layer.state_dict()
    layer.self_attn = variants.as_multihead("mha", 8, 2, batch_first=True, causal=True)
    layer.multihead_attn = variants.as_multihead("mha", 8, 2, batch_first=True, cross=True)
    layer.double().load_state_dict(state)
    torch.testing.assert_close(layer(x, memory, **options), wanted)


PADDED = (
    "scaled_dot",
    "scaled_dot[head=canon]",
    "scaled_dot[head=fox_pro]",
    "scaled_dot[head=short_convolution]",
    "moba[block=2,chosen=1]",
    "scaled_dot[mask=lsh]",
    "scaled_dot[mask=luong_local_p]",
    "scaled_dot[mask=last_key]",
    "conv_attention",
    "scaled_dot[normalizer=ntm_addressing]",
    "additive[position=cohn_position]",
    "fire",
    "alibi",
    "linear_attention",
    "retnet",
)
"""Variants that look at neighbors, count places or need the true length, and two that do not."""
GAPS = torch.tensor([[True, False, False, True, False], [False, False, True, True, True]])


def moved_right(x, hidden):
    """Real vectors of each row in front, and their mask."""
    rows = [torch.cat((row[~gaps], row[gaps])) for row, gaps in zip(x, hidden, strict=True)]
    return torch.stack(rows), torch.sort(hidden.long(), 1).values.bool()


@pytest.mark.parametrize("name", PADDED)
def test_padding_may_stand_anywhere_and_what_it_holds_does_not_matter(name):
    built, reasons = self_attentions(name)
    assert built, reasons
    x = drawn(2, 5, 8)
    packed, right = moved_right(x, GAPS)
    for attention in built.values():
        wanted, between = attention(packed, packed, packed, key_padding_mask=right)
        for kept in (x, torch.where(GAPS[..., None], 9.0, x)):
            found, weights = attention(kept, kept, kept, key_padding_mask=GAPS)
            torch.testing.assert_close(found[~GAPS], wanted[~right])
            if weights is not None:
                pairs, right_pairs = (~one[:, :, None] & ~one[:, None] for one in (GAPS, right))
                torch.testing.assert_close(weights[pairs], between[right_pairs])
                assert not weights.mT[GAPS].any()


@pytest.mark.parametrize(
    "name",
    [
        "scaled_dot",
        "scaled_dot[mask=luong_local_p]",
        "conv_attention",
        "additive[position=cohn_position]",
    ],
)
def test_padding_of_another_sequence_may_stand_anywhere(name):
    attention = variants.as_multihead(name, 8, 2, batch_first=True, cross=True).double().eval()
    x, key, value = drawn(2, 3, 8), drawn(2, 5, 8, seed=1), drawn(2, 5, 8, seed=2)
    (keys, right), (values, _) = moved_right(key, GAPS), moved_right(value, GAPS)
    wanted, between = attention(x, keys, values, key_padding_mask=right)
    hidden = GAPS[..., None]
    found, weights = attention(
        x, key.masked_fill(hidden, 9.0), value.masked_fill(hidden, 9.0), key_padding_mask=GAPS
    )
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(weights.mT[~GAPS], between.mT[~right])


def test_padding_that_stands_before_what_is_real_sees_nothing_of_it():
    mine = variants.as_multihead("mha", 8, 2, causal=True, batch_first=True).double()
    x = drawn(2, 5, 8).requires_grad_()
    output, weights = mine(x, x, x, key_padding_mask=GAPS)
    ahead = GAPS & torch.tensor([[True], [False]])
    assert not output[ahead].any()
    assert not weights[ahead].any()
    assert output[~ahead].abs().sum(-1).all()
    output.sum().backward()
    assert x.grad.isfinite().all()
    assert not x.grad[ahead].any()


def test_masks_of_pairs_go_with_padding_that_is_moved():
    theirs, mine = pair(causal=True, batch_first=True)
    x, outside = drawn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool)
    window = outside.triu(1) | outside.tril(-3)
    numbers = drawn(4, 5, 5, seed=3).masked_fill(window, float("-inf"))
    minus = torch.zeros(2, 5).double().masked_fill(GAPS, float("-inf"))
    for mask, padding in ((window, GAPS), (numbers, minus)):
        options = {"attn_mask": mask, "key_padding_mask": padding}
        wanted, found = (module(x, x, x, **options)[0] for module in (theirs, mine))
        torch.testing.assert_close(found[~GAPS], wanted[~GAPS])


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("kind", ["right", "anywhere", "minus infinity", "numbers"])
def test_code_that_is_compiled_reads_padding_as_eager_code_does(name, kind, monkeypatch):
    """As far as Python chooses a way; a slow test compiles."""
    mask = {
        "right": PADDING,
        "anywhere": GAPS,
        "minus infinity": torch.zeros(2, 5).double().masked_fill(PADDING, float("-inf")),
        "numbers": torch.zeros(2, 5).double().masked_fill(PADDING, -2.0),
    }[kind]
    x = drawn(2, 5, 8)
    for attention in self_attentions(name)[0].values():
        if kind == "numbers" and not attention._with_given_mask:
            continue
        wanted = attention(x, x, x, key_padding_mask=mask)
        with monkeypatch.context() as compiling:
            compiling.setattr(torch.compiler, "is_compiling", lambda: True)
            found = attention(x, x, x, key_padding_mask=mask)
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_a_bias_that_starts_at_zero_learns(causal):
    mine = pair(causal=causal, batch_first=True)[1]
    x, future = drawn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool).triu(1)
    bias, of_keys = torch.zeros(5, 5).requires_grad_(), torch.zeros(2, 5).requires_grad_()
    mask = bias.masked_fill(future, float("-inf")) if causal else bias
    mine(x, x, x, attn_mask=mask)[0].square().sum().backward()
    mine(x, x, x, key_padding_mask=of_keys)[0].square().sum().backward()
    assert bias.grad.abs().sum() > 0
    assert of_keys.grad.abs().sum() > 0


def test_what_learns_to_read_by_training_progress_is_told_it():
    """Until a quarter of training is done, an indexer lets everything be read."""
    name = "dsa[normalizer=dsa[chosen=1]]"
    mine = variants.as_multihead(name, 8, 2, causal=True, batch_first=True, attention_only=True)
    x = torch.randn(2, 5, 8)
    assert mine.progress == 1.0
    late = mine.train()(x, x, x)[1]
    mine.progress = 0.0
    early = mine(x, x, x)[1]
    assert (early[:, -1] > 0).all()
    assert ((late[:, -1] > 0).sum(-1) < 5).all()


COMPILE = """
import torch
import variants
from bench.api.errors import BenchError

torch.manual_seed(0)
right = torch.tensor([[False] * 5, [False, False, False, True, True]])
left = right.flip(1)
hidden = torch.zeros(2, 5).masked_fill(right, float("-inf"))
lower = torch.zeros(2, 5).masked_fill(right, -2.0)
x = torch.randn(2, 5, 8)
for name in ("scaled_dot", "additive", "retnet", "scaled_dot[mask=last_key]", "conv_attention"):
    module = variants.as_multihead(name, 8, 2, batch_first=True, causal=name == "retnet")
    compiled = torch.compile(module, backend="eager")
    for mask in (right, left, hidden, lower):
        try:
            wanted = module(x, x, x, key_padding_mask=mask)[0]
        except BenchError:
            assert name == "retnet"
            try:
                compiled(x, x, x, key_padding_mask=mask)
            except RuntimeError as error:
                assert "adds to energies" in str(error)
            else:
                raise AssertionError("a mask was left out")
            continue
        found = compiled(x, x, x, key_padding_mask=mask)[0]
        torch.testing.assert_close(found, wanted)
"""


@pytest.mark.slow
def test_compiled_code_reads_the_mask_of_padding_as_eager_code_does():
    # in a process of its own, without the hook that checks types
    subprocess.run([sys.executable, "-c", COMPILE], check=True)


def test_an_option_with_another_name_is_refused_with_the_nearest_one():
    with pytest.raises(UnknownName, match="'batchfirst'; did you mean 'batch_first'"):
        variants.as_multihead("mha", 8, 2, batchfirst=True)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize("dropout", [-1, 2.0, float("nan"), "x", None])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(InvalidConfig, match="dropout is a probability"):
        variants.as_multihead("mha", 8, 2, dropout=dropout)


@pytest.mark.parametrize("kind", ["padding", "energies"])
def test_a_mask_may_come_with_a_long_text_that_is_answered_in_parts(kind):
    """Parts have the keys up to their queries, and a mask has all."""
    mine = variants.as_multihead("scaled_dot", 32, 4, causal=True, batch_first=True)
    mine = mine.double().eval()
    x = drawn(9, 512, 32)
    more = {"key_padding_mask": torch.arange(512).expand(9, -1) < 3}
    if kind == "energies":
        more = {"attn_mask": torch.full((512, 512), float("-inf")).triu(1) + drawn(512, 512)}
    with torch.no_grad():
        found, _ = mine(x, x, x, need_weights=False, **more)
        wanted, _ = mine(x, x, x, need_weights=True, **more)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
