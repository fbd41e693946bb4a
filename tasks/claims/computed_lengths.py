"""Computed claims on long sequences: the cost of a token, and the weight of one right key."""

import math

import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.api.kept_bytes import state_bytes
from bench.api.metric import Scored
from tasks.claims.places import drawn, slot_of, weights_of

LENGTHS = (256, 1024, 4096)
"""Tokens before the one that is decoded."""
KEYS = (32, 128, 512, 2048, 4096)
WIDTH, ROWS = 64, 256
COSTLY = {"attention": "scaled_dot"}
CONSTANT = {
    "window": "sliding_window[window=64]",
    "linear": "linear_attention",
    "delta": "gated_deltanet",
}


def cost_and_weight_by_length() -> list[Scored]:
    """Growth of operations and bytes with the length, and what weight a matching key keeps."""
    found = []
    for name, selector in {**COSTLY, **CONSTANT}.items():
        costs = [_token(selector, length) for length in LENGTHS]
        for kind, values in zip(("operations", "bytes"), zip(*costs, strict=True), strict=True):
            found += [
                Scored(metric=f"{name}_{kind}_count", value=value, axis="length", x=float(length))
                for length, value in zip(LENGTHS, values, strict=True)
            ]
            found.append(Scored(metric=f"{name}_{kind}_exponent", value=_exponent(values)))
    for name, selector in (("fixed_scale", "scaled_dot"), ("log_scale", "ssmax")):
        weights = [_weight_of_match(selector, keys) for keys in KEYS]
        found += [
            Scored(metric=f"{name}_weight", value=weight, axis="keys", x=float(keys))
            for keys, weight in zip(KEYS, weights, strict=True)
        ]
        found.append(Scored(metric=f"{name}_weight_left_share", value=weights[-1] / weights[0]))
    return found


@torch.no_grad()
def _token(selector: str, length: int) -> tuple[float, float]:
    """Operations of matrix products for one more token, and bytes that are kept before it."""
    slot = slot_of(selector, regime="causal", width=WIDTH)
    x = drawn(1, length + 1, WIDTH, seed=1)
    before, one = x[:, :length], x[:, length:]
    start = slot.start(None, before)
    _, read = slot.attend(before, None, start, own=(before, None, None), want_weights=False)
    # weights are wanted, because fused code would show no operations
    with FlopCounterMode(display=False) as counter:
        slot.attend(one, None, read.state, own=(one, None, None), want_weights=True)
    return float(counter.get_total_flops()), float(state_bytes([read.state]))


def _exponent(values: tuple[float, ...]) -> float:
    """Power of the length with which a cost grows, from the shortest to the longest."""
    return math.log(values[-1] / values[0]) / math.log(LENGTHS[-1] / LENGTHS[0])


def _weight_of_match(selector: str, keys: int) -> float:
    """Mean weight of the key that equals the query, among independent normal ones."""
    slot = slot_of(selector, width=WIDTH)
    source = drawn(ROWS, keys, WIDTH, seed=1)
    weights = weights_of(slot, source[:, :1], source)
    return float(weights[:, 0, 0, 0].mean())
