"""Libraries of one mechanism each: rotary-embedding-torch, performer-pytorch, and others."""

import pytest
import torch

import variants
from tests.peers.agreement import attend, below_heads, copy_weights, drawn, peer

FLOAT = torch.float32
HEADS, LENGTH, WIDTH = 3, 12, 6


def three(dtype=torch.float64):
    found = [drawn(2, HEADS, LENGTH, WIDTH, seed=seed, dtype=dtype) for seed in range(3)]
    return dict(zip(("query", "key", "value"), found, strict=True))


def softmax_attention(query, key, value):
    energy = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(
        torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), float("-inf")
    )
    return energy.softmax(-1) @ value


@pytest.mark.parametrize(
    ("selector", "options"),
    [
        ("rope", {}),
        ("rope[base=500.0]", {"theta": 500.0}),
        ("rope[fraction=0.7]", {"dim": 4}),
        ("rope[factor=4.0,scaling=linear]", {"interpolate_factor": 4.0}),
        ("rope[factor=4.0,scaling=ntk]", {"theta_rescale_factor": 4.0}),
    ],
)
def test_rotary_positions_are_those_of_rotary_embedding_torch(agree, selector, options):
    rotary = peer("rotary_embedding_torch", "rotary-embedding-torch")
    theirs = rotary.RotaryEmbedding(**{"dim": WIDTH, **options, "cache_if_possible": False})
    inputs = three(FLOAT)
    turned = [theirs.rotate_queries_or_keys(inputs[name]) for name in ("query", "key")]
    mine = below_heads(selector, heads=HEADS, width=WIDTH, dtype=FLOAT)
    agree(
        selector,
        "rotary-embedding-torch",
        "causal softmax attention of turned queries and keys",
        attend(mine, **inputs),
        softmax_attention(*turned, inputs["value"]),
        inputs=inputs,
    )


def test_xpos_is_that_of_rotary_embedding_torch(agree):
    rotary = peer("rotary_embedding_torch", "rotary-embedding-torch")
    theirs = rotary.RotaryEmbedding(dim=WIDTH, use_xpos=True, cache_if_possible=False)
    inputs = three(FLOAT)
    turned = theirs.rotate_queries_and_keys(inputs["query"], inputs["key"])
    mine = below_heads("xpos", heads=HEADS, width=WIDTH, dtype=FLOAT)
    agree(
        "xpos",
        "rotary-embedding-torch",
        "causal softmax attention of turned queries and keys",
        attend(mine, **inputs),
        softmax_attention(*turned, inputs["value"]),
        inputs=inputs,
    )


@pytest.mark.parametrize("regime", ["self", "causal"])
def test_random_features_are_those_of_performer_pytorch(agree, regime):
    performer = peer("performer_pytorch.performer_pytorch", "performer-pytorch")
    inputs = three()
    mine = below_heads("performer[directions=16]", heads=HEADS, width=WIDTH, regime=regime)
    # what keeps sums from zero is left out: 1e-4 in its features, 1e-30 in our sum of weights
    mine.eps = 0.0
    options = {"projection_matrix": mine.directions, "eps": 0.0}
    query = performer.softmax_kernel(inputs["query"], is_query=True, **options)
    key = performer.softmax_kernel(inputs["key"], is_query=False, **options)
    if regime == "causal":
        theirs = performer.causal_linear_attention_noncuda(query, key, inputs["value"], eps=0.0)
    else:
        theirs = performer.linear_attention(query, key, inputs["value"])
    agree(
        "performer[directions=16]",
        "performer-pytorch",
        "causal" if regime == "causal" else "both directions",
        attend(mine, **inputs),
        theirs,
        inputs=inputs,
        note="equal directions; without its 1e-4 in every feature and our 1e-30 in the sum",
    )


def test_low_rank_keys_are_those_of_linformer(agree):
    linformer = peer("linformer.linformer", "linformer")
    dim = HEADS * WIDTH
    theirs = linformer.LinformerSelfAttention(dim, LENGTH, k=5, heads=HEADS).double()
    chosen = "linformer[longest=12,rank=5]"
    mine = variants.build(chosen, dim=dim, heads=HEADS, regime="self", projection_bias=True)
    mine = mine.double()
    torch.nn.init.zeros_(theirs.to_out.bias)
    for layer in (
        mine.heads.to_query,
        mine.heads.to_key,
        mine.heads.to_value,
        mine.heads.to_output,
    ):
        torch.nn.init.zeros_(layer.bias)
    pairs = {
        mine.heads.to_query.weight: theirs.to_q.weight,
        mine.heads.to_key.weight: theirs.to_k.weight,
        mine.heads.to_value.weight: theirs.to_v.weight,
        mine.heads.to_output.weight: theirs.to_out.weight,
    }
    copy_weights(
        {
            **pairs,
            mine.variant.mix_keys: theirs.proj_k.mT,
            mine.variant.mix_values: theirs.proj_v.mT,
        }
    )
    x = drawn(2, LENGTH, dim, seed=4)
    agree(
        chosen,
        "linformer",
        "12 places to 5, gradients of the four maps",
        mine(x),
        theirs(x),
        inputs={"x": x, **{str(at): pair for at, pair in enumerate(pairs.items())}},
    )


