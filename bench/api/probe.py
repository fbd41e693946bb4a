"""A probe: looks at a trained network and says in numbers what its attention does."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from bench.api.axes import Axis
from bench.api.backbone import Backbone
from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.metric import Metric, Scored
from bench.api.task import Task


@dataclass(frozen=True)
class Subject:
    """A trained network and the test examples it is looked at with."""

    backbone: Backbone
    """In evaluation mode; a probe leaves its parameters as they are."""
    task: Task
    batches: tuple[Batch, ...]
    """On the device of the network and arranged by it, never empty."""
    seed: int
    """Of the probe's own draws."""


class Probe(HasCapabilities):
    """One measurement on a trained network.

    Capabilities in `needs` are refused before a model is read; what only the network can tell (a
    mechanism without weights) is refused while measuring.
    """

    metrics: ClassVar[tuple[Metric, ...]]
    """Every metric it may write."""

    def __init__(self, config: Config) -> None:
        super().__init__()

    @abstractmethod
    def measure(self, subject: Subject) -> list[Scored]:
        """Look.

        Raises:
            Refused: This network or this task cannot be looked at in this way.
        """
        raise NotImplementedError


PROBES = Axis[type[Probe]]("probe")
