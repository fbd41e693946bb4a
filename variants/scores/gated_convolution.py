"""Layers of convolutional attention, shared by its score and by its copying output.

Allamanis, Peng & Sutton, 2016, https://arxiv.org/abs/1602.03001, section 2.1: a map of features of
the source is gated by the query and divided by its norm, and a last convolution reads it.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from variants.precision import at_least_single

EPS = 1e-12
SOURCE_SLOPE = 0.1
GATE_SLOPE = 0.01


class Mapped(NamedTuple):
    """What depends on the source alone."""

    channel: Float[Tensor, "B H S C"]
    """The last convolution of every channel by itself."""
    squares: Float[Tensor, "B H 1 C"]
    """Squared norm of every channel of the map, in float32 at least."""


def source_map(
    conv1: nn.Conv1d,
    conv2: nn.Conv1d,
    key: Float[Tensor, "B C S"],
    padding: Bool[Tensor, "B 1 S"],
) -> Float[Tensor, "B W S"]:
    """Both layers; zeros instead of padding before, between and after."""
    layer1 = _convolve(conv1, key.masked_fill(padding, 0.0))
    layer1 = functional.leaky_relu(layer1, SOURCE_SLOPE)
    layer2 = _convolve(conv2, layer1.masked_fill(padding, 0.0))
    return layer2.masked_fill(padding, 0.0)


def last_by_channel(layer2: Float[Tensor, "B W S"], last: Tensor, heads: int) -> Mapped:
    """All that follows the gate is linear in the map, so this is done once per source.

    Args:
        layer2: The map, heads side by side.
        last: Weights of the last convolution, channels of all heads first, width last.
        heads: H.
    """
    channels = layer2.shape[1]
    last = last.reshape(channels, 1, -1)
    mixed = functional.conv1d(_pad(layer2, last.shape[2]), last, groups=channels)
    split = (heads, channels // heads)
    return Mapped(
        mixed.unflatten(1, split).transpose(-1, -2),
        at_least_single(layer2).square().sum(-1).unflatten(1, split).unsqueeze(2),
    )


def unit_gate(
    gate: Float[Tensor, "B H L C"], squares: Float[Tensor, "B H 1 C"]
) -> Float[Tensor, "B H L C"]:
    """LeakyReLU of the gate over the norm of the map that it gates.

    Half precision has zero for EPS, and infinity for what a map of zeros makes of a gate.
    """
    wide = functional.leaky_relu(at_least_single(gate), GATE_SLOPE)
    norm = ((wide.square() * squares).sum(-1, keepdim=True) + EPS).sqrt()
    unit = wide / norm
    if unit.dtype != gate.dtype:
        most = torch.finfo(gate.dtype).max
        unit = unit.clamp(-most, most).to(gate.dtype)
    return unit


def _pad(x: Float[Tensor, "B C S"], width: int) -> Float[Tensor, "B C P"]:
    return functional.pad(x, (width // 2, (width - 1) // 2))


def _convolve(layer: nn.Conv1d, x: Float[Tensor, "B C S"]) -> Float[Tensor, "B W S"]:
    return layer(_pad(x, layer.kernel_size[0]))


def loop_convolve(layer: nn.Conv1d, x: Tensor, head: int) -> Tensor:
    """One group of a convolution over `S C` by loops; zeros beyond both ends."""
    size, width = layer.out_channels // layer.groups, layer.kernel_size[0]
    weight = layer.weight[head * size : (head + 1) * size]
    assert layer.bias is not None, "every layer has a bias"
    found = []
    for place in range(x.shape[0]):
        total = layer.bias[head * size : (head + 1) * size]
        for tap in range(width):
            at = place + tap - width // 2
            if 0 <= at < x.shape[0]:
                total = total + weight[:, :, tap] @ x[at]
        found.append(total)
    return torch.stack(found)
