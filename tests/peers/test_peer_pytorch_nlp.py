"""Luong's scores in PyTorch-NLP; its output layer after the context is not compared."""

import pytest

from tests.peers.agreement import attend, below_heads, drawn, peer

attention = peer("torchnlp.nn.attention", "pytorch-nlp")


@pytest.mark.parametrize("name", ["dot", "general"])
def test_a_score_of_luong_is_that_of_pytorch_nlp(agree, name):
    query, context = drawn(2, 4, 6), drawn(2, 7, 6, seed=1)
    theirs = attention.Attention(6, attention_type=name).double()
    weights = theirs(query, context)[1]
    mine = below_heads(name, heads=1, width=6, regime="cross")
    inputs = {"query": query, "context": context}
    if name == "general":
        # ours is the map of the query divided by the square root of the width
        mine.score.weight.data = theirs.linear_in.weight.data.mT[None] * 6**0.5
    found = attend(mine, query[:, None], context[:, None], context[:, None])
    agree(
        name, "pytorch-nlp", "context of every query", found[:, 0], weights @ context, inputs=inputs
    )
