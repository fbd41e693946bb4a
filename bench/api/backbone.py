"""The network around attention."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from bench.api.axes import Axis
from bench.api.batch import Batch, Sizes
from bench.api.call import Regime
from bench.api.capabilities import Capability
from bench.api.config import Config
from bench.api.errors import Refused
from bench.api.has_capabilities import HasCapabilities
from bench.api.output import Output, OutputSizes
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace


@dataclass(frozen=True)
class Generated:
    """What was said to a batch."""

    tokens: tuple[tuple[int, ...], ...]
    """Without BOS and EOS; ids of the extended vocabulary."""
    steps: int = 0
    """Decoder steps taken."""
    scores: tuple[float, ...] = ()
    """What the search maximized, where it compares sentences."""
    read_shares: tuple[tuple[float, ...], ...] | None = None
    """Share of the source read before each word of a row, EOS too, where the search streams."""
    heard: tuple[tuple[int, ...], ...] | None = None
    """What the decoder read of its own words, where `tokens` shows others in their place."""


def _no_others(variant: Selector, place: object) -> Slot:
    raise Refused(f"{variant} was asked for in a layer, and nothing here builds other variants.")


@dataclass(frozen=True, kw_only=True)
class BackboneParts:
    """What a backbone is built around: the task's sizes and the variant's makers."""

    sizes: Sizes
    attach: Callable[..., Slot]
    """`attach(place: SlotPlace) -> Slot` for the slot that holds the variant."""
    attach_default: Callable[..., Slot]
    """The same for slots that hold ordinary multi-head attention."""
    output: Callable[[OutputSizes], Output]
    attach_named: Callable[[Selector, Any], Slot] = _no_others
    """`attach_named(variant, place)` for slots that hold another variant, by its name."""
    feed_width: Callable[[int], int] = lambda source: 0
    """`Output.feed_width` of the output, before it can be made."""
    slot: str = ""
    """Which slot holds the variant; empty for the backbone's main one."""
    capabilities: frozenset[Capability] = field(default_factory=frozenset)


class Backbone(HasCapabilities):
    """A whole network; `forward` runs it under teacher forcing, `generate` decodes."""

    slots: ClassVar[tuple[str, ...]]
    """Names of the slots that can hold the variant, the main one first."""
    regimes: ClassVar[Mapping[str, Regime]] = {}
    """Regimes of the slots that are not named after theirs."""
    reads_frames: ClassVar[bool] = False
    """Whether sources, or decoder inputs, may be frames instead of words."""
    gives_numbers: ClassVar[bool] = False
    """Whether its output layer may be read as numbers, because nothing that it says is fed back."""
    sized_by: ClassVar[tuple[str, ...]] = ()
    """Options that make the network wider or narrower, for `--match`; the coarse one first."""
    size_of: ClassVar[Mapping[str, str]] = {}
    """Attributes of the config that hold the size, for those of these options whose 0 stands for a
    size that follows from others."""
    output: Output

    def __init__(self, config: Config, parts: BackboneParts) -> None:
        super().__init__()

    @classmethod
    def given(cls, config: Any) -> frozenset[Capability]:
        """Capabilities that this backbone gives under these options."""
        return cls.gives

    @abstractmethod
    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        raise NotImplementedError

    @abstractmethod
    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Logits over the vocabulary; broadcasts over extra dimensions."""
        raise NotImplementedError

    def arrange(self, batch: Batch) -> Batch:
        """The batch as outputs and losses must see it: in the order and number of source states.

        Networks that read the source token by token change nothing; doing it twice is doing it
        once, because such a batch is marked as `arranged`.
        """
        return batch

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode all rows at once, by the search that the backbone was built with."""
        raise Refused(
            f"{type(self).__name__} does not decode; take a metric that does not generate, or "
            "another backbone."
        )

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slots that hold the variant, for parameter counts."""
        return ()

    def aligns(self, batch: Batch) -> bool:
        """Whether weights say where a target looks: over the source, or over itself if it is alone.

        A self-attention slot beside a source has weights over its own sequence: no alignment.
        """
        regimes = {slot.heads.dims.regime for slot in self.variant_slots()}
        return not batch.sources or not regimes & {"causal", "self"}


BACKBONES = Axis[type[Backbone]]("backbone")
