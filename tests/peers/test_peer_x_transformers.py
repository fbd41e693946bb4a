"""x-transformers: what it does to energies and weights, and its positions."""

import pytest
import torch

import variants
from tests.peers.agreement import (
    attend,
    below_heads,
    copy_weights,
    draw_parameters,
    drawn,
    peer,
)

attending = peer("x_transformers.attend", "x-transformers")
layers = peer("x_transformers.x_transformers", "x-transformers")

FLOAT = torch.float32
HEADS, LENGTH, WIDTH = 4, 11, 6


def heads_of(count=HEADS, seed=0):
    return drawn(2, count, LENGTH, WIDTH, seed=seed, dtype=FLOAT)


def three():
    found = [drawn(2, HEADS, LENGTH, WIDTH, seed=s, dtype=FLOAT) for s in range(3)]
    return dict(zip(("query", "key", "value"), found, strict=True))


def below(selector, **options):
    return below_heads(selector, heads=HEADS, width=WIDTH, dtype=FLOAT, **options)


@pytest.mark.parametrize(
    ("selector", "options"),
    [
        ("logit_softcap[cap=1.5]", {"softclamp_logits": True, "logit_softclamp_value": 1.5}),
        ("top_k[k=3]", {"sparse_topk": 3}),
        ("logistic_sigmoid", {"sigmoid": True}),
        ("softmax_off_by_one", {"add_zero_kv": True}),
        ("selective", {"selective": True}),
    ],
)
def test_what_happens_to_energies_is_what_x_transformers_does(agree, selector, options):
    inputs = three()
    theirs = attending.Attend(causal=True, heads=HEADS, **options)
    agree(
        selector,
        "x-transformers",
        "causal",
        attend(below(selector), **inputs),
        theirs(**{name[0]: x for name, x in inputs.items()})[0],
        inputs=inputs,
    )


def test_learned_sinks_are_those_of_x_transformers(agree):
    inputs = three()
    theirs = attending.Attend(causal=True, heads=HEADS, head_learned_sink=True)
    mine = below("learned_sink")
    copy_weights({theirs.head_attn_sink: mine.normalizer.sink.flatten()})
    agree(
        "learned_sink",
        "x-transformers",
        "causal, gradient of the sinks",
        attend(mine, **inputs),
        theirs(*inputs.values())[0],
        inputs={**inputs, "sink": (mine.normalizer.sink, theirs.head_attn_sink)},
    )


def test_talking_heads_are_those_of_x_transformers(agree):
    inputs = three()
    theirs = attending.Attend(
        causal=True, heads=HEADS, pre_talking_heads=True, post_talking_heads=True
    )
    mine = below("talking_heads")
    before = mine.before - torch.eye(HEADS)
    copy_weights(
        {
            theirs.pre_softmax_talking_heads.weight: before[..., None, None],
            theirs.post_softmax_talking_heads.weight: mine.after[..., None, None],
        }
    )
    agree(
        "talking_heads",
        "x-transformers",
        "causal, gradients of both maps",
        attend(mine, **inputs),
        theirs(*inputs.values())[0],
        inputs={
            **inputs,
            "before": (mine.before, theirs.pre_softmax_talking_heads.weight),
            "after": (mine.after, theirs.post_softmax_talking_heads.weight),
        },
        note="its map before the softmax is added to the energies; ours holds the identity, too",
    )


def test_contextual_positions_are_those_of_x_transformers(agree):
    inputs = three()
    cope = layers.CoPE(WIDTH, HEADS, 5)
    theirs = attending.Attend(causal=True, heads=HEADS, cope=cope)
    mine = below("cope[places=5]")
    table = mine.positions[0].table
    copy_weights({cope.pos_emb: table})
    agree(
        "cope[places=5]",
        "x-transformers",
        "11 keys on 5 places, gradient of the table",
        attend(mine, **inputs),
        theirs(*inputs.values())[0],
        inputs={**inputs, "table": (table, cope.pos_emb)},
    )


@pytest.mark.parametrize("heads", [4, 6])
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_alibi_is_that_of_x_transformers(agree, heads, regime):
    query, key, value = (heads_of(heads, seed) for seed in range(3))
    theirs = attending.Attend(causal=regime == "causal", heads=heads)
    bias = layers.AlibiPositionalBias(heads)(LENGTH, LENGTH)
    mine = below_heads("alibi", heads=heads, width=WIDTH, dtype=FLOAT, regime=regime)
    agree(
        "alibi",
        "x-transformers",
        f"{heads} heads, {'causal' if regime == 'causal' else 'both directions'}",
        attend(mine, query, key, value),
        theirs(query, key, value, attn_bias=bias)[0],
        inputs={"query": query, "key": key, "value": value},
    )


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_the_bias_of_t5_is_that_of_x_transformers(agree, regime):
    inputs = three()
    causal = regime == "causal"
    bias = layers.RelativePositionBias(1.0, causal, num_buckets=8, max_distance=9, heads=HEADS)
    mine = below("t5_bias[buckets=8,far=9]", regime=regime)
    table = mine.positions[0].table
    copy_weights({bias.relative_attention_bias.weight: table.mT})
    agree(
        "t5_bias[buckets=8,far=9]",
        "x-transformers",
        "causal" if causal else "both directions",
        attend(mine, **inputs),
        attending.Attend(causal=causal, heads=HEADS)(
            *inputs.values(), attn_bias=bias(LENGTH, LENGTH)
        )[0],
        inputs=inputs,
    )


