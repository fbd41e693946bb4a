"""Losses: terms added to the likelihood, which may look at a whole forward pass."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.trace import Trace


@dataclass(frozen=True)
class LossInputs:
    """What a loss may see."""

    trace: Trace
    nll: Float[Tensor, "B ..."]
    """One number a row where the output is `sequence_only`."""
    batch: Batch
    progress: float
    copies: int = 1
    """Rows that follow each other and are one example, drawn anew."""


class LossSizes(NamedTuple):
    """What a loss with parameters of its own must know of the network."""

    source: int
    """Width of the values of a key, all heads together; 0 without attention."""
    states: int = 0
    """Width of decoder states."""
    embedded: int = 0
    """Width of decoder inputs."""


class Loss(HasCapabilities):
    """A term added to the negative log likelihood; a baseline is carried, never kept on `self`."""

    terms_of_source: ClassVar[tuple[str, ...]] = ()
    """What it reads of each source token that an encoder says, by name, besides `real`."""
    copies: int = 1
    """How often each example must stand in a training batch, for losses that compare draws."""

    def __init__(self, config: Config) -> None:
        super().__init__()

    def attach(self, sizes: LossSizes) -> None:
        """Make the parameters, where there are any; called once, before training."""

    def init(self) -> dict[str, Tensor]:
        """What to carry from step to step, part of a checkpoint."""
        return {}

    @abstractmethod
    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """The term (nats per target token), and the next carry."""
        raise NotImplementedError

    @abstractmethod
    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """The part of one example in the term, by plain loops (nats, not divided by targets).

        Summed over a batch and divided by its scored targets this is the term.

        Args:
            inputs: One row without padding, or the `copies` of one example; all targets count.
            carry: What was carried.
        """
        raise NotImplementedError


class JointLoss(HasCapabilities):
    """A term that couples the two directions of a jointly trained pair."""

    def __init__(self, config: Config) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """The term (nats per target token, of the mean of both directions' targets)."""
        raise NotImplementedError

    @abstractmethod
    def oracle(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """The part of one pair without padding, by plain loops (nats, not divided by targets)."""
        raise NotImplementedError


LOSSES = Axis[type[Loss]]("loss")
JOINTS = Axis[type[JointLoss]]("joint")
