"""Sparse and differential attention of transformers: Longformer, BigBird, Nystrom, DiffLlama."""

import pytest
import torch

import variants
from tests.peers.agreement import copy_weights, draw_parameters, drawn, peer
from tests.peers.model_attention import (
    HEADS,
    WIDTH,
    causal_mask,
    made,
    no_turn,
    states,
    turns,
)

longformer = peer("transformers.models.longformer.modeling_longformer")
big_bird = peer("transformers.models.big_bird.modeling_big_bird")
nystrom = peer("transformers.models.nystromformer.modeling_nystromformer")
diff = peer("transformers.models.diffllama.modeling_diffllama")


def without_output(mine, theirs):
    """Our attention with their three maps; theirs stops before an output map, so ours keeps all."""
    pairs = {}
    for name in ("query", "key", "value"):
        layer, other = getattr(mine.heads, f"to_{name}"), getattr(theirs, name)
        pairs |= {layer.weight: other.weight, layer.bias: other.bias}
    copy_weights(
        {
            **pairs,
            mine.heads.to_output.weight: torch.eye(WIDTH, dtype=mine.heads.to_query.weight.dtype),
        }
    )
    torch.nn.init.zeros_(mine.heads.to_output.bias)
    return {str(at): pair for at, pair in enumerate(pairs.items())}


def built(selector):
    return variants.build(
        selector, dim=WIDTH, heads=HEADS, regime="self", projection_bias=True
    ).eval()


@pytest.mark.parametrize("global_tokens", [0, 2])
def test_a_window_with_global_tokens_is_that_of_longformer(agree, global_tokens):
    config = longformer.LongformerConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        attention_window=[4],
        attention_probs_dropout_prob=0.0,
        num_hidden_layers=1,
    )
    theirs = longformer.LongformerSelfAttention(config, layer_id=0).eval()
    draw_parameters(theirs)
    for name in ("query", "key", "value"):
        # maps of its own for global tokens, which ours does not have
        getattr(theirs, f"{name}_global").load_state_dict(getattr(theirs, name).state_dict())
    chosen = f"longformer[global_tokens={global_tokens},window=3]"
    mine = built(chosen)
    pairs = without_output(mine, theirs)
    # a softmax does not see a bias of all keys: its gradient is zero, and rounding
    pairs = {at: pair for at, pair in pairs.items() if pair[0] is not mine.heads.to_key.bias}
    x = states(12)
    everywhere = (torch.arange(12) < global_tokens).expand(2, -1)
    found = theirs(
        x,
        attention_mask=everywhere * 10000.0,
        is_index_masked=torch.zeros(2, 12, dtype=torch.bool),
        is_index_global_attn=everywhere,
        is_global_attn=bool(global_tokens),
    )[0]
    agree(
        chosen,
        "transformers (Longformer)",
        f"12 places, {global_tokens} global",
        mine(x),
        found,
        inputs={"x": x} if global_tokens else {"x": x, **pairs},
        note="its window of 4 is 2 on each side; equal maps for global tokens",
    )


def test_blocks_are_those_of_bigbird_with_our_random_ones(agree, monkeypatch):
    config = big_bird.BigBirdConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_random_blocks=1,
        block_size=2,
        max_position_embeddings=64,
        use_bias=True,
    )
    theirs = big_bird.BigBirdBlockSparseAttention(config, seed=0).eval().double()
    draw_parameters(theirs)
    chosen = "bigbird[block=2,ends=1,near=1,random=1]"
    mine = built(chosen).double()
    pairs = without_output(mine, theirs)
    x = states(16).detach().double().requires_grad_()
    seen = mine.answer_all(x, x)[1].weights[0].detach() > 0
    seen = seen.view(HEADS, 8, 2, 8, 2).any(-1).any(2)
    block = torch.arange(8)
    surely = ((block[:, None] - block).abs() <= 1) | (block == 0) | (block == 7)
    further = (seen & ~surely)[:, 1:-1]
    chosen_blocks = [head.nonzero()[:, 1:].numpy() for head in further]
    # in evaluation its random blocks are all the first one, which then counts twice
    name = "_bigbird_block_rand_mask_with_head"
    monkeypatch.setattr(theirs, name, lambda **sizes: chosen_blocks)
    blocks, band, rows, columns = big_bird.BigBirdModel.create_masks_for_block_sparse_attn(
        torch.ones(2, 16), 2
    )
    found = theirs(
        x,
        band_mask=band,
        from_mask=rows,
        to_mask=columns,
        from_blocked_mask=blocks,
        to_blocked_mask=blocks,
    )[0]
    agree(
        chosen,
        "transformers (BigBird)",
        "8 blocks of 2, gradients of the maps",
        mine(x),
        found,
        inputs={"x": x, **pairs},
        note="its random blocks are those that ours draws; in evaluation it has none of its own, "
        "and reads the first block twice",
    )


