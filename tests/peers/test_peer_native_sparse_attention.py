"""native-sparse-attention-pytorch: means of blocks, chosen blocks and a window, as one module.

Its options, and a module of ours that compresses blocks to their means, make its blocks ours; its
rotations turn by nothing. What has no option is gone around:

- A query reads the mean of a block only behind the last token of the block. In the paper (equation
  7), in flash-linear-attention and here a block may end at the query, so the last query of each
  block is not compared.
- A key stands before the means. Here its value is zero, which is what we read where there is no
  mean, and it has no weight beside a mean.
- Only the own block is chosen in any case. Marks in queries and keys make the first block and the
  one before the own one weigh most, so that these are chosen, too.
- Heads that share keys choose by the mean of their energies. In the paper (section 3.3) and here
  they add their weights. The numbers drawn for two key heads are some on which both agree.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.peers.agreement import attend, below_heads, draw_parameters, drawn, peer

library = peer("native_sparse_attention_pytorch", "native-sparse-attention-pytorch")

HEADS, LENGTH, BLOCK, WINDOW = 4, 30, 4, 6
BLOCKS = -(-LENGTH // BLOCK)  # the last one stays open
STATES, UNMARKED = 10, 6
WIDTH = UNMARKED + BLOCKS


class Mean(nn.Module):
    """Compress blocks, `B H N S E`, to their means."""

    def forward(self, blocks):
        return blocks.mean(3)


def marks(kv_heads):
    """What queries and keys have in channels of their own: a query wants blocks, a key says its."""
    own = torch.arange(LENGTH) // BLOCK
    wanted = functional.one_hot((own - 1).clamp(min=0), BLOCKS)
    wanted[:, 0] = 1
    found = torch.zeros(LENGTH, HEADS + 2 * kv_heads, WIDTH, dtype=torch.float64)
    found[:, :HEADS, UNMARKED:] = 8 * wanted[:, None]
    found[:, HEADS:-kv_heads, UNMARKED:] = functional.one_hot(own, BLOCKS)[:, None]
    return found.flatten(1)


def module(kv_heads, chosen):
    """Its module with marks; its numbers count neither the own key nor the own block."""
    made = library.SparseAttention(
        dim=STATES,
        dim_head=WIDTH,
        heads=HEADS,
        kv_heads=kv_heads,
        causal=True,
        norm=False,
        sliding_window_size=WINDOW - 1,
        compress_block_size=BLOCK,
        compress_block_sliding_stride=BLOCK,
        selection_block_size=BLOCK,
        num_selected_blocks=chosen - 1,
        compress_mlp=Mean(),
    ).double()
    draw_parameters(made, scale=0.3)
    memory = made.compress_mem_kv
    within = made.k_intrablock_positions, made.v_intrablock_positions
    for unused in (made.rotary_emb.freqs, memory, *within):
        nn.init.zeros_(unused)
    with torch.no_grad():
        memory[0, ..., UNMARKED] = -40  # all queries want the first block, so they turn from this
        rows = made.to_qkv.weight.unflatten(0, (-1, WIDTH))
        rows[:-kv_heads, UNMARKED:] = 0
    added = marks(kv_heads)
    made.to_qkv.register_forward_hook(lambda *call: call[-1] + added)
    return made


@pytest.mark.parametrize(("kv_heads", "chosen"), [(HEADS, 4), (2, 5), (2, BLOCKS)])
def test_three_branches_are_those_of_its_module(agree, kv_heads, chosen):
    theirs, x = module(kv_heads, chosen), drawn(2, LENGTH, STATES, seed=30)
    name = f"nsa[block={BLOCK},chosen={chosen},window={WINDOW}]"
    mine = below_heads(name, heads=HEADS, kv_heads=kv_heads, width=WIDTH)
    maps, gates = theirs.to_qkv(x).unflatten(2, (-1, WIDTH)), theirs.to_strategy_combine[0]
    found = attend(
        mine,
        *maps.transpose(1, 2).split((HEADS, kv_heads, kv_heads), 1),
        query_extras={"nsa_gates": gates(x).unflatten(2, (HEADS, 3))},
    )
    same = torch.arange(LENGTH) % BLOCK != BLOCK - 1
    left = "all blocks" if chosen == BLOCKS else f"{chosen} blocks of {BLOCKS}"
    agree(
        name,
        "native-sparse-attention-pytorch",
        f"{LENGTH} places, {kv_heads} key heads of {HEADS}, {left}, gradients of all maps",
        theirs.combine_heads(found.transpose(1, 2).flatten(2))[:, same],
        theirs(x)[:, same],
        inputs={
            "x": x,
            "maps": theirs.to_qkv.weight,
            "gates": gates.weight,
            "shifts": gates.bias,
            "output": theirs.combine_heads.weight,
        },
        note="its blocks are compressed to means, and marks make it choose the two that we force; "
        "without the last query of each block, which does not read the mean of its block there",
    )
