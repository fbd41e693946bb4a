"""Gated recurrent layers, GRU or LSTM, as encoders and decoders use them."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.source import Tree, leaf
from tasks.backbones.packed_layers import read_packed, torch_would_slice

Kept = dict[str, Tensor | Tree]
"""What a decoder carries beside its top state; a decoder adds its own."""
Cell = Annotated[Literal["gru", "lstm"], Choices(("gru", "lstm"))]
Summary = Annotated[Literal["last", "mean"], Choices(("last", "mean"))]


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(Config):
    """Options of everything that is made of recurrent layers."""

    cell: Cell = "gru"
    """Gated recurrent unit, or long short-term memory."""
    layers: Annotated[int, IntRange(1, 4)] = 1
    """Layers, one above the other."""

    def __post_init__(self) -> None:
        """Check the number of layers."""
        if self.layers < 1:
            raise InvalidConfig(f"layers must be at least 1, got {self.layers}.")


def recurrent(
    cell: Literal["gru", "lstm"],
    inputs: int,
    hidden: int,
    *,
    layers: int = 1,
    both_ways: bool = False,
) -> nn.GRU | nn.LSTM:
    """Build layers of a cell; `hidden` is the width of one direction."""
    kind = nn.GRU if cell == "gru" else nn.LSTM
    return kind(inputs, hidden, layers, batch_first=True, bidirectional=both_ways)


def encode(
    rnn: nn.Module, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"] | None
) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "n B D2"]]:
    """Run over the real tokens; padded states are zero. Returns states, and last ones a layer.

    Of a row without real tokens the last states are zero, too.
    """
    if mask is None:
        states, last = rnn(x)
        return states, last[0] if isinstance(last, tuple) else last
    lengths = mask.sum(1).cpu()
    # no row may be empty for torch
    packed = pack_padded_sequence(x, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
    assert isinstance(rnn, nn.GRU | nn.LSTM), "`recurrent` makes nothing else"
    slices = torch_would_slice(rnn, packed)
    run, last = read_packed(rnn, packed) if slices else rnn(packed)
    states, _ = pad_packed_sequence(run, batch_first=True, total_length=x.shape[1])
    last = last[0] if isinstance(last, tuple) else last
    if not lengths.all():  # known to the processor already, so that no GPU is waited for
        real = mask.any(1, keepdim=True)
        states, last = torch.where(real.unsqueeze(2), states, 0.0), torch.where(real, last, 0.0)
    return states, last


def begin(rnn: nn.GRU | nn.LSTM, hidden: Float[Tensor, "B D"]) -> Kept:
    """What a decoder keeps beside the state of its top layer: the layers below, and cells.

    Every layer starts from the same state; cells start at zero.
    """
    layers = hidden.unsqueeze(1).expand(-1, rnn.num_layers, -1)
    kept: Kept = {}
    if rnn.num_layers > 1:
        kept["below"] = layers[:, 1:]
    if isinstance(rnn, nn.LSTM):
        kept["cell"] = torch.zeros_like(layers)
    return kept


def advance(
    rnn: nn.GRU | nn.LSTM, x: Float[Tensor, "B L E"], hidden: Float[Tensor, "B D"], kept: Tree
) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B D"], Kept]:
    """Read some words; returns the top layer's states, its last one, and what to keep."""
    layers = hidden.unsqueeze(0)
    if rnn.num_layers > 1:
        layers = torch.cat((leaf(kept, "below").transpose(0, 1), layers))
    given = layers.contiguous()
    if isinstance(rnn, nn.LSTM):
        cells = leaf(kept, "cell").transpose(0, 1).contiguous()
        states, (last, cells) = rnn(x, (given, cells))
        after: Kept = {"cell": cells.transpose(0, 1)}
    else:
        states, last = rnn(x, given)
        after = {}
    if rnn.num_layers > 1:
        after["below"] = last[:-1].transpose(0, 1)
    return states, last[-1], after
