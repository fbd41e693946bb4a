"""Mechanisms whose queries and keys can be turned by positions, as in rotary positions.

Su et al., 2021, https://arxiv.org/abs/2104.09864, section 3.2: a mechanism that sees queries and
keys through their dot products alone then sees differences of places alone.
"""

from typing import ClassVar

from bench.api.errors import Refused
from bench.api.history import History
from bench.api.position import Position
from bench.api.variant import Variant


class Turned(Variant):
    """A mechanism with the axis `position`: what turns queries and keys, or is added to the input.

    What a position adds to energies or outputs has no place in it, and is refused. Where a position
    turns, padding takes places, but does not decay.
    """

    takes_positions = True
    turned_alike: ClassVar[str] = ""
    """Why positions must turn queries and keys alike, as the end of a sentence; empty where keys
    meet queries alone, which may then grow by what keys shrink by."""

    def stack_positions(
        self, positions: tuple[Position, ...], histories: tuple[History, ...] = ()
    ) -> None:
        """Take positions.

        Raises:
            Refused: One of them has no place here.
        """
        for position in positions:
            self.refuse(position)
            self._refuse_other_keys(position)
        super().stack_positions(positions, histories)

    def _refuse_other_keys(self, position: Position) -> None:
        """Refuse a position that turns keys otherwise than queries where keys meet keys.

        Raises:
            Refused: It does, and places would count beside distances.
        """
        if self.turned_alike and type(position).turn_keys is not Position.turn_keys:
            raise Refused(
                f"{type(position).__name__} turns keys otherwise than queries, and "
                f"{self.turned_alike}; use positions that turn both alike, such as rope."
            )

    def refuse(self, position: Position) -> None:
        """Refuse a position that would change nothing here.

        Raises:
            Refused: It would.
        """
        if position.changes_energy or position.changes_output or position.gives_features:
            raise Refused(
                f"{type(position).__name__} adds to energies or outputs of a chain, and this "
                "mechanism has none; use positions that turn queries and keys, such as rope."
            )
