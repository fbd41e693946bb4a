"""Sparse attention that an indexer steers, in models of transformers: DeepSeek-V3.2 and V4."""

from types import SimpleNamespace

import pytest
import torch

from tests.peers.agreement import attend, below_heads, copy_weights, draw_parameters, drawn, peer
from tests.peers.model_attention import FLOAT, HEAD_WIDTH, HEADS, WIDTH, causal_mask, no_turn
from variants.lightning_indexer import KEY, QUERY, WEIGHT
from variants.mechanisms.compressed_entries import KEY_GATE, VALUE_GATE
from variants.mechanisms.csa import INDEX_GATE

v32 = peer("transformers.models.deepseek_v32.modeling_deepseek_v32")
v4 = peer("transformers.models.deepseek_v4.modeling_deepseek_v4")

ROWS, LENGTH, BLOCK, WINDOW = 2, 22, 4, 5
INDEX_HEADS, INDEX_WIDTH = 16, 6
"""So many heads that no two keys have the score zero, of which topk chooses any."""
SOFTMAX = SimpleNamespace(
    num_key_value_groups=HEADS, training=False, sinks=torch.full((HEADS,), float("-inf"))
)
"""What their softmax reads of the module that calls it; its sinks weigh nothing."""


def heads_of(number, seed):
    return drawn(ROWS, number, LENGTH, HEAD_WIDTH, seed=seed, dtype=FLOAT)


@pytest.mark.parametrize("chosen", [1, 4])
def test_the_keys_of_dsa_are_those_of_the_indexer_of_deepseek(agree, chosen):
    config = SimpleNamespace(
        hidden_size=WIDTH,
        index_n_heads=INDEX_HEADS,
        index_head_dim=INDEX_WIDTH,
        qk_rope_head_dim=2,
        index_topk=chosen,
        q_lora_rank=WIDTH,
    )
    indexer = v32.DeepseekV32Indexer(config, layer_idx=0)
    draw_parameters(indexer)
    x = drawn(ROWS, LENGTH, WIDTH, dtype=FLOAT)
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    best = indexer(x, x, no_turn(LENGTH, 2), causal, position_ids=None).long()
    hidden = torch.full((ROWS, LENGTH, LENGTH), float("-inf")).scatter(-1, best, 0.0)
    query, key, value = heads_of(HEADS, 1), heads_of(1, 2), heads_of(1, 3)
    theirs, _ = v32.eager_attention_forward(
        SOFTMAX,
        query,
        key,
        value,
        hidden[:, None] + causal_mask(LENGTH),
        scaling=HEAD_WIDTH**-0.5,
    )
    name = f"dsa[chosen={chosen},index_heads={INDEX_HEADS},index_width={INDEX_WIDTH}]"
    mine = below_heads(name, heads=HEADS, kv_heads=1, width=HEAD_WIDTH, dtype=FLOAT)
    ours = attend(
        mine,
        query,
        key,
        value,
        key_extras={KEY: indexer.k_norm(indexer.wk(x))[:, None]},
        query_extras={
            QUERY: indexer.wq_b(x)[:, :, None],
            WEIGHT: indexer.weights_proj(x)[:, :, None],
        },
        progress=1.0,
    )
    agree(
        name,
        "transformers (DeepSeek-V3.2)",
        f"{LENGTH} places, {chosen} of them read",
        ours.transpose(1, 2),
        theirs,
        inputs={"query": query, "key": key, "value": value},
        note="the norm of its indexer's keys stands before ours; without rotary positions",
    )


@pytest.fixture
def unturned(monkeypatch):
    """Their rotary positions turn nothing, for ours would turn keys before they are compressed."""

    def straight(self, x, position_ids, layer_type=None):
        rotation = (ROWS, position_ids.shape[1], 1)
        return torch.ones(rotation), torch.zeros(rotation)

    monkeypatch.setattr(v4.DeepseekV4RotaryEmbedding, "forward", straight)


def config_of_v4(chosen):
    return v4.DeepseekV4Config(
        hidden_size=WIDTH,
        head_dim=HEAD_WIDTH,
        num_attention_heads=HEADS,
        q_lora_rank=WIDTH,
        index_n_heads=INDEX_HEADS,
        index_head_dim=INDEX_WIDTH,
        index_topk=chosen,
        compress_rates={
            "compressed_sparse_attention": BLOCK,
            "heavily_compressed_attention": BLOCK,
        },
    )