@pytest.mark.parametrize("turned", [False, True])
def test_differential_attention_is_that_of_diffllama(agree, turned):
    theirs = made(diff, "DiffLlama", num_hidden_layers=1, rms_norm_eps=1e-5)
    # a head of ours holds both pairs of theirs, which are half the heads apart
    order = torch.arange(WIDTH).view(2, HEADS // 2, -1).transpose(0, 1).flatten()
    chosen = "differential[start=0.2]"
    if turned:
        chosen = "differential[position=rope[layout=halves],start=0.2]"
    mine = variants.build(chosen, dim=WIDTH, heads=HEADS // 2, regime="causal").eval()
    variant = mine.variant
    copy_weights(
        {
            mine.heads.to_query.weight: theirs.q_proj.weight[order],
            mine.heads.to_key.weight: theirs.k_proj.weight[order],
            mine.heads.to_value.weight: theirs.v_proj.weight[order],
            mine.heads.to_output.weight: theirs.o_proj.weight,
            variant.added: torch.stack((theirs.lambda_q1, theirs.lambda_k1)),
            variant.taken: torch.stack((theirs.lambda_q2, theirs.lambda_k2)),
            variant.gain: torch.ones_like(variant.gain),
        }
    )
    x = states()
    angles = turns(diff, "DiffLlama", theirs.config) if turned else no_turn()
    agree(
        chosen,
        "transformers (DiffLlama)",
        f"layer 0, angles {'of both maps' if turned else 'of zero'}, gradient of the output map",
        mine(x),
        theirs(x, angles, causal_mask())[0],
        inputs={"x": x, "output": (mine.heads.to_output.weight, theirs.o_proj.weight)},
    )


def test_landmarks_are_those_of_nystromformer(agree):
    config = nystrom.NystromformerConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_landmarks=3,
        segment_means_seq_len=12,
        conv_kernel_size=5,
        attention_probs_dropout_prob=0.0,
    )
    theirs = nystrom.NystromformerSelfAttention(config).double().eval()
    draw_parameters(theirs)
    # left alone, its inverse begins at a number of the whole batch, and not of one matrix
    theirs.init_option = "exact"
    chosen = "nystrom[iterations=6,kernel=5,landmarks=3]"
    mine = built(chosen).double()
    pairs = without_output(mine, theirs)
    copy_weights(
        {
            # its landmarks are means of queries
            mine.key_maps["landmark"].outward.weight: theirs.query.weight,
            mine.variant.taps: theirs.conv.weight[:, 0, :, 0],
        }
    )
    for bias in (mine.heads.to_query.bias, theirs.query.bias):
        torch.nn.init.zeros_(bias)
    x = drawn(2, 12, WIDTH)
    agree(
        chosen,
        "transformers (Nystromformer)",
        "12 places, 3 landmarks, 6 steps towards the inverse",
        mine(x),
        theirs(x)[0],
        inputs={
            "x": x,
            "taps": (mine.variant.taps, theirs.conv.weight),
            **{at: pair for at, pair in pairs.items() if at not in ("0", "1")},
        },
        note="its inverse begins at a number of one matrix, which it calls exact",
    )
