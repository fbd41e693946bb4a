"""No word sees a later one: gradients to the future are exactly zero, to the past they are not."""

import pytest
import torch

from bench.api.trace import Mode
from tasks.backbones.transformer_blocks import ShortConvolution

DECODERS = [
    ("scaled_dot", ""),
    ("scaled_dot", ",short_convolution=3"),
    ("scaled_dot", ",feed_convolution=4"),
    ("additive", ",short_convolution=4,norm=post"),
    ("shaw_rpr", ""),
    ("linear_attention", ",feed_forward=0"),
    ("learned", ",residual=false"),
]


def gradients(backbone, table, batch) -> torch.Tensor:
    """|d logits[t] / d embedding[s]| summed over widths, T x T, of the first row."""
    kept = []
    hook = table.register_forward_hook(
        lambda _module, _args, out: kept.append(out.detach().requires_grad_()) or kept[-1]
    )
    trace = backbone(batch, Mode())
    hook.remove()
    said = backbone.emit(trace.states, trace.context, trace.embedded)
    steps = said.shape[1]
    found = []
    for t in range(steps):
        (slope,) = torch.autograd.grad(said[0, t].sin().sum(), kept[-1], retain_graph=True)
        found.append(slope[0].abs().sum(-1))
    return torch.stack(found)


def assert_causal(slopes: torch.Tensor) -> None:
    assert (slopes.triu(1) == 0).all(), "the future is visible"
    past = torch.ones_like(slopes).tril().bool()
    assert (slopes[past] > 0).all(), "a word of the past is invisible"


@pytest.mark.parametrize(("variant", "options"), DECODERS)
def test_transformer_decoder_is_causal(variant, options, built):
    backbone, _, batch = built(
        variant,
        task="offset[length=7,beyond=9]",
        backbone=f"transformer_decoder[width=16,heads=2,layers=2{options}]",
    )
    assert_causal(gradients(backbone, backbone.embedding, batch))


@pytest.mark.parametrize("slot", ["cross", "causal", "self"])
def test_the_decoder_of_transformer_seq2seq_is_causal(slot, built):
    backbone, _, batch = built(
        "scaled_dot",
        task="transduction[min_length=5,max_length=5,beyond=6]",
        backbone="transformer_seq2seq[width=16,heads=2,layers=2,short_convolution=3]",
        slot=slot,
    )
    assert_causal(gradients(backbone, backbone.target_embedding, batch))


RECURRENT = (
    "luong[input_feeding=true]",
    "luong[cell=lstm,layers=2]",
    "bahdanau",
    "none_input",
    "lstmn",
    "lstmn[fusion=deep]",
    "las",
    "gated",
    "gnmt",
)


@pytest.mark.parametrize("decoder", RECURRENT)
def test_the_recurrent_decoder_is_causal(decoder, built):
    backbone, _, batch = built(
        task="transduction[min_length=4,max_length=4,beyond=6]",
        backbone=f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]",
    )
    assert_causal(gradients(backbone, backbone.target_embedding, batch))


@pytest.mark.parametrize("kernel", [1, 2, 4])
def test_short_convolution_in_pieces_equals_the_whole_and_its_own_sum(kernel, near):
    rng = torch.Generator().manual_seed(0)
    layer = ShortConvolution(3, kernel).double()
    x = torch.randn(2, 7, 3, generator=rng, dtype=torch.float64)
    whole, _ = layer(x, None)
    past, parts = None, []
    for piece in x.split([1, 1, 3, 2], 1):
        out, past = layer(piece, past)
        assert past.shape[1] == kernel - 1
        parts.append(out)
    near(torch.cat(parts, 1), whole)
    for t in range(7):
        mixed = x[:, t] + layer.mix.bias
        for back in range(min(kernel, t + 1)):
            mixed = mixed + x[:, t - back] * layer.mix.weight[:, 0, kernel - 1 - back]
        near(whole[:, t], mixed)
