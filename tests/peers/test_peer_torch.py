"""torch's own attention: nn.MultiheadAttention and scaled_dot_product_attention."""

import torch
from torch import nn
from torch.nn import functional

import variants
from tests.peers.agreement import attend, below_heads, drawn


def test_multi_head_attention_is_that_of_torch_with_its_weights(agree):
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    for index, parameter in enumerate(theirs.parameters()):
        parameter.data = drawn(*parameter.shape, seed=index, scale=0.5).detach()
    mine = variants.as_multihead("mha[bias=true]", 12, 3, batch_first=True).double()
    mine.load_state_dict(theirs.state_dict())
    x = drawn(2, 9, 12, seed=5)
    padding = torch.arange(9) >= torch.tensor([[9], [6]])
    agree(
        "mha",
        "torch (MultiheadAttention)",
        "padded self-attention, gradient of the output map",
        mine(x, x, x, key_padding_mask=padding)[0],
        theirs(x, x, x, key_padding_mask=padding)[0],
        inputs={
            "x": x,
            "output map": (mine.attention.heads.to_output.weight, theirs.out_proj.weight),
        },
    )


def test_a_causal_scaled_dot_product_is_that_of_torch(agree):
    query, key, value = (drawn(2, 3, 11, 5, seed=seed) for seed in range(3))
    mine = attend(below_heads("scaled_dot", heads=3, width=5), query, key, value)
    agree(
        "scaled_dot",
        "torch (scaled_dot_product_attention)",
        "causal self-attention of heads",
        mine,
        functional.scaled_dot_product_attention(query, key, value, is_causal=True),
        inputs={"query": query, "key": key, "value": value},
    )
