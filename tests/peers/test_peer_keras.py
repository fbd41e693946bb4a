"""Keras on torch: Bahdanau's and Luong's scores."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import torch

from tests.peers.agreement import attend, below_heads, drawn, peer

keras = peer("keras")
FLOAT = torch.float32
"""Keras turns float64 into it."""


def test_bahdanaus_score_is_that_of_keras_behind_equal_maps(agree):
    query, key = drawn(2, 4, 6, dtype=FLOAT), drawn(2, 7, 6, seed=1, dtype=FLOAT)
    mine = below_heads("additive[width=6]", heads=1, width=6, regime="cross", dtype=FLOAT)
    score = mine.score
    theirs = keras.layers.AdditiveAttention(dtype="float32")
    theirs.build([(2, 4, 6), (2, 7, 6), (2, 7, 6)])
    theirs.scale.assign(score.v[0, :, 0].detach())
    mapped = query @ score.query_map[0], key @ score.key_map[0] + score.bias[0]
    real = torch.arange(7) < torch.tensor([[7], [4]])
    agree(
        "additive",
        "keras (AdditiveAttention)",
        "padded keys, maps applied outside",
        attend(mine, query[:, None], key[:, None], key[:, None], mask=real)[:, 0],
        theirs([mapped[0], key, mapped[1]], mask=[None, real]),
        inputs={"query": query, "key": key, "map": score.query_map},
    )


def test_luongs_dot_is_that_of_keras(agree):
    query = drawn(2, 4, 6, dtype=FLOAT)
    key, value = (drawn(2, 7, 6, seed=seed, dtype=FLOAT) for seed in (1, 2))
    theirs = keras.layers.Attention(dtype="float32")
    mine = below_heads("dot", heads=1, width=6, regime="cross", dtype=FLOAT)
    agree(
        "dot",
        "keras (Attention)",
        "keys unlike values",
        attend(mine, query[:, None], key[:, None], value[:, None])[:, 0],
        theirs([query, value, key]),
        inputs={"query": query, "key": key, "value": value},
    )
