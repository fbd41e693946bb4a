"""Recurrent layers of transformers: what Mamba-2, Qwen3-Next and Kimi Linear compute in torch."""

import inspect

import pytest
import torch
from torch.nn import functional

import variants
from tests.peers.agreement import (
    attend,
    below_heads,
    copy_weights,
    draw_parameters,
    drawn,
    peer,
)

mamba = peer("transformers.models.mamba2.modeling_mamba2")
qwen = peer("transformers.models.qwen3_next.modeling_qwen3_next")
kimi = peer("transformers.models.kimi_linear.modeling_kimi_linear")

FLOAT = torch.float32
HEADS, LENGTH, WIDTH, VALUE = 3, 70, 6, 5


def given(*widths):
    """Queries, keys, values and further numbers of heads, `B H L w`."""
    return [
        drawn(2, HEADS, LENGTH, width, seed=seed, dtype=FLOAT) for seed, width in enumerate(widths)
    ]


def by_time(*tensors):
    """`B L H w`, as theirs."""
    return [x.transpose(1, 2) for x in tensors]


def below(selector):
    made = below_heads(selector, heads=HEADS, width=WIDTH, value_width=VALUE, dtype=FLOAT)
    shorten(made.bias)
    return made


def shorten(bias, by=3):
    """Steps as short as in a network: sums of long ones cost float32 digits in every chunk."""
    with torch.no_grad():
        bias.sub_(by)


def in_torch(function):
    """Beneath a wrapper that prefers kernels of fla, which need a GPU."""
    return inspect.unwrap(function)


def log_decay(said, mine):
    return -mine.rate.exp()[:, None, None] * functional.softplus(said + mine.bias[:, None])


def test_the_scan_of_mamba2_is_that_of_transformers(agree):
    query, key, value, said = given(WIDTH, WIDTH, VALUE, 1)
    mine = below("mamba2_ssd")
    states, step, write, read = by_time(value, said, key, query)
    theirs = in_torch(mamba.mamba2_chunk_scan)(
        states,
        step[..., 0],
        -mine.rate.exp(),
        write,
        read,
        chunk_size=16,
        D=mine.skip,
        dt_bias=mine.bias[:, 0],
        dt_softplus=True,
    )
    agree(
        "mamba2_ssd",
        "transformers (Mamba-2)",
        "70 places, gradients of all parameters",
        attend(mine, query, key, value, key_extras={"step": said}),
        theirs.transpose(1, 2),
        inputs={
            "query": query,
            "key": key,
            "value": value,
            "step": said,
            "rate": mine.rate,
            "bias": mine.bias,
            "skip": mine.skip,
        },
    )


@pytest.mark.parametrize("form", ["recurrent", "chunk"])
def test_the_gated_delta_rule_is_that_of_qwen3_next(agree, form):
    query, key, value, beta, step = given(WIDTH, WIDTH, VALUE, 1, 1)
    mine = below("gated_deltanet")
    asked, held, read, share, rate = by_time(query, key, value, beta, log_decay(step, mine))
    theirs, _ = in_torch(getattr(qwen, f"torch_{form}_gated_delta_rule"))(
        asked,
        held,
        read,
        g=rate[..., 0],
        beta=share.sigmoid()[..., 0],
        use_qk_l2norm_in_kernel=True,
    )
    agree(
        "gated_deltanet",
        "transformers (Qwen3-Next)",
        f"70 places, {form} form, gradients of gates and parameters",
        attend(mine, query, key, value, key_extras={"beta": beta, "step": step}),
        theirs.transpose(1, 2) * WIDTH**0.5,
        inputs={
            "query": query,
            "key": key,
            "value": value,
            "beta": beta,
            "step": step,
            "rate": mine.rate,
            "bias": mine.bias,
        },
        note="its queries are divided by the root of the width, which the norm behind it cancels",
    )


@pytest.mark.parametrize("form", ["recurrent", "chunk"])
def test_kimi_delta_attention_is_that_of_kimi_linear(agree, form):
    query, key, value, beta, step = given(WIDTH, WIDTH, VALUE, 1, WIDTH)
    mine = below("kda")
    asked, held, read, share, rate = by_time(query, key, value, beta, log_decay(step, mine))
    theirs, _ = in_torch(getattr(kimi, f"{form}_kimi_delta_attention"))(
        asked,
        held,
        read,
        rate,
        share.sigmoid()[..., 0],
        initial_state=None,
        output_final_state=False,
        use_qk_l2norm_in_kernel=True,
    )
    agree(
        "kda",
        "transformers (Kimi Linear)",
        f"70 places, {form} form, gradients of gates and parameters",
        attend(mine, query, key, value, key_extras={"beta": beta, "step": step}),
        theirs.transpose(1, 2) * WIDTH**0.5,
        inputs={
            "query": query,
            "key": key,
            "value": value,
            "beta": beta,
            "step": step,
            "rate": mine.rate,
            "bias": mine.bias,
        },
        note="its queries are divided by the root of the width, which the norm behind it cancels",
    )


MODEL = 24
BLOCK_HEADS, BLOCK_WIDTH = 4, 6
BLOCK_LENGTH = 20
"""Behind a norm, rounding errors of long sums would be larger; the scans above are longer."""


def block(selector):
    """One of our layers, with its convolutions, norm and gate."""
    mine = variants.build(selector, dim=MODEL, regime="causal").eval()
    draw_parameters(mine, seed=30)
    return mine


