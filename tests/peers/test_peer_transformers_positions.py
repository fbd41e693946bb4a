"""Positions as energies in models of transformers: BLOOM, T5, DeBERTa, XLNet, VITS and others."""

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
from tests.peers.model_attention import FLOAT, LENGTH, WIDTH, causal_mask, states

bloom = peer("transformers.models.bloom.modeling_bloom")
t5 = peer("transformers.models.t5.modeling_t5")
deberta = peer("transformers.models.deberta.modeling_deberta")
xlnet = peer("transformers.models.xlnet.modeling_xlnet")
vits = peer("transformers.models.vits.modeling_vits")
wav2vec = peer("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")


@pytest.mark.parametrize("heads", [8, 6])
def test_alibi_is_that_of_bloom(agree, heads):
    config = bloom.BloomConfig(
        hidden_size=WIDTH, n_head=heads, hidden_dropout=0.0, attention_dropout=0.0
    )
    theirs = bloom.BloomAttention(config, layer_idx=0)
    draw_parameters(theirs)
    chosen = f"mha[bias=true,heads={heads},position=alibi]"
    mine = variants.build(chosen, dim=WIDTH, regime="causal")
    fused = theirs.query_key_value
    pairs = {mine.heads.to_output.weight: theirs.dense.weight}
    pairs[mine.heads.to_output.bias] = theirs.dense.bias
    for at, name in enumerate(("to_query", "to_key", "to_value")):
        layer = getattr(mine.heads, name)
        pairs[layer.weight] = fused.weight.view(heads, 3, -1, WIDTH)[:, at].flatten(0, 1)
        pairs[layer.bias] = fused.bias.view(heads, 3, -1)[:, at].flatten()
    copy_weights(pairs)
    x = states()
    slopes = bloom.build_alibi_tensor(torch.ones(2, LENGTH), heads, FLOAT)
    agree(
        "alibi",
        "transformers (BLOOM)",
        f"{heads} heads, which is {'a' if heads == 8 else 'no'} power of two",
        mine(x),
        theirs(x, torch.zeros_like(x), slopes, causal_mask())[0],
        inputs={"x": x, "output": (mine.heads.to_output.weight, theirs.dense.weight)},
    )


@pytest.mark.parametrize("regime", ["self", "causal"])
def test_the_bias_of_t5_is_that_of_t5_whose_energies_are_not_scaled(agree, regime):
    config = t5.T5Config(
        d_model=WIDTH,
        d_kv=WIDTH // 4,
        num_heads=4,
        is_decoder=regime == "causal",
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        attn_implementation="eager",
    )
    theirs = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    draw_parameters(theirs)
    chosen = "t5_bias[buckets=8,far=20,head=multi[heads=4],score=dot]"
    mine = variants.build(chosen, dim=WIDTH, regime=regime)
    table = mine.variant.positions[0].table
    names = {"to_query": "q", "to_key": "k", "to_value": "v", "to_output": "o"}
    pairs = {getattr(mine.heads, a).weight: getattr(theirs, b).weight for a, b in names.items()}
    copy_weights({**pairs, table: theirs.relative_attention_bias.weight.mT})
    x = states(32)
    agree(
        "t5_bias[buckets=8,far=20,score=dot]",
        "transformers (T5)",
        "32 places, 8 buckets up to 20, " + ("causal" if regime == "causal" else "both directions"),
        mine(x),
        theirs(x, mask=causal_mask(32) if regime == "causal" else None)[0],
        inputs={"x": x, **{str(at): pair for at, pair in enumerate(pairs.items())}},
    )


