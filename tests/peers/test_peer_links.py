"""Links across layers: shared keys and values of Gemma 4, value residuals of x-transformers."""

from types import SimpleNamespace

import pytest
from torch import nn

import variants
from tests.peers.agreement import copy_weights, draw_parameters, peer
from tests.peers.model_attention import (
    HEAD_WIDTH,
    HEADS,
    LENGTH,
    PAIRS,
    WIDTH,
    causal_mask,
    no_turn,
    states,
)

gemma4 = peer("transformers.models.gemma4.modeling_gemma4")
x_transformers = peer("x_transformers.x_transformers", "x-transformers")


def ours(selector, theirs, names):
    """Two layers of ours with the maps of theirs, and these maps as pairs."""
    layers, pairs = [], {}
    for below, other in enumerate(theirs):
        place = {"regime": "causal", "layers_below": below, "attention_only": True}
        layer = variants.build(selector, dim=WIDTH, heads=HEADS, **place).eval()
        for one, two in names.items():
            if hasattr(layer.heads, one):  # a layer that reads another one has fewer maps
                pair = getattr(layer.heads, one).weight, getattr(other, two).weight
                pairs[f"{one} of layer {below}"] = pair
        layers.append(layer)
    copy_weights(dict(pairs.values()))
    return layers, pairs


def both(layers, x, y):
    """Output of the second layer, which reads something of the first."""
    first, second = layers
    return second(y, below=first.answer_all(x, x, want_memory=True)[1].memory)


def test_layers_that_share_keys_are_those_of_gemma4(agree):
    config = SimpleNamespace(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        attention_bias=False,
        attention_dropout=0.0,
        attention_k_eq_v=False,
        use_bidirectional_attention=None,
        layer_types=["full_attention", "full_attention"],
        kv_sharing_modes=["store", "reuse"],
        per_layer_config=[SimpleNamespace(head_dim=HEAD_WIDTH, num_key_value_heads=HEADS)] * 2,
        rms_norm_eps=1e-6,
        _attn_implementation="eager",
    )
    theirs = [gemma4.Gemma4TextAttention(config, layer_idx=at).eval() for at in range(2)]
    for at, layer in enumerate(theirs):
        draw_parameters(layer, seed=10 * at)
        layer.scaling = HEAD_WIDTH**-0.5
        for norm in ("q_norm", "k_norm", "v_norm"):
            setattr(layer, norm, nn.Identity())
    layers, pairs = ours("cla", theirs, PAIRS)
    assert len(pairs) == 6, "the second layer has no maps to keys and values"
    x, y, kept = states(), states(seed=1), {}
    theirs[0](x, no_turn(), causal_mask(), kept)
    wanted, _ = theirs[1](y, no_turn(), causal_mask(), kept)
    del pairs["to_query of layer 0"], pairs["to_output of layer 0"]  # the second reads neither
    agree(
        "cla",
        "transformers (Gemma 4)",
        f"two layers, {LENGTH} places",
        both(layers, x, y),
        wanted,
        inputs={"x": x, "y": y, **pairs},
        note="without its norms, and with our scale of energies",
    )


@pytest.mark.parametrize(("selector", "own"), [("value_residual", 0.5), ("svformer", 0.0)])
def test_values_of_the_first_layer_are_read_as_in_x_transformers(agree, selector, own):
    theirs = [
        x_transformers.Attention(WIDTH, heads=HEADS, dim_head=HEAD_WIDTH, causal=True).eval()
        for _ in range(2)
    ]
    for at, layer in enumerate(theirs):
        draw_parameters(layer, seed=10 * at)
    theirs[1].to_value_residual_mix = lambda x: own
    names = {"to_query": "to_q", "to_key": "to_k", "to_value": "to_v", "to_output": "to_out"}
    layers, pairs = ours(selector, theirs, names)
    x, y = states(), states(seed=1)
    _, kept = theirs[0](x, return_intermediates=True)
    wanted = theirs[1](y, value_residual=kept.values)
    for name in ("to_query", "to_key", "to_output"):
        del pairs[f"{name} of layer 0"]
    agree(
        selector,
        "x-transformers",
        f"two layers, {LENGTH} places, share {own} of a layer's own values",
        both(layers, x, y),
        wanted,
        inputs={"x": x, "y": y, **pairs},
        note="its share is fixed here, and has no gradient",
    )