def pairs_of_heads(mine, theirs):
    """The parameters that stand in one piece on both sides."""
    return {
        mine.heads.gain: theirs.norm.weight if hasattr(theirs, "norm") else theirs.o_norm.weight,
        mine.heads.taps: theirs.conv1d.weight.squeeze(1),
        mine.heads.to_output.weight: (
            theirs.out_proj.weight if hasattr(theirs, "out_proj") else theirs.o_proj.weight
        ),
    }


def test_the_whole_layer_of_gated_deltanet_is_that_of_qwen3_next(agree, monkeypatch):
    name = "torch_chunk_gated_delta_rule"
    monkeypatch.setattr(qwen, name, in_torch(getattr(qwen, name)))
    config = qwen.Qwen3NextConfig(
        hidden_size=MODEL,
        linear_num_value_heads=BLOCK_HEADS,
        linear_num_key_heads=BLOCK_HEADS,
        linear_key_head_dim=BLOCK_WIDTH,
        linear_value_head_dim=BLOCK_WIDTH,
        # in front of the norm, their outputs are ours divided by the root of the width
        rms_norm_eps=1e-5 / BLOCK_WIDTH,
    )
    theirs = qwen.Qwen3NextGatedDeltaNet(config, layer_idx=0).eval()
    draw_parameters(theirs)
    shorten(theirs.dt_bias)
    mine = block("gated_deltanet[head=short_convolution[heads=4]]")
    four = theirs.in_proj_qkvz.weight.view(BLOCK_HEADS, 4, BLOCK_WIDTH, MODEL).unbind(1)
    beta, step = theirs.in_proj_ba.weight.view(BLOCK_HEADS, 2, MODEL).unbind(1)
    layers = ("to_query", "to_key", "to_value", "to_gate")
    copy_weights(
        {
            getattr(mine.heads, layer).weight: part.flatten(0, 1)
            for layer, part in zip(layers, four, strict=True)
        }
    )
    pairs = {mine.variant.rate: theirs.A_log, mine.variant.bias: theirs.dt_bias[:, None]}
    maps = {"beta": beta, "step": step}
    copy_weights({mine.key_maps[at].outward.weight: part for at, part in maps.items()})
    copy_weights({**pairs, **pairs_of_heads(mine, theirs)})
    x = drawn(2, BLOCK_LENGTH, MODEL, dtype=FLOAT)
    agree(
        "gated_deltanet[head=short_convolution]",
        "transformers (Qwen3-Next)",
        "the whole layer, with convolutions, norm and gate",
        mine(x),
        theirs(x),
        inputs={
            "x": x,
            "rate": (mine.variant.rate, theirs.A_log),
            "bias": (mine.variant.bias, theirs.dt_bias),
            "taps": (mine.heads.taps, theirs.conv1d.weight),
            "gain": (mine.heads.gain, theirs.norm.weight),
        },
    )


def test_the_whole_layer_of_kimi_delta_attention_is_that_of_kimi_linear(agree, monkeypatch):
    name = "chunk_kimi_delta_attention"
    monkeypatch.setattr(kimi, name, in_torch(getattr(kimi, name)))
    config = kimi.KimiLinearConfig(
        hidden_size=MODEL,
        num_hidden_layers=4,
        linear_num_heads=BLOCK_HEADS,
        linear_head_dim=BLOCK_WIDTH,
        rms_norm_eps=1e-5 / BLOCK_WIDTH,
    )
    theirs = kimi.KimiLinearDeltaAttention(config, layer_idx=0).eval()
    draw_parameters(theirs)
    shorten(theirs.forget_gate.dt_bias)
    mine = block("kda[head=short_convolution[gate=sigmoid,heads=4]]")
    step = mine.key_maps["step"]
    copy_weights(
        {
            mine.heads.to_query.weight: theirs.q_proj.weight,
            mine.heads.to_key.weight: theirs.k_proj.weight,
            mine.heads.to_value.weight: theirs.v_proj.weight,
            # their gate has a narrow vector between two maps
            mine.heads.to_gate.weight: theirs.g_b_proj.weight @ theirs.g_a_proj.weight,
            mine.key_maps["beta"].outward.weight: theirs.b_proj.weight,
            step.inward.weight: theirs.forget_gate.f_a_proj.weight,
            step.outward.weight: theirs.forget_gate.f_b_proj.weight,
            mine.variant.rate: theirs.forget_gate.A_log.flatten(),
            mine.variant.bias: theirs.forget_gate.dt_bias.view(BLOCK_HEADS, -1),
            **pairs_of_heads(mine, theirs),
        }
    )
    x = drawn(2, BLOCK_LENGTH, MODEL, dtype=FLOAT)
    agree(
        "kda[head=short_convolution[gate=sigmoid]]",
        "transformers (Kimi Linear)",
        "the whole layer, with convolutions, norm and gate",
        mine(x),
        theirs(x),
        inputs={
            "x": x,
            "rate": (mine.variant.rate, theirs.forget_gate.A_log),
            "bias": (mine.variant.bias, theirs.forget_gate.dt_bias),
            "taps": (mine.heads.taps, theirs.conv1d.weight),
            "inward": (step.inward.weight, theirs.forget_gate.f_a_proj.weight),
            "gain": (mine.heads.gain, theirs.o_norm.weight),
        },
    )
