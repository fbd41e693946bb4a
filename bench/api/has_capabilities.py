"""What every part of a variant and of a network has: a class that says what it needs and gives."""

from collections.abc import Mapping
from typing import ClassVar

from bench.api.capabilities import NOTHING, Capability, check_capabilities
from bench.api.start import Starting


class HasCapabilities(Starting):
    """A module whose class says what it needs, gives, removes and does not support."""

    needs: ClassVar[frozenset[Capability]] = NOTHING
    gives: ClassVar[frozenset[Capability]] = NOTHING
    removes: ClassVar[frozenset[Capability]] = NOTHING
    """What another part gives and this one makes untrue."""
    unsupported: ClassVar[Mapping[Capability, str]] = {}
    """Reason of each capability that it does not go with; `padding` is in every batch, and nothing
    may do without."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_capabilities(cls.__name__, cls.needs, cls.gives, cls.removes, cls.unsupported)
        assert "padding" not in cls.unsupported, (
            f"{cls.__name__}: batches are padded everywhere, so that padding cannot be unsupported"
        )
