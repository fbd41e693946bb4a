"""Decoder-only models of transformers: heads, rotary positions, caps, sinks, latent vectors."""

import math

import pytest
import torch

import variants
from tests.peers.agreement import copy_weights, draw_parameters, peer
from tests.peers.model_attention import (
    HEAD_WIDTH,
    HEADS,
    LENGTH,
    WIDTH,
    causal_mask,
    made,
    no_turn,
    states,
    turns,
    with_weights_of,
)

llama = peer("transformers.models.llama.modeling_llama")
gemma = peer("transformers.models.gemma2.modeling_gemma2")
qwen = peer("transformers.models.qwen3.modeling_qwen3")
gpt_oss = peer("transformers.models.gpt_oss.modeling_gpt_oss")
deepseek = peer("transformers.models.deepseek_v3.modeling_deepseek_v3")
qwen_next = peer("transformers.models.qwen3_next.modeling_qwen3_next")
smollm = peer("transformers.models.smollm3.modeling_smollm3")
llama4 = peer("transformers.models.llama4.modeling_llama4")
stablelm = peer("transformers.models.stablelm.modeling_stablelm")
glm = peer("transformers.models.glm.modeling_glm")
mistral = peer("transformers.models.mistral.modeling_mistral")
masking = peer("transformers.masking_utils", "transformers")

ROPE = "position=rope[base=10000.0,layout=halves]"


@pytest.mark.parametrize(
    ("name", "selector", "kv_heads"),
    [
        ("mha", "mha[heads=4]", 4),
        ("gqa", "gqa[heads=4,kv_heads=2]", 2),
        ("mqa", "mqa[heads=4]", 1),
    ],
)
def test_heads_are_those_of_llama_without_positions(agree, name, selector, kv_heads):
    theirs = made(llama, "Llama", kv_heads=kv_heads)
    mine, pairs = with_weights_of(theirs, selector)
    x = states()
    agree(
        name,
        "transformers (Llama)",
        f"{kv_heads} key heads of 4, angles of zero, gradients of all maps",
        mine(x),
        theirs(x, no_turn(), causal_mask())[0],
        inputs={"x": x, **pairs},
    )


def test_rotary_positions_with_shared_keys_are_those_of_llama(agree):
    theirs = made(llama, "Llama", kv_heads=2)
    mine, pairs = with_weights_of(theirs, f"gqa[heads=4,kv_heads=2,{ROPE}]")
    x = states()
    agree(
        "rope[layout=halves]",
        "transformers (Llama)",
        "with 2 key heads of 4, gradients of all maps",
        mine(x),
        theirs(x, turns(llama, "Llama", theirs.config), causal_mask())[0],
        inputs={"x": x, **pairs},
    )


@pytest.mark.parametrize(
    ("scaling", "rope_type", "their_factor", "why"),
    [
        ("linear", "linear", 4.0, "positions interpolated by 4"),
        # their base grows with the length: 3 * 9 / 4.5 - 2 = 4 at the ninth place
        ("ntk", "dynamic", 3.0, "their dynamic base at the length where its factor is 4"),
    ],
)
def test_scaled_rotary_positions_are_those_of_llama(agree, scaling, rope_type, their_factor, why):
    scaled = {"rope_type": rope_type, "rope_theta": 10000.0, "factor": their_factor}
    length = 10 if rope_type == "dynamic" else LENGTH
    theirs = made(llama, "Llama", rope_parameters=scaled, max_position_embeddings=5)
    chosen = f"rope[factor=4.0,layout=halves,scaling={scaling}]"
    mine, _ = with_weights_of(theirs, f"mha[heads=4,position={chosen}]")
    x = states(length)
    agree(
        chosen,
        "transformers (Llama)",
        why,
        mine(x),
        theirs(x, turns(llama, "Llama", theirs.config, length), causal_mask(length))[0],
        inputs={"x": x},
    )


def test_capped_logits_are_those_of_gemma(agree):
    theirs = made(gemma, "Gemma2", attn_logit_softcapping=2.0, query_pre_attn_scalar=HEAD_WIDTH)
    mine, pairs = with_weights_of(theirs, f"mha[heads=4,normalizer=logit_softcap[cap=2.0],{ROPE}]")
    x = states()
    agree(
        "logit_softcap[cap=2.0]",
        "transformers (Gemma2)",
        "with rotary positions, gradients of all maps",
        mine(x),
        theirs(x, turns(gemma, "Gemma2", theirs.config), causal_mask())[0],
        inputs={"x": x, **pairs},
    )


@pytest.mark.parametrize(
    ("models", "name"), [(gemma, "Gemma2"), (mistral, "Mistral")], ids=["Gemma2", "Mistral"]
)
def test_a_sliding_window_is_that_of_the_models_own_mask(agree, models, name):
    options = {"attn_logit_softcapping": None, "query_pre_attn_scalar": HEAD_WIDTH}
    theirs = made(models, name, sliding_window=3, **(options if name == "Gemma2" else {}))
    mine, _ = with_weights_of(theirs, f"mha[heads=4,mask=sliding_window[window=3],{ROPE}]")
    x = states()
    mask = masking.create_sliding_window_causal_mask(
        config=theirs.config,
        inputs_embeds=x,
        attention_mask=None,
        past_key_values=None,
        position_ids=torch.arange(LENGTH)[None],
    )
    agree(
        "sliding_window[window=3]",
        f"transformers ({name})",
        "a window of 3, with rotary positions",
        mine(x),
        theirs(x, turns(models, name, theirs.config), mask)[0],
        inputs={"x": x},
    )