def compressor_of(kind, chosen=1):
    """Theirs, drawn, without norms of entries; both of its series compress the same."""
    made = kind(config_of_v4(chosen))
    draw_parameters(made)
    parts = [made, *([made.indexer] if hasattr(made, "indexer") else [])]
    with torch.no_grad():
        for part in parts:
            part.kv_norm = torch.nn.Identity()
            if part.kv_proj.out_features == 2 * part.head_dim:
                part.kv_proj.weight[part.head_dim :] = part.kv_proj.weight[: part.head_dim]
    return made


def of_theirs(compressor, x, query):
    """Their softmax over their entries and over a window of keys that are their own values."""
    positions = torch.arange(LENGTH).expand(ROWS, -1)
    entries, closed = compressor(x, x, positions, None, 0)
    own = compressor.kv_proj(x)[:, None, :, :HEAD_WIDTH]
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    near = torch.zeros(LENGTH, LENGTH).masked_fill(
        (distance < 0) | (distance >= WINDOW), float("-inf")
    )
    keys = torch.cat((entries, own), 2)
    hidden = torch.cat((closed, near.expand(ROWS, 1, -1, -1)), -1)
    found, _ = v4.eager_attention_forward(
        SOFTMAX, query, keys, keys, hidden, scaling=HEAD_WIDTH**-0.5
    )
    return own, found


def in_our_order(numbers, series):
    """Of each pair of halves the second, which is for a token's own block, comes first here."""
    return numbers.unflatten(-1, (series, -1)).flip(-2).flatten(-2)


def biases_of(part, series):
    return in_our_order(part.position_bias, series).unflatten(-1, (series, -1))[None]


def test_entries_of_hca_are_those_of_deepseek(agree, unturned):
    theirs = compressor_of(v4.DeepseekV4HCACompressor)
    x, query = drawn(ROWS, LENGTH, WIDTH, dtype=FLOAT), heads_of(HEADS, 1)
    own, wanted = of_theirs(theirs, x, query)
    name = f"hca[block={BLOCK},window={WINDOW}]"
    mine = below_heads(name, heads=HEADS, kv_heads=1, width=HEAD_WIDTH, dtype=FLOAT)
    copy_weights({mine.key_bias: biases_of(theirs, 1), mine.value_bias: biases_of(theirs, 1)})
    gates = theirs.gate_proj(x)[:, None]
    ours = attend(mine, query, own, own, key_extras={KEY_GATE: gates, VALUE_GATE: gates})
    agree(
        name,
        "transformers (DeepSeek-V4)",
        f"{LENGTH} places in blocks of {BLOCK}, one vector for key and value",
        ours.transpose(1, 2),
        wanted,
        inputs={"x": x, "query": query, "gates": theirs.gate_proj.weight},
        note="without its norm of entries, rotary positions and sinks",
    )


@pytest.mark.parametrize("chosen", [1, 3])
def test_entries_of_csa_are_those_of_deepseek(agree, unturned, chosen):
    theirs = compressor_of(v4.DeepseekV4CSACompressor, chosen)
    indexer = theirs.indexer
    x, query = drawn(ROWS, LENGTH, WIDTH, dtype=FLOAT), heads_of(HEADS, 1)
    own, wanted = of_theirs(theirs, x, query)
    options = f"block={BLOCK},chosen={chosen},index_heads={INDEX_HEADS},index_width={INDEX_WIDTH}"
    name = f"csa[{options},window={WINDOW}]"
    mine = below_heads(name, heads=HEADS, kv_heads=1, width=HEAD_WIDTH, dtype=FLOAT)
    copy_weights(
        {
            mine.key_bias: biases_of(theirs, 2),
            mine.value_bias: biases_of(theirs, 2),
            mine.index_bias: biases_of(indexer, 2),
        }
    )
    gates = in_our_order(theirs.gate_proj(x), 2)[:, None]
    ours = attend(
        mine,
        query,
        own,
        own,
        key_extras={
            KEY_GATE: gates,
            VALUE_GATE: gates,
            KEY: indexer.kv_proj(x)[:, None, :, :INDEX_WIDTH],
            INDEX_GATE: in_our_order(indexer.gate_proj(x), 2)[:, None],
        },
        query_extras={
            QUERY: indexer.q_b_proj(x)[:, :, None],
            WEIGHT: indexer.scorer.weights_proj(x)[:, :, None],
        },
        progress=1.0,
    )
    agree(
        name,
        "transformers (DeepSeek-V4)",
        f"{LENGTH} places in blocks of {BLOCK}, {chosen} entries read",
        ours.transpose(1, 2),
        wanted,
        inputs={"x": x, "query": query, "gates": theirs.gate_proj.weight},
        note="without its norms, rotary positions and sinks; its two series compress the same",
    )
