"""Positions that are added to the input, in models of transformers."""

import pytest
import torch

from bench.api.call import Dims
from bench.api.registry import make
from bench.api.selector import parse
from tests.peers.agreement import drawn, peer

fsmt = peer("transformers.models.fsmt.modeling_fsmt")
marian = peer("transformers.models.marian.modeling_marian")


@pytest.mark.parametrize(
    ("selector", "model"),
    [
        ("sinusoid[layout=halves]", "Marian"),
        ("sinusoid[layout=halves,spacing=ends]", "FSMT"),
    ],
)
def test_sinusoids_are_those_of_a_model(agree, selector, model):
    if model == "Marian":
        table = marian.MarianSinusoidalPositionalEmbedding(40, 12)
        theirs = table.create_weight() if hasattr(table, "create_weight") else table.weight
    else:
        theirs = fsmt.SinusoidalPositionalEmbedding.get_embedding(40, 12, None)
    mine = make("position", parse(selector), Dims(2, 2, 6, 6, 6, 12, regime="self"))
    x = drawn(1, 40, 12, dtype=torch.float32)
    agree(
        selector,
        f"transformers ({model})",
        "40 places of width 12",
        mine.embed(x, 0),
        x + theirs[None],
        inputs={"x": x},
    )