def test_normalized_queries_and_keys_are_those_of_qwen(agree):
    theirs = made(qwen, "Qwen3")
    mine, pairs = with_weights_of(theirs, f"qk_norm[heads=4,{ROPE}]")
    norm = mine.heads.norm
    gains = {norm.query_gain: theirs.q_norm.weight, norm.key_gain: theirs.k_norm.weight}
    copy_weights(gains)
    x = states()
    agree(
        "qk_norm",
        "transformers (Qwen3)",
        "with rotary positions, gradients of maps and gains",
        mine(x),
        theirs(x, turns(qwen, "Qwen3", theirs.config), causal_mask())[0],
        inputs={"x": x, **pairs, "gain": (norm.query_gain, theirs.q_norm.weight)},
    )


def test_learned_sinks_are_those_of_gpt_oss(agree):
    theirs = made(gpt_oss, "GptOss")
    mine, pairs = with_weights_of(theirs, "mha[bias=true,heads=4,normalizer=learned_sink]")
    sink = mine.variant.normalizer.sink
    copy_weights({sink: theirs.sinks[:, None, None]})
    x = states()
    still = no_turn(width=HEAD_WIDTH // 2)
    agree(
        "learned_sink",
        "transformers (GPT-OSS)",
        "angles of zero, biases in all maps, gradients of maps and sinks",
        mine(x),
        theirs(x, still, causal_mask())[0],
        inputs={"x": x, **pairs, "sink": (sink, theirs.sinks)},
    )


@pytest.mark.parametrize("form", ["mixed", "absorbed", "naive"])
@pytest.mark.parametrize("query_latent", [0, 10])
def test_latent_attention_is_that_of_deepseek(agree, form, query_latent):
    latent, turned = 8, 4
    config = deepseek.DeepseekV3Config(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        q_lora_rank=query_latent or None,
        kv_lora_rank=latent,
        qk_rope_head_dim=turned,
        qk_nope_head_dim=HEAD_WIDTH,
        v_head_dim=HEAD_WIDTH,
        attn_implementation="eager",
    )
    theirs = deepseek.DeepseekV3Attention(config, layer_idx=0).eval()
    draw_parameters(theirs)
    options = f"form={form},heads={HEADS},latent={latent},query_latent={query_latent}"
    mine = variants.build(f"mla[{options},turned={turned}]", dim=WIDTH, regime="causal").eval()
    heads = mine.heads
    down, up = theirs.kv_a_proj_with_mqa.weight, theirs.kv_b_proj.weight.view(HEADS, -1, latent)
    pairs = {
        heads.gain: theirs.kv_a_layernorm.weight,
        heads.to_output.weight: theirs.o_proj.weight,
        heads.to_query.weight: (theirs.q_b_proj if query_latent else theirs.q_proj).weight,
    }
    if query_latent:
        pairs[heads.to_query_latent.weight] = theirs.q_a_proj.weight
        pairs[heads.query_gain] = theirs.q_a_layernorm.weight
    parts = {
        heads.to_latent.weight: down[:latent],
        heads.to_turned.weight: down[latent:],
        heads.key_up: up[:, :HEAD_WIDTH],
        heads.value_up: up[:, HEAD_WIDTH:],
    }
    copy_weights({**pairs, **parts})
    length = 32 if form == "mixed" else LENGTH  # so many that keys are written out
    assert heads.query(states(length)).shape[-1] == (
        latent + turned if form == "absorbed" else HEAD_WIDTH + turned
    )
    x = states(length)
    found = f", queries from {query_latent}" if query_latent else ""
    agree(
        "mla",
        "transformers (DeepSeek-V3)",
        f"{form} form, latent vectors of {latent}{found}, gradients of maps and gains",
        mine(x),
        theirs(x, turns(deepseek, "DeepseekV3", config, length), causal_mask(length))[0],
        inputs={"x": x, **{str(at): pair for at, pair in enumerate(pairs.items())}},
    )


def test_gated_heads_are_those_of_qwen3_next(agree):
    theirs = made(qwen_next, "Qwen3Next", kv_heads=2)
    chosen = "gated_attention[heads=4,kv_heads=2,qk_norm=rms]"
    mine = variants.build(chosen, dim=WIDTH, regime="causal").eval()
    heads = mine.heads
    query, gate = theirs.q_proj.weight.view(HEADS, 2, HEAD_WIDTH, WIDTH).unbind(1)
    pairs = {
        heads.to_key.weight: theirs.k_proj.weight,
        heads.to_value.weight: theirs.v_proj.weight,
        heads.to_output.weight: theirs.o_proj.weight,
    }
    copy_weights(
        {
            **pairs,
            heads.to_query.weight: query.flatten(0, 1),
            heads.to_gate.weight: gate.flatten(0, 1),
            heads.norm.query_gain: 1 + theirs.q_norm.weight,
            heads.norm.key_gain: 1 + theirs.k_norm.weight,
        }
    )
    x = states()
    agree(
        chosen,
        "transformers (Qwen3-Next)",
        "a gate for every unit, 2 key heads of 4, norms, angles of zero",
        mine(x),
        theirs(x, no_turn(), causal_mask())[0],
        inputs={
            "x": x,
            **{str(at): pair for at, pair in enumerate(pairs.items())},
            "gain": (heads.norm.query_gain, theirs.q_norm.weight),
        },
    )


def test_a_layer_without_positions_is_that_of_smollm(agree):
    theirs = made(smollm, "SmolLM3", num_hidden_layers=1, no_rope_layers=[0])
    mine, pairs = with_weights_of(theirs, "nope[head=multi[heads=4]]")
    x = states()
    agree(
        "nope",
        "transformers (SmolLM3)",
        "one of its layers without rotary positions",
        mine(x),
        theirs(x, turns(smollm, "SmolLM3", theirs.config), causal_mask())[0],
        inputs={"x": x, **pairs},
    )


def test_the_ends_of_yarn_are_those_of_llama(agree):
    """Between its ends the ramp of the released code goes by the index of a pair, ours by turns."""
    scaled = {
        "rope_type": "yarn",
        "rope_theta": 1e12,
        "factor": 8.0,
        "original_max_position_embeddings": 4096,
    }
    theirs = made(llama, "Llama", rope_parameters=scaled, max_position_embeddings=8 * 4096)
    chosen = "rope[base=1e12,factor=8.0,layout=halves,original=4096,scaling=yarn]"
    mine, _ = with_weights_of(theirs, f"mha[heads=4,position={chosen}]")
    x = states()
    agree(
        chosen,
        "transformers (Llama)",
        "no pair on the ramp",
        mine(x),
        theirs(x, turns(llama, "Llama", theirs.config), causal_mask())[0],
        inputs={"x": x},
        note="on the ramp its code goes by the index of a pair, the paper's equations by turns",
    )


def test_the_ramp_of_yarn_is_that_of_llama3(agree):
    """Llama 3 joins angles by the number of turns, as the equations of YaRN do; it has no factor of
    the energies, so that its rotations get the one of YaRN here."""
    scaled = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "original_max_position_embeddings": 4096,
        "low_freq_factor": 1.0,
        "high_freq_factor": 32.0,
    }
    theirs = made(llama, "Llama", rope_parameters=scaled, max_position_embeddings=8 * 4096)
    chosen = "rope[factor=8.0,layout=halves,original=4096,scaling=yarn]"
    mine, _ = with_weights_of(theirs, f"mha[heads=4,position={chosen}]")
    x = states()
    sharper = 0.1 * math.log(8.0) + 1
    cos, sin = turns(llama, "Llama", theirs.config)
    agree(
        chosen,
        "transformers (Llama 3)",
        "two of three pairs on the ramp, with YaRN's factor of the energies",
        mine(x),
        theirs(x, (sharper * cos, sharper * sin), causal_mask())[0],
        inputs={"x": x},
    )