@pytest.mark.parametrize(
    ("terms", "clip"), [(("c2p",), 4), (("c2p", "p2c"), LENGTH)], ids=["one term", "two terms"]
)
def test_disentangled_attention_is_that_of_deberta(agree, terms, clip):
    heads, width = 4, WIDTH // 4
    config = deberta.DebertaConfig(
        hidden_size=WIDTH,
        num_attention_heads=heads,
        relative_attention=True,
        max_relative_positions=clip,
        pos_att_type=list(terms),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    theirs = deberta.DisentangledSelfAttention(config).eval()
    draw_parameters(theirs)
    both = len(terms) == 2
    position = f"position=deberta[clip={clip},position_to_content={str(both).lower()}]"
    temperature = (1 + len(terms)) ** 0.5
    chosen = f"deberta[{position},normalizer=softmax[temperature={temperature}]]"
    mine = below_heads(chosen, heads=heads, width=width, regime="self", dtype=FLOAT)
    for bias in (theirs.q_bias, theirs.v_bias):
        torch.nn.init.zeros_(bias)
    rows = drawn(2 * clip, WIDTH, seed=3, dtype=FLOAT)
    part = mine.positions[0]
    copy_weights({part.key_table: theirs.pos_proj(rows).view(-1, heads, width).transpose(0, 1)})
    if both:
        # theirs looks up the distance i - j where the paper has j - i: their table is ours reversed
        table = theirs.pos_q_proj(rows).view(-1, heads, width).transpose(0, 1)
        copy_weights({part.query_table: table.flip(1).roll(1, 1)})
    x = states(seed=5)
    split = theirs.transpose_for_scores(theirs.in_proj(x)).chunk(3, dim=-1)
    found = attend(mine, *split).transpose(1, 2).flatten(2)
    near = deberta.build_relative_position(split[0], split[1])
    everyone = torch.ones(2, 1, LENGTH, LENGTH)
    agree(
        "deberta",
        "transformers (DeBERTa)",
        "both terms" if both else "content to position alone, distances cut at 4",
        found,
        theirs(x, everyone, relative_pos=near, rel_embeddings=rows)[0],
        inputs={"x": x},
        note="its code looks up i - j for the second term, where the paper's equation 4 has j - i; "
        "its table is ours in reverse"
        if both
        else "",
    )


@pytest.mark.parametrize("regime", ["self", "causal"])
def test_positions_of_transformer_xl_are_those_of_xlnet(agree, regime):
    heads, width = 4, WIDTH // 4
    config = xlnet.XLNetConfig(d_model=WIDTH, n_head=heads, n_layer=1, d_inner=8, dropout=0.0)
    theirs = xlnet.XLNetRelativeAttention(config)
    draw_parameters(theirs)
    model = xlnet.XLNetModel(config)
    mine = below_heads("transformer_xl", heads=heads, width=width, regime=regime, dtype=FLOAT)
    part = mine.positions[0]
    pairs = {
        part.key_bias: theirs.r_w_bias,
        part.place_bias: theirs.r_r_bias,
        part.to_key: theirs.r.transpose(0, 1),
    }
    copy_weights(pairs)
    query, key, value = (drawn(2, heads, LENGTH, width, seed=s, dtype=FLOAT) for s in range(3))
    places = model.relative_positional_encoding(LENGTH, LENGTH, bsz=2)
    moved = (x.permute(2, 0, 1, 3) for x in (query, key, value))
    future = torch.ones(LENGTH, LENGTH).triu(1)[:, :, None, None].expand(-1, -1, 2, heads)
    found = theirs.rel_attn_core(
        *moved,
        torch.einsum("ibh,hnd->ibnd", places, theirs.r),
        attn_mask=future if regime == "causal" else None,
    )
    agree(
        "transformer_xl",
        "transformers (XLNet)",
        "causal" if regime == "causal" else "both directions",
        attend(mine, query, key, value),
        found.permute(1, 2, 0, 3),
        inputs={
            "query": query,
            "key": key,
            "value": value,
            "u": (part.key_bias, theirs.r_w_bias),
            "v": (part.place_bias, theirs.r_r_bias),
        },
    )


def test_shaws_positions_of_keys_are_those_of_wav2vec2_bert(agree):
    config = wav2vec.Wav2Vec2BertConfig(
        hidden_size=12,
        num_attention_heads=3,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=4,
        right_max_position_embeddings=4,
        attention_dropout=0.0,
        attn_implementation="eager",
    )
    theirs = wav2vec.Wav2Vec2BertSelfAttention(config).double()
    draw_parameters(theirs)
    chosen = "shaw_rpr[clip=4,tables=shared,use=keys]"
    mine = variants.build(chosen, dim=12, heads=3, regime="self", projection_bias=True).double()
    table = mine.variant.positions[0].key_table
    pairs = {table: theirs.distance_embedding.weight}
    for one, two in zip(("query", "key", "value", "output"), ("q", "k", "v", "out"), strict=True):
        own, layer = getattr(mine.heads, f"to_{one}"), getattr(theirs, f"linear_{two}")
        pairs |= {own.weight: layer.weight, own.bias: layer.bias}
    copy_weights(pairs)
    x = drawn(2, 11, 12, seed=9)
    agree(
        chosen,
        "transformers (Wav2Vec2-BERT)",
        "11 places, distances cut at 4, gradients of all maps and of the table",
        mine(x),
        theirs(x)[0],
        inputs={"x": x, **{str(at): pair for at, pair in enumerate(pairs.items())}},
    )


def test_vectors_of_labels_are_those_of_vits_where_distances_are_the_labels(agree):
    reach, heads = LENGTH - 1, 4
    config = vits.VitsConfig(
        hidden_size=WIDTH, num_attention_heads=heads, window_size=reach, attention_dropout=0.0
    )
    theirs = vits.VitsAttention(config).eval()
    draw_parameters(theirs)
    x = states()
    mine = below_heads(
        "relation_aware[tables=shared]",
        heads=heads,
        width=WIDTH // heads,
        regime="self",
        dtype=FLOAT,
        relations=2 * reach + 1,
    )
    (position,) = mine.positions
    tables = {
        "keys": (position.key_table, theirs.emb_rel_k),
        "values": (position.value_table, theirs.emb_rel_v),
    }
    copy_weights(dict(tables.values()))
    place = torch.arange(LENGTH)
    labels = (place - place[:, None] + reach).expand(2, -1, -1)
    maps = theirs.q_proj, theirs.k_proj, theirs.v_proj
    found = attend(
        mine,
        *(one(x).unflatten(-1, (heads, -1)).transpose(1, 2) for one in maps),
        query_extras={"relation": labels},
    )
    agree(
        "relation_aware[tables=shared]",
        "transformers (VITS)",
        f"{LENGTH} places, a label for every distance, gradients of both tables",
        theirs.out_proj(found.transpose(1, 2).flatten(2)),
        theirs(x)[0],
        inputs={"x": x, **tables},
    )
