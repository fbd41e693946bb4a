"""Masks by distance at random sizes: rows of the mask, and copied windows, against the loops."""

import pytest
import torch

from bench.api.gathered import spread
from bench.api.one_query import OneQuery
from bench.api.source import Source

OPTIONS = {
    "sliding_window": {"window": (1, 7)},
    "dilated": {"window": (1, 5), "dilation": (1, 4)},
    "streaming": {"window": (1, 6), "sinks": (0, 4)},
    "block_local": {"block": (1, 5)},
    "strictly_past": {},
    "strided": {"stride": (2, 5), "summary": (1, 2)},
    "longformer": {"window": (1, 4), "dilation": (1, 3), "global_tokens": (0, 3)},
    "bigbird": {"block": (1, 4), "near": (0, 2), "ends": (0, 2), "random": (0, 3), "seed": (0, 9)},
}
"""Whole-number options of each mask, and where they are drawn from."""
CAUSAL_ONLY = ("streaming", "strictly_past", "strided")
HEADS = 2


def drawn(mask, seed):
    """A selector, a regime, the length of a row and of a batch, and where a call begins."""
    rng = torch.Generator().manual_seed(seed)

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=rng))

    options = [f"{name}={number(*bounds)}" for name, bounds in OPTIONS[mask].items()]
    if mask == "strided" and number(0, 1):
        options.append("pattern=fixed")
    causal = mask in CAUSAL_ONLY or number(0, 1) == 1
    length = number(1, 15)
    keys = length if causal else length + number(0, 3)
    offset = number(0, length - 1) if causal else 0
    return f"{mask}[{','.join(options)}]", causal, length, keys, offset


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mask", OPTIONS)
def test_rows_of_the_mask_are_those_of_the_loops(component, ask, mask, seed):
    selector, causal, length, keys, offset = drawn(mask, seed)
    regime = "causal" if causal else "self"
    made = component("mask", selector, heads=HEADS, regime=regime)
    blank = torch.zeros(1, HEADS, keys, 3, dtype=torch.float64)
    real = torch.arange(keys)[None] < length
    call = ask(blank[:, :, offset:length], Source(blank, blank, real), offset=offset, causal=causal)
    allowed, _ = made.window(call)
    allowed = allowed.expand(1, HEADS, length - offset, keys)
    assert not allowed[..., length:].any(), "padding"
    for head in range(HEADS):
        for place in range(offset, length):
            row = blank[0, 0, :length]
            one = OneQuery(row[0], row, row, head, place, causal, "expected")
            wanted, _ = made.oracle(one)
            assert allowed[0, head, place - offset, :length].tolist() == wanted, (selector, place)
    if made.window_width is not None:
        windows = made.gather(call)
        copied = spread(windows.allowed.double(), windows.keys, keys)
        assert torch.equal(copied, allowed.double()), "each key once, and none beside"
