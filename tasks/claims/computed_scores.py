"""Computed claims on scores: parameters, widths, variance, gradients of softmax, memory, time."""

import time
from statistics import median

import torch
from torch import Tensor

from bench.api.errors import Refused
from bench.api.metric import Scored
from bench.api.slot import Slot
from tasks.claims.places import drawn, slot_of, weights_of

WIDTHS = (2, 8, 32, 128, 512, 2048)
GRADIENT_WIDTHS = (16, 64, 256, 1024)
PAIRS = 20_000


def parameters_and_widths() -> list[Scored]:
    """Parameters of three scores on raw states, and whether unequal widths are accepted."""
    found = [Scored(metric="dot_parameters_count", value=float(_parameters("dot")))]
    for name in ("dot", "additive", "general"):
        try:
            slot_of(name, width=8, source=6)
            accepts = 1.0
        except Refused:
            accepts = 0.0
        found.append(Scored(metric=f"{name}_accepts_unequal_count", value=accepts))
    return found


def variance_of_products() -> list[Scored]:
    """Mean and variance of q.k for independent normal q and k, by width."""
    found = []
    for width in WIDTHS:
        total = (_normal(width, width) * _normal(width, width + 1)).sum(1)
        mean, variance = float(total.mean()), float(total.var())
        values = {
            "mean_in_deviations_count": mean / width**0.5,
            "variance_over_width_ratio": variance / width,
            "scaled_variance_ratio": variance * _scale(width) ** 2,
        }
        found += [Scored(metric=m, value=v, axis="width", x=width) for m, v in values.items()]
    return found


def gradient_of_softmax() -> list[Scored]:
    """|diag(a) - a a^T| at initialization by width, as a share of that at the smallest width."""
    found = []
    for name in ("dot", "scaled_dot"):
        norms = {width: _jacobian(name, width) for width in GRADIENT_WIDTHS}
        least = GRADIENT_WIDTHS[0]
        found += [
            Scored(
                metric=f"{name}_gradient_ratio",
                value=norms[width] / norms[least],
                axis="width",
                x=width,
            )
            for width in GRADIENT_WIDTHS[1:]
        ]
    return found


def cost_of_scores() -> list[Scored]:
    """Bytes kept for backward and time of both passes, additive over scaled dot product."""
    found = []
    for length in (64, 128):
        kept = {name: _kept_bytes(slot_of(name, width=64).float(), length) for name in PAIR}
        spent = {name: _seconds(slot_of(name, width=64).float(), length) for name in PAIR}
        ratios = {
            "kept_bytes_ratio": kept["additive"] / kept["scaled_dot"],
            "time_ratio": spent["additive"] / spent["scaled_dot"],
        }
        found += [Scored(metric=m, value=v, axis="length", x=length) for m, v in ratios.items()]
    return found


PAIR = ("additive", "scaled_dot")


def _normal(width: int, seed: int) -> Tensor:
    """Vectors of independent numbers of variance one, in float32, which takes half the time."""
    return torch.randn(PAIRS, width, generator=torch.Generator().manual_seed(seed))


def _parameters(name: str) -> int:
    return sum(one.numel() for one in slot_of(name).parameters())


def _scale(width: int) -> float:
    """By what the scaled score multiplies a product: read off from its weights."""
    slot = slot_of("scaled_dot", width=width)
    query = torch.zeros(1, 1, width, dtype=torch.float64)
    key = torch.zeros(1, 2, width, dtype=torch.float64)
    query[..., 0] = 1.0
    key[:, 0, 0] = 1.0
    first, second = weights_of(slot, query, key)[0, 0, 0].tolist()
    return float(torch.tensor(first / second, dtype=torch.float64).log())


def _jacobian(name: str, width: int) -> float:
    """Mean Frobenius norm of the softmax Jacobian over 64 sets of 32 keys."""
    slot = slot_of(name, width=width)
    a = weights_of(slot, drawn(64, 1, width, seed=1), drawn(64, 32, width, seed=2))[:, 0, 0]
    jacobian = torch.diag_embed(a) - a.unsqueeze(2) * a.unsqueeze(1)
    return float(jacobian.flatten(1).norm(dim=1).mean())


def _kept_bytes(slot: Slot, length: int) -> int:
    """Bytes of tensors that autograd keeps for the backward pass, each storage once."""
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        _forward(slot, length)
    return sum(kept.values())


def _forward(slot: Slot, length: int) -> Tensor:
    queries = drawn(4, length, 64, seed=1).float().requires_grad_()
    source = drawn(4, length, 64, seed=2).float().requires_grad_()
    memory = slot.prepare(source)
    start = slot.start(memory, queries)
    return slot.attend(queries, memory, start, want_weights=False)[0].sum()


def _seconds(slot: Slot, length: int) -> float:
    """Median of seven passes forward and backward, after one that is not counted."""
    spent = []
    for _ in range(8):
        start = time.perf_counter()
        _forward(slot, length).backward()
        spent.append(time.perf_counter() - start)
    return median(spent[1:])