def test_local_blocks_are_those_of_the_mask_of_llama4(agree):
    chunked = llama4.Llama4TextConfig(attention_chunk_size=4, attn_implementation="eager")
    theirs = made(llama, "Llama")
    mine, _ = with_weights_of(theirs, f"mha[heads=4,mask=block_local[block=4],{ROPE}]")
    x = states()
    mask = masking.create_chunked_causal_mask(
        config=chunked,
        inputs_embeds=x,
        attention_mask=None,
        past_key_values=None,
        position_ids=torch.arange(LENGTH)[None],
    )
    agree(
        "block_local[block=4]",
        "transformers (Llama4)",
        "its mask in the attention of Llama",
        mine(x),
        theirs(x, turns(llama, "Llama", theirs.config), mask)[0],
        inputs={"x": x},
    )


@pytest.mark.parametrize(
    ("models", "name", "layout"),
    [(stablelm, "StableLm", "halves"), (glm, "Glm", "interleaved")],
    ids=["StableLM", "GLM"],
)
def test_a_part_of_the_width_is_turned_as_in_a_model(agree, models, name, layout):
    turned = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 2 / 3}
    theirs = made(models, name, rope_parameters=turned, num_hidden_layers=1)
    chosen = f"rope[fraction=0.67,layout={layout}]"
    bias = theirs.q_proj.bias is not None
    mine, _ = with_weights_of(theirs, f"mha[bias={str(bias).lower()},heads=4,position={chosen}]")
    x = states()
    agree(
        chosen,
        f"transformers ({name})",
        "4 of 6 numbers of each head",
        mine(x),
        theirs(
            x, position_embeddings=turns(models, name, theirs.config), attention_mask=causal_mask()
        )[0],
        inputs={"x": x},
    )
