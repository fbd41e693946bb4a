"""attn-gym: masks for PyTorch's flexible attention."""

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, create_mask, or_masks
from torch.nn.functional import scaled_dot_product_attention

from tests.peers.agreement import attend, below_heads, drawn, peer

masks = peer("attn_gym.masks", "attn-gym")

HEADS, LENGTH, WIDTH = 4, 21, 6


def hold(agree, selector, compared, of_heads, regime="causal", note=""):
    """Its mask of every head, or of all, in the attention of PyTorch."""
    inputs = {
        name: drawn(2, HEADS, LENGTH, WIDTH, seed=seed)
        for seed, name in enumerate(("query", "key", "value"))
    }
    if regime == "causal":
        of_heads = [and_masks(masks.causal_mask, one) for one in of_heads]
    seen = [create_mask(one, 1, 1, LENGTH, LENGTH, device="cpu") for one in of_heads]
    theirs = scaled_dot_product_attention(
        *inputs.values(), attn_mask=torch.cat(seen, 1).repeat(1, HEADS // len(seen), 1, 1)
    )
    mine = below_heads(selector, heads=HEADS, width=WIDTH, regime=regime)
    agree(selector, "attn-gym", compared, attend(mine, **inputs), theirs, inputs=inputs, note=note)


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_a_window_with_gaps_is_that_of_attn_gym(agree, regime):
    window, dilation = 4, 3
    comb = masks.generate_dilated_sliding_window((window - 1) * dilation, dilation)
    way = "causal" if regime == "causal" else "both directions"
    name = f"dilated[dilation={dilation},window={window}]"
    hold(agree, name, f"{LENGTH} places, {way}", [comb], regime)


def test_sinks_and_a_window_are_the_global_tokens_of_attn_gym_under_causality(agree):
    window, sinks = 5, 3
    sees_all = torch.arange(LENGTH) < sinks
    both = masks.generate_global_sliding_window(window - 1, sees_all)
    hold(
        agree,
        f"streaming[sinks={sinks},window={window}]",
        f"{LENGTH} places, its global tokens and its window, causal",
        [both],
    )


@pytest.mark.parametrize("heads", ["split", "merged"])
def test_strides_are_a_window_with_gaps_as_long_as_the_text(agree, heads):
    stride = 4
    near = masks.generate_sliding_window(stride)
    far = masks.generate_dilated_sliding_window(LENGTH, stride)
    hold(
        agree,
        f"strided[heads={heads},stride={stride}]",
        f"{LENGTH} places, its window and its window with gaps",
        [near, far] if heads == "split" else [or_masks(near, far)],
        note="it has no mask of this name; two of its masks make this one",
    )
