"""Search: which words are said, given what a decoder thinks of each."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.backbone import Generated
from bench.api.batch import Batch, Sizes
from bench.api.call import Read
from bench.api.capabilities import NOTHING, Capability
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.trace import Trace


@runtime_checkable
class Walk(Protocol):
    """Rows on their way through a decoder; never changed in place."""

    def step(self, words: Int[Tensor, "B 1"]) -> "Said":
        """Read the words said last (extended ids), and think about the next ones."""
        ...

    def repeat(self, times: int) -> "Walk":
        """Let every row stand `times` times, its copies beside each other."""
        ...

    def reorder(self, rows: Int[Tensor, " B"]) -> "Walk":
        """Put other rows' paths in the place of rows; a path never leaves its source."""
        ...


@runtime_checkable
class StreamingWalk(Walk, Protocol):
    """A walk that rows can leave once they have ended, so that they read no further."""

    def select(self, rows: Int[Tensor, " n"]) -> "StreamingWalk":
        """Go on with these rows alone; their sources come with them."""
        ...


class Said(NamedTuple):
    """What a decoder thinks of the next word."""

    log_probs: Float[Tensor, "B VX"]
    trace: Trace
    """Of the one step."""
    walk: Walk

    @property
    def weights(self) -> Float[Tensor, "B S"]:
        """Attention of the step."""
        return self.trace.weights.squeeze(1)


class Search(HasCapabilities):
    """Turns what a decoder thinks into what it says."""

    read: ClassVar[Read | None] = None
    """How attention is read meanwhile; None for each mechanism's own way of being scored."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes

    @classmethod
    def wanted(cls, config: Any) -> frozenset[Capability]:
        """Capabilities that this search needs under these options."""
        return NOTHING

    @abstractmethod
    def decode(self, walk: Walk, batch: Batch, max_length: int) -> Generated:
        """Say something for every row of the batch; `walk` stands before the first word."""
        raise NotImplementedError


SEARCHES = Axis[type[Search]]("search")