def test_forgetting_attention_is_the_data_dependent_alibi_of_x_transformers(agree):
    inputs = three()
    gates = drawn(2, LENGTH, HEADS, seed=8, dtype=FLOAT)
    theirs = layers.DataDependentAlibi(HEADS, HEADS)
    mine = below("fox")
    linear = theirs.to_forget_gates[0]
    copy_weights({linear.weight: torch.eye(HEADS), linear.bias: mine.positions[0].bias})
    agree(
        "fox",
        "x-transformers",
        "gates given, gradients of gates and biases",
        attend(mine, **inputs, key_extras={"forget": gates.transpose(1, 2)[..., None]}),
        attending.Attend(causal=True, heads=HEADS)(*inputs.values(), attn_bias=theirs(gates))[0],
        inputs={**inputs, "gates": gates, "bias": (mine.positions[0].bias, linear.bias)},
    )


@pytest.mark.parametrize(("name", "shrinks"), [("rope", False), ("xpos", True)])
def test_rotary_positions_are_those_of_x_transformers(agree, name, shrinks):
    inputs = three()
    theirs = layers.RotaryEmbedding(WIDTH, use_xpos=shrinks)
    angles, scale = theirs.forward_from_seq_len(LENGTH)
    query = layers.apply_rotary_pos_emb(inputs["query"], angles, scale)
    key = layers.apply_rotary_pos_emb(inputs["key"], angles, 1 / scale)
    agree(
        name,
        "x-transformers",
        "causal, neighbors are pairs",
        attend(below(name), **inputs),
        attending.Attend(causal=True, heads=HEADS)(query, key, inputs["value"])[0],
        inputs=inputs,
    )


def test_shared_keys_of_x_transformers_are_ours_in_another_order_of_heads(agree):
    """Its query head h reads key head h mod G; the paper and Llama read h G / H."""
    query = heads_of()
    key, value = heads_of(2, 1), heads_of(2, 2)
    theirs = attending.Attend(causal=True, heads=HEADS)
    order = [0, 2, 1, 3]
    mine = below("scaled_dot", kv_heads=2)
    agree(
        "gqa",
        "x-transformers",
        "2 key heads of 4",
        attend(mine, query, key, value),
        theirs(query[:, order], key, value)[0][:, order],
        inputs={"query": query, "key": key, "value": value},
        note="its heads take turns over key heads, where neighbors share one in the paper; heads "
        "are put in order first",
    )


def test_sigmoid_attention_is_the_sigmoid_of_x_transformers_with_our_bias(agree):
    inputs = three()
    counted = torch.arange(1, LENGTH + 1, dtype=FLOAT).log()
    theirs = attending.Attend(causal=True, heads=HEADS, sigmoid=True)
    agree(
        "sigmoid_attention",
        "x-transformers",
        "causal",
        attend(below("sigmoid_attention"), **inputs),
        theirs(*inputs.values(), attn_bias=-counted[:, None].expand(LENGTH, LENGTH))[0],
        inputs=inputs,
        note="the logarithm of the number of keys is handed in as a bias",
    )


@pytest.mark.parametrize(
    ("selector", "options"),
    [
        ("qk_norm[norm=l2]", {"qk_norm": True, "qk_norm_scale": 7}),
        ("gated_attention[gate=elementwise]", {"gate_values": True}),
        ("gated_attention[gate=headwise]", {"gate_value_heads": True}),
    ],
)
def test_heads_are_those_of_x_transformers(agree, selector, options):
    dim = HEADS * WIDTH
    theirs = layers.Attention(dim, dim_head=WIDTH, heads=HEADS, causal=True, **options)
    draw_parameters(theirs)
    mine = variants.build(selector, dim=dim, heads=HEADS, regime="causal")
    heads = mine.heads
    pairs = {
        heads.to_query.weight: theirs.to_q.weight,
        heads.to_key.weight: theirs.to_k.weight,
        heads.to_value.weight: theirs.to_v.weight,
        heads.to_output.weight: theirs.to_out.weight,
    }
    if "qk_norm" in options:
        copy_weights({heads.norm.scale: torch.tensor(7.0)})
    elif "gate_values" in options:
        pairs[heads.to_gate.weight] = theirs.to_v_gate.weight
    else:
        pairs[heads.to_gate.weight] = theirs.to_v_head_gate.weight
        torch.nn.init.zeros_(theirs.to_v_head_gate.bias)
    copy_weights(pairs)
    x = drawn(2, LENGTH, dim, seed=3, dtype=FLOAT)
    agree(
        selector,
        "x-transformers",
        "causal, gradients of all maps",
        mine(x),
        theirs(x),
        inputs={"x": x, **{str(at): pair for at, pair in enumerate(pairs.items())}},
    )


@pytest.mark.parametrize(
    ("selector", "options", "read"),
    [
        ("hardmax", {"hard": True}, "train"),
        ("gaussian_kernel[beta=0.6,learned=false]", {"l2_distance": True, "scale": 0.3}, None),
    ],
)
def test_older_attention_is_that_of_x_transformers(agree, selector, options, read):
    inputs = three()
    theirs = attending.Attend(causal=True, heads=HEADS, **options)
    agree(
        selector,
        "x-transformers",
        "causal" + (", straight-through gradient" if read else ""),
        attend(below(selector), **inputs, read=read),
        theirs(*inputs.values())[0],
        inputs=inputs,
    )
