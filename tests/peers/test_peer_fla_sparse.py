"""Flash linear attention: softmax attention with windows, sinks and chosen blocks."""

import importlib

import torch

from tests.peers.agreement import attend, below_heads, drawn, peer

peer("fla.ops", "flash-linear-attention")

HEADS, KEY_HEADS, LENGTH, WIDTH, VALUE = 4, 2, 40, 6, 5
FLOAT = torch.float32
FLA = "flash-linear-attention"


def naive(name):
    return importlib.import_module(f"fla.ops.{name}.naive")


def three(dtype=torch.float64):
    shapes = (HEADS, WIDTH), (KEY_HEADS, WIDTH), (KEY_HEADS, VALUE)
    found = [
        drawn(2, heads, LENGTH, width, seed=seed, dtype=dtype)
        for seed, (heads, width) in enumerate(shapes)
    ]
    return dict(zip(("query", "key", "value"), found, strict=True))


def below(selector, dtype=torch.float64):
    return below_heads(
        selector,
        heads=HEADS,
        kv_heads=KEY_HEADS,
        width=WIDTH,
        value_width=VALUE,
        dtype=dtype,
    )


def by_time(inputs):
    """`B L H E`, as theirs."""
    return [x.transpose(1, 2) for x in inputs.values()]


def test_a_window_is_that_of_fla(agree):
    inputs = three()
    theirs, _ = naive("attn").naive_parallel_attn(*by_time(inputs), window_size=7)
    agree(
        "sliding_window[window=7]",
        FLA,
        "40 places, 2 key heads of 4",
        attend(below("sliding_window[window=7]"), **inputs),
        theirs.transpose(1, 2),
        inputs=inputs,
    )


def test_a_learned_sink_in_a_window_is_that_of_fla(agree):
    inputs = three()
    mine = below("learned_sink[mask=sliding_window[window=7]]")
    sink = mine.normalizer.sink
    theirs, _ = naive("attn").naive_parallel_attn(
        *by_time(inputs), window_size=7, sink_bias=sink.flatten()
    )
    agree(
        "learned_sink[mask=sliding_window[window=7]]",
        FLA,
        "40 places, 2 key heads of 4, gradient of the sinks",
        attend(mine, **inputs),
        theirs.transpose(1, 2),
        inputs={**inputs, "sink": sink},
    )


def test_means_chosen_blocks_and_a_window_are_those_of_fla(agree):
    block, chosen, near = 4, 4, 6
    inputs, gates = three(FLOAT), drawn(2, LENGTH, HEADS, 3, seed=5, dtype=FLOAT)
    mine = below(f"nsa[block={block},chosen={chosen},window={near}]", FLOAT)
    query, key, value = by_time(inputs)
    means = [x.unflatten(1, (-1, block)).mean(2) for x in (key, value)]
    ops, scale = naive("nsa"), WIDTH**-0.5
    coarse, _ = ops.naive_nsa_compression(query, *means, block, scale)
    blocks = ops.naive_nsa_topk(query, means[0], chosen, block, scale)
    fine = ops.naive_nsa_selection(query, key, value, blocks, block, scale)
    local, _ = naive("attn").naive_parallel_attn(query, key, value, window_size=near)
    read = torch.stack((coarse, fine, local), -1) * gates.sigmoid()[..., None, :]
    agree(
        f"nsa[block={block},chosen={chosen},window={near}]",
        FLA,
        "40 places, 2 key heads of 4, gradients of the gates",
        attend(mine, **inputs, query_extras={"nsa_gates": gates}),
        read.sum(-1).transpose(1, 2),
        inputs={**inputs, "gates": gates},
        note="the three branches are its own; they are added here, because it wants 16 heads a key",
    )