def test_landmarks_are_those_of_nystrom_attention(agree):
    nystrom = peer("nystrom_attention.nystrom_attention", "nystrom-attention")
    # one head and one row, because its inverse begins at a number of the whole batch
    theirs = nystrom.NystromAttention(
        WIDTH, dim_head=WIDTH, heads=1, num_landmarks=3, residual_conv_kernel=5
    ).double()
    chosen = "nystrom[iterations=6,kernel=5,landmarks=3]"
    mine = variants.build(chosen, dim=WIDTH, heads=1, regime="self").double()
    torch.nn.init.zeros_(theirs.to_out[0].bias)
    query, key, value = theirs.to_qkv.weight.chunk(3)
    copy_weights(
        {
            mine.heads.to_query.weight: query,
            mine.key_maps["landmark"].outward.weight: query,
            mine.heads.to_key.weight: key,
            mine.heads.to_value.weight: value,
            mine.heads.to_output.weight: theirs.to_out[0].weight,
            mine.variant.taps: theirs.res_conv.weight[:, 0, :, 0],
        }
    )
    x = drawn(1, LENGTH, WIDTH, seed=4)
    agree(
        chosen,
        "nystrom-attention",
        "one head, 12 places, 3 landmarks",
        mine(x),
        theirs(x),
        inputs={
            "x": x,
            "output": (mine.heads.to_output.weight, theirs.to_out[0].weight),
            "taps": (mine.variant.taps, theirs.res_conv.weight),
        },
    )


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize(
    ("selector", "look", "exact"),
    [("block_local[block=4]", 0, False), ("sliding_window[window=5]", 1, True)],
)
def test_local_attention_is_that_of_local_attention(agree, regime, selector, look, exact):
    local = peer("local_attention", "local-attention")
    causal = regime == "causal"
    theirs = local.LocalAttention(
        4,
        causal=causal,
        look_backward=look,
        look_forward=0 if causal else look,
        exact_windowsize=exact,
        use_rotary_pos_emb=False,
    )
    inputs = three()
    mine = below_heads(selector, heads=HEADS, width=WIDTH, regime=regime)
    agree(
        selector,
        "local-attention",
        "12 places, " + ("causal" if causal else "both directions"),
        attend(mine, **inputs),
        theirs(*inputs.values()),
        inputs=inputs,
    )


def test_scalable_softmax_is_that_of_scalable_softmax_row_by_row(agree):
    """It counts all keys of a row, so every query gets a row of the keys that it may see."""
    scalable = peer("scalable_softmax", "scalable-softmax")
    inputs, mine = three(), below_heads("ssmax", heads=HEADS, width=WIDTH)
    energy = inputs["query"] @ inputs["key"].mT * WIDTH**-0.5
    heads = []
    for head in range(HEADS):
        softmax = scalable.ScalableSoftmax(learn_scaling=False)
        softmax.s = mine.normalizer.scale[head, 0, 0]
        rows = [
            softmax(energy[:, head, at : at + 1, : at + 1]) @ inputs["value"][:, head, : at + 1]
            for at in range(LENGTH)
        ]
        heads.append(torch.cat(rows, 1))
    agree(
        "ssmax",
        "scalable-softmax",
        f"{LENGTH} places, gradient of the scale",
        attend(mine, **inputs),
        torch.stack(heads, 1),
        inputs={**inputs, "scale": mine.normalizer.scale},
    )


@pytest.mark.parametrize("regime", ["self", "causal"])
def test_hopfield_retrieval_is_that_of_the_layers_in_difflayers(agree, regime):
    functional = peer("difflayers.functional", "difflayers")
    steps, beta, inputs = 3, 1.7, three()
    name = f"hopfield[beta={beta},steps={steps}]"
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    by_place = [x.flatten(0, 1).transpose(0, 1) for x in inputs.values()]
    theirs, *_ = functional.hopfield_core_forward(
        *by_place,
        embed_dim_to_check=WIDTH,
        num_heads=1,
        in_proj_weight=None,
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=None,
        out_proj_bias=None,
        attn_mask=hidden if regime == "causal" else None,
        query_as_static=True,
        key_as_static=True,
        value_as_static=True,
        scaling=beta * WIDTH**-0.5,
        update_steps_max=steps - 1,
        update_steps_eps=1e-30,
    )
    agree(
        name,
        "difflayers",
        "3 softmaxes, " + ("causal" if regime == "causal" else "both directions"),
        attend(below_heads(name, heads=HEADS, width=WIDTH, regime=regime), **inputs),
        theirs.transpose(0, 1).unflatten(0, (2, HEADS)),
        inputs=inputs,
        note="its core is that of the authors' layers, which are in no package index",
    )
