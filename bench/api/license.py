"""Terms of data: their name, and whether examples may be passed on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class License:
    """Terms under which the data of a task stand."""

    name: str
    """As the source states it, with the data set where it is one of several."""
    redistributable: bool
    """Whether anybody may pass examples on, so that a published report may print them."""

    def __str__(self) -> str:
        return self.name


GENERATED = License("open (generated)", redistributable=True)
"""Terms of data that are drawn here, by rule."""
