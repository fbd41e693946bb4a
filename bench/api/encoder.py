"""Encoders: the states that are attended to, and the order in which a source is read."""

from abc import abstractmethod
from types import MappingProxyType
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.batch import Batch, Sizes
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.trace import Mode, Terms


class Encoded(NamedTuple):
    """A source after its encoder."""

    states: Float[Tensor, "B S De"]
    mask: Bool[Tensor, "B S"] | None
    summary: Float[Tensor, "B Ds"]
    """What initializes a decoder: last states, or their mean."""
    terms: Terms = MappingProxyType({})
    """Values of each token: `log_prob` of a draw, `selected`, and 1 in `real` unless it pads."""


class Encoder(HasCapabilities):
    """Turns embedded tokens into the states that are attended to."""

    output_width: int
    summary_width: int
    stride: int = 1
    """Tokens per state; an encoder with more removes `source_tokens` and
    `source_states`."""
    backward: range = range(0)
    """Units of the summary that came from reading the source backwards."""

    def __init__(self, config: Config, embedding_width: int, hidden: int) -> None:
        super().__init__()

    def adapt(self, sizes: Sizes) -> None:
        """Take on what only the task knows; called once, when the backbone has been built."""

    @abstractmethod
    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Encode; padded positions never change real ones."""

    def read(
        self,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        batch: Batch,
        mode: Mode,
    ) -> Encoded:
        """Encode the words of a batch; an encoder may take more than words from it, or draw."""
        found: Encoded = self(x, mask)
        return found

    def arrange(self, batch: Batch) -> Batch:
        """Gold and extended ids of a batch as they line up with the states."""
        return batch if self.stride == 1 else batch.folded(self.stride)


class SourceOrder(HasCapabilities):
    """The order in which a backbone reads its sources."""

    def __init__(self, config: Config, eos: int) -> None:
        super().__init__()

    @abstractmethod
    def arrange(self, batch: Batch) -> Batch:
        """Sources, gold and extended ids in this order."""


ENCODERS = Axis[type[Encoder]]("encoder")
SOURCE_ORDERS = Axis[type[SourceOrder]]("source_order")
