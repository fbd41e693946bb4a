"""Code in Git repositories: layers with their projections."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch

import variants
from tests.peers.agreement import copy_weights, draw_parameters, drawn, peer
from tests.peers.repositories import FOX, taken, tie

FLOAT = torch.float32
HEADS, LENGTH, WIDTH = 3, 12, 4
DIM = HEADS * WIDTH
PLACES = f"{LENGTH} places"


def weights(mine, theirs, **names):
    """Pairs of weights of maps, by the name of ours."""
    return {
        one: (getattr(mine, one).weight, getattr(theirs, two).weight) for one, two in names.items()
    }


def past():
    """Zero where a key may be read, minus infinity where it lies in the future."""
    return torch.full((LENGTH, LENGTH), float("-inf")).triu(1)[None, None]


def untouched(*both, **_):
    """Queries and keys that are not turned."""
    return both[:2]


def repeated_once(x, *_, **__):
    """Keys of as many heads as queries."""
    return x


def test_convolved_energies_are_those_of_multi_token_attention(agree, monkeypatch):
    made = torch.tensor

    def on_this_machine(number, *, device, **named):
        return made(number, **named)

    monkeypatch.setattr(torch, "tensor", on_this_machine)
    name = "facebookresearch/RAM"
    module = taken(
        name,
        "projects/mta/mta_transformer.py",
        "MTATransformerArgs Attention",
        apply_rotary_emb=untouched,
        dataclass=dataclass,
        field=field,
        repeat_kv=repeated_once,
    )
    theirs = module.Attention(
        DIM,
        WIDTH,
        HEADS,
        HEADS,
        rope_theta=1e4,
        cache_attention_maps=False,
        max_seq_len=LENGTH,
        mta=module.MTATransformerArgs(use_mta=True, query_kernel_size=3, key_kernel_size=5),
        dropout=0.0,
        layer_id=0,
    )
    draw_parameters(theirs)
    chosen = "multi_token[keys=5,queries=3]"
    mine = variants.build(chosen, dim=DIM, heads=HEADS, regime="causal")
    maps = {"to_query": "wq", "to_key": "wk", "to_value": "wv", "to_output": "wo"}
    pairs = weights(mine.heads, theirs, **maps)
    copy_weights({**dict(pairs.values()), mine.variant.kernel: theirs.mta_kernel[:, 0]})
    x = drawn(2, LENGTH, DIM, seed=40, dtype=FLOAT)
    agree(
        chosen,
        name,
        f"a layer with a kernel of 3 queries and 5 keys, {PLACES}",
        mine(x),
        theirs(x, torch.zeros(LENGTH)),
        inputs={"x": x, "kernel": (mine.variant.kernel, theirs.mta_kernel), **pairs},
        note="one convolution in front of the softmax, and no rotation",
    )


def test_canon_layers_are_those_of_their_author(agree):
    name = "facebookresearch/PhysicsLM4"
    helper = taken(
        name,
        "huggingface/canon_helper.py",
        "ShortConvolution create_canon apply_canon",
        causal_conv1d_fn=None,
        rearrange=peer("einops").rearrange,
        warnings=SimpleNamespace(warn=lambda *_, **__: None),
    )
    attention = taken(
        name,
        "huggingface/modeling_llama_canon.py",
        "LlamaCanonAttention",
        LlamaRotaryEmbedding=lambda config: None,
        apply_canon=helper.apply_canon,
        apply_rotary_pos_emb=untouched,
        create_canon=helper.create_canon,
        repeat_kv=repeated_once,
    ).LlamaCanonAttention
    config = SimpleNamespace(
        attention_bias=False,
        attention_dropout=0.0,
        canon_activation=False,
        canon_bias=False,
        canon_kernel=4,
        canon_residual=True,
        canon_set="AB",
        hidden_size=DIM,
        max_position_embeddings=LENGTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        qk_norm=False,
        rope_theta=1e4,
        rope_version="",
    )
    before, theirs = helper.create_canon(DIM, config), attention(config, layer_idx=0)
    draw_parameters(before, seed=20)
    draw_parameters(theirs)
    chosen = f"canon[heads={HEADS}]"
    mine = variants.build(chosen, dim=DIM, regime="causal")
    maps = {"to_query": "q_proj", "to_key": "k_proj", "to_value": "v_proj", "to_output": "o_proj"}
    pairs = weights(mine.heads, theirs, **maps)
    copy_weights(dict(pairs.values()))
    pairs["before"] = mine.heads.before, before.weight
    pairs["behind"] = mine.heads.behind, theirs.canonB.weight
    copy_weights({one: two[:, 0] for one, two in list(pairs.values())[-2:]})
    x = drawn(2, LENGTH, DIM, seed=40, dtype=FLOAT)
    found, *_ = theirs(
        helper.apply_canon("canonA", before, x, None, 0, None),
        attention_mask=past(),
        position_embeddings=(None, None),
    )
    agree(
        chosen,
        name,
        f"Canon-A in front of attention with Canon-B, {PLACES}",
        mine(x),
        found,
        inputs={"x": x, **pairs},
        note="without rotation",
    )


def forgetting_attention(query, key, value, log_gate, *, sm_scale, **_):
    """The attention, whose kernel has no plain form; `fox` is compared with another library."""
    total = log_gate.cumsum(-1)
    energy = sm_scale * query @ key.mT + total[..., None] - total[..., None, :]
    return (energy + past()).softmax(-1) @ value


def test_the_block_of_forgetting_attention_is_that_of_its_authors(agree):
    """Its kernels need a GPU: norms and steps of shifts have plain forms beside them."""
    name, rearrange = "zhixuan-lin/forgetting-transformer", peer("einops").rearrange
    norms = taken(name, f"{FOX}/layernorm.py", "rms_norm_ref", rearrange=rearrange)
    gated = taken(
        name,
        f"{FOX}/fuse_norm_gate.py",
        "group_norm_gated_ref GroupNormGatedRef",
        rearrange=rearrange,
    )

    def rms_norm(*x, residual_in_fp32, **named):
        return norms.rms_norm_ref(*x, **named)

    wrapped = taken(name, f"{FOX}/layernorm.py", "RMSNorm", rms_norm=rms_norm)

    def token_shift(x, share, _):
        earlier = torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1)
        return module.weight_sum(earlier, x, share[..., None])

    module = taken(
        name,
        f"{FOX}/modeling_forgetting_transformer.py",
        "weight_sum ShiftLinear ForgettingAttentionLayer",
        FusedGroupNormGated=lambda activation, **named: gated.GroupNormGatedRef(**named),
        RMSNorm=wrapped.RMSNorm,
        forgetting_attention=forgetting_attention,
        rearrange=rearrange,
        token_shift=token_shift,
    )
    theirs = module.ForgettingAttentionLayer(
        DIM,
        HEADS,
        use_output_gate=True,
        use_output_norm=True,
        qk_norm=True,
        qk_norm_share_param_across_head=True,
        use_k_shift=True,
        use_v_shift=True,
        layer_idx=0,
    )
    draw_parameters(theirs)
    theirs.q_norm.eps = theirs.k_norm.eps = 1e-6
    chosen = f"fox_pro[heads={HEADS}]"
    mine = variants.build(chosen, dim=DIM, regime="causal")
    heads, (position,) = mine.heads, mine.variant.positions
    shares = theirs.k_proj.shift_proj.weight, theirs.v_proj.shift_proj.weight
    tie(heads.to_shares, "weight", torch.cat(shares))
    tie(heads, "gain", theirs.output_norm.weight.unflatten(0, (HEADS, WIDTH)))
    pairs = {
        **weights(heads, theirs, to_query="q_proj", to_output="o_proj", to_gate="ogate_proj"),
        "to_key": (heads.to_key.weight, theirs.k_proj.linear.weight),
        "to_value": (heads.to_value.weight, theirs.v_proj.linear.weight),
        "query_gain": (heads.norm.query_gain, theirs.q_norm.weight),
        "key_gain": (heads.norm.key_gain, theirs.k_norm.weight),
        "forget": (mine.key_maps["forget"].outward.weight, theirs.fgate_proj.weight),
        "forget bias": (position.bias, theirs.fgate_proj.bias),
    }
    copy_weights(dict(pairs.values()))
    x = drawn(2, LENGTH, DIM, seed=40, dtype=FLOAT)
    found, *_ = theirs(x)
    more = {"shares of keys": shares[0], "shares of values": shares[1]}
    agree(
        chosen,
        name,
        f"layer, {PLACES}, gradients of all maps and gains",
        mine(x),
        found,
        inputs={"x": x, "gain": theirs.output_norm.weight, **more, **pairs},
        note="norms and shifts in the plain forms beside its kernels, a softmax in plain torch for "
        "its kernel of attention, and our 1e-6 in the norms of queries and keys",
    )


@pytest.mark.parametrize("turned", [True, False])
def test_factors_of_queries_keys_and_values_are_those_of_tensor_product_attention(agree, turned):
    """Its cosines are of bfloat16, and it turns the other way; ours are handed to it."""
    name, rank, query_rank = "tensorgi/T6", 2, 3
    module = taken(name, "model/T6.py", "Rotary apply_rotary_emb CPLinear CausalSelfAttention")
    config = {"n_head": HEADS, "head_dim": WIDTH, "n_embd": DIM, "rank": rank}
    theirs = module.CausalSelfAttention(SimpleNamespace(**config, q_rank=query_rank)).double()
    draw_parameters(theirs)
    maps = theirs.c_qkv
    rates = 1e4 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    angles = turned * torch.arange(LENGTH)[None, :, None, None] * rates
    maps.rotary.forward = lambda x: (angles.cos(), -angles.sin())
    chosen = f"tpa[heads={HEADS},query_rank={query_rank},rank={rank}]"
    places = "position=rope[layout=halves]" if turned else "position=none"
    selector = f"{chosen[:-1]},{places}]"
    mine = variants.build(selector, dim=DIM, regime="causal").double()
    leaves = {}
    for which, ranks in (("query", query_rank), ("key", rank), ("value", rank)):
        over_heads = getattr(maps, f"W_A_{which[0]}").weight
        over_width = getattr(maps, f"W_B_{which[0]}").weight
        by_rank = over_heads.unflatten(0, (HEADS, ranks)).transpose(0, 1).flatten(0, 1)
        tie(getattr(mine.heads, f"to_{which}"), "weight", torch.cat((by_rank, over_width)))
        leaves |= {f"{which} over heads": over_heads, f"{which} over width": over_width}
    output = mine.heads.to_output.weight, theirs.c_proj.weight
    copy_weights(dict([output]))
    x = drawn(2, LENGTH, DIM, seed=40)
    agree(
        selector,
        name,
        f"layer, {PLACES}, gradients of all factors",
        mine(x),
        theirs(x),
        inputs={"x": x, **leaves, "output": output},
        note="cosines in float64, where it has bfloat16, and the other sense of turning"
        if turned
        else "",
    )
