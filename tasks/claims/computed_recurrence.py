"""Computed claims on recurrent layers beside self-attention: gradients, dependent steps, time."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from bench.api.metric import Scored
from bench.api.slot import Slot
from tasks.backbones.recurrent_layers import recurrent
from tasks.claims.places import drawn, slot_of

DISTANCES = (2, 4, 8, 16, 32, 64)
ROWS, HEADS, WIDTH = 64, "multi[heads=4]", 64
"""Of the layers whose gradients are compared."""
TIMED_WIDTH, TIMED_ROWS = 256, 4
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
FEW, MANY = 32, 128
"""Tokens between which dependent steps are compared."""

Layer = Callable[[Tensor], Tensor]


def gradient_by_distance() -> list[Scored]:
    """Gradient of one output at tokens on both sides, as a share of that at the least distance.

    Layers are as they are drawn, bidirectional and equally wide.
    """
    torch.manual_seed(0)
    both_ways = recurrent("lstm", WIDTH, WIDTH // 2, both_ways=True).double()
    layers: dict[str, Layer] = {
        "recurrent": _states(both_ways),
        "attention": _self_attention(slot_of("sinusoid", regime="self", width=WIDTH, head=HEADS)),
    }
    found = []
    for name, layer in layers.items():
        norms = _norms(layer)
        shares = [norms[distance] / norms[DISTANCES[0]] for distance in DISTANCES]
        found += [
            Scored(metric=f"{name}_gradient_share", value=share, axis="distance", x=float(distance))
            for distance, share in zip(DISTANCES, shares, strict=True)
        ]
        found.append(Scored(metric=f"{name}_gradient_share_at_64", value=shares[-1]))
    return found


def time_of_layers() -> list[Scored]:
    """Time of both passes of recurrent layers over that of self-attention, and dependent steps.

    Recurrent layers have two directions, which together are as wide as self-attention; wide ones
    are as wide in each direction.
    """
    torch.manual_seed(0)
    attention = _self_attention(
        slot_of("scaled_dot", regime="self", width=TIMED_WIDTH, head=HEADS).float()
    )
    found = [
        Scored(metric="recurrent_steps_ratio", value=_growth(_cells())),
        Scored(metric="attention_steps_ratio", value=_growth(attention, TIMED_WIDTH)),
    ]
    layers = {
        "lstm": _states(recurrent("lstm", TIMED_WIDTH, TIMED_WIDTH // 2, both_ways=True)),
        "gru": _states(recurrent("gru", TIMED_WIDTH, TIMED_WIDTH // 2, both_ways=True)),
        "wide_lstm": _states(recurrent("lstm", TIMED_WIDTH, TIMED_WIDTH, both_ways=True)),
        "attention": attention,
    }
    for length in LENGTHS:
        beyond = "_beyond_the_width" if length > TIMED_WIDTH else ""
        spent = _seconds(layers, length)
        found += [
            Scored(
                metric=f"{name}_time_ratio{beyond}",
                value=seconds / spent["attention"],
                axis="length",
                x=float(length),
            )
            for name, seconds in spent.items()
            if name != "attention"
        ]
    return found


def _states(layer: nn.Module) -> Layer:
    """The states of a recurrent layer, one a token."""

    def run(x: Tensor) -> Tensor:
        states: Tensor = layer(x)[0]
        return states

    return run


def _self_attention(slot: Slot) -> Layer:
    """Self-attention as a layer runs it: positions are added first."""

    def run(x: Tensor) -> Tensor:
        given = slot.variant.embed(x, 0)
        memory = slot.prepare(given)
        state = slot.start(memory, given)
        return slot.attend(given, memory, state, want_weights=False)[0]

    return run


def _norms(layer: Layer) -> dict[int, float]:
    """Mean norm of the gradient of the middle output with respect to tokens at each distance."""
    middle = DISTANCES[-1]
    x = drawn(ROWS, 2 * middle + 1, WIDTH, seed=1).requires_grad_()
    weights = drawn(ROWS, WIDTH, seed=2)
    (slope,) = torch.autograd.grad((layer(x)[:, middle] * weights).sum(), x)
    norms = slope.norm(dim=-1).mean(0)
    return {far: float(norms[middle - far] + norms[middle + far]) / 2 for far in DISTANCES}


def _cells() -> Layer:
    """A recurrent layer written out step by step, so that its graph shows every step."""
    cell = nn.LSTMCell(8, 8)

    def run(x: Tensor) -> Tensor:
        state: tuple[Tensor, Tensor] | None = None
        for token in x.unbind(1):
            state = cell(token, state)
        assert state is not None, "there are tokens"
        return state[0]

    return run


def _growth(layer: Layer, width: int = 8) -> float:
    """By what the longest chain of operations grows from few tokens to many."""
    chains = [_longest_chain(layer(torch.zeros(1, n, width))) for n in (FEW, MANY)]
    return chains[1] / chains[0]


def _longest_chain(out: Tensor) -> int:
    """Operations of which each waits for the one before, from the graph of the backward pass."""
    depths: dict[Any, int] = {}
    waiting: list[Any] = [out.grad_fn]
    while waiting:
        node = waiting[-1]
        below = [one for one, _ in node.next_functions if one is not None]
        unknown = [one for one in below if one not in depths]
        if unknown:
            waiting += unknown
            continue
        depths[node] = 1 + max((depths[one] for one in below), default=0)
        waiting.pop()
    return depths[out.grad_fn]


def _seconds(layers: Mapping[str, Layer], length: int) -> dict[str, float]:
    """Median time of passes forward and backward, after one that is not counted.

    Layers take turns, so that what else the machine does slows all of them.
    """
    x = drawn(TIMED_ROWS, length, TIMED_WIDTH, seed=1).float().requires_grad_()
    spent: dict[str, list[float]] = {name: [] for name in layers}
    for _ in range(8 if length <= TIMED_WIDTH else 4):
        for name, layer in layers.items():
            start = time.perf_counter()
            layer(x).sum().backward()
            spent[name].append(time.perf_counter() - start)
    return {name: median(found[1:]) for name, found in spent.items()}
