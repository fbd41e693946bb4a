"""Mechanisms whose keys have an energy each before a softmax, to which positions may add.

What a position adds (`alibi`, `t5_bias`, `fox`, `cope` and others) is added as in a chain, and so
is what its loops add. A mechanism says in its own file what its energies are.
"""

from collections.abc import Mapping
from typing import ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, OracleOptions, Read
from bench.api.errors import Refused
from bench.api.history import History
from bench.api.inputs import all_inputs
from bench.api.one_query import OneQuery
from bench.api.position import Content, Position
from bench.api.shapes import Energy
from bench.api.source import Memory, Source, leaf
from variants.mechanisms.turned import Turned


class Biased(Turned):
    """A mechanism with the axis `position`: what turns, is added to the input, or adds to energies.

    A subclass adds `position_energy` to its energies, and `oracle_position_energy` in its loops.
    What a position adds to outputs, or gives a score to read, has no place here and is refused.
    """

    unread: ClassVar[Mapping[Content, str]] = {}
    """Why energies of positions must not depend on queries or on keys here, as the end of a
    sentence; empty where they may."""

    def stack_positions(
        self, positions: tuple[Position, ...], histories: tuple[History, ...] = ()
    ) -> None:
        """Take positions, and what they want beside keys and queries.

        Raises:
            Refused: One of them has no place here.
        """
        super().stack_positions(positions, histories)
        mine = {"the mechanism": self.key_inputs}, {"the mechanism": self.query_inputs}
        self.key_inputs = all_inputs(mine[0] | {one.branch: one.key_inputs for one in positions})
        self.query_inputs = all_inputs(
            mine[1] | {one.branch: one.query_inputs for one in positions}
        )

    def refuse(self, position: Position) -> None:
        """Refuse a position that adds to outputs, or whose energies have no place here.

        Raises:
            Refused: It does.
        """
        name = type(position).__name__
        if position.changes_output:
            raise Refused(
                f"{name} adds to outputs, and this mechanism reads values alone; use positions "
                "that turn queries and keys or add to energies, such as rope or alibi."
            )
        if position.gives_features:
            raise Refused(
                f"{name} gives features to a score, and energies of this mechanism are dot "
                "products, which take none; use positions such as rope or alibi."
            )
        for content in sorted(position.energy_reads & self.unread.keys()):
            raise Refused(
                f"{name} adds energies that depend on {content}, and {self.unread[content]}; "
                "use positions that go by places or gates, such as alibi or fox."
            )

    def prepare(self, source: Source) -> Memory:
        """Let every position prepare its branch."""
        return Memory(source, {one.branch: one.prepare(source) for one in self.positions})

    def position_energy(self, call: Call) -> Float[Tensor, "#B Hq L S"] | None:
        """What positions add to the energy of each query and key; None where none adds."""
        found: Tensor | None = None
        for position in self.positions:
            if position.changes_energy:
                more = position.energy(call)
                found = more if found is None else found + more
        return found

    def oracle_position_energy(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> Float[Tensor, "Hq L S"]:
        """The same by the positions' own loops, zeros where none adds; after `turn`."""
        heads, length, _ = query.shape
        adding = [position for position in self.positions if position.changes_energy]
        zero = query.new_zeros(source.num_keys)
        if not adding:
            return zero.expand(heads, length, -1)
        rows = []
        for head, place in ((h, t) for h in range(heads) for t in range(length)):
            one = self._one_query(query, source, read, head, place, call)
            rows.append(sum((position.oracle_energy(one) for position in adding), zero))
        return torch.stack(rows).unflatten(0, (heads, length))

    def _one_query(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        head: int,
        place: int,
        call: OracleOptions,
    ) -> OneQuery:
        heads = query.shape[0]
        key_head = head * source.key.shape[1] // heads
        beside = {}
        for name, given in (call.get("extras") or {}).items():
            wanted = self.query_inputs.get(name)
            beside[name] = given[place] if wanted is None else given[place, wanted.head(head)]
        return OneQuery(
            query=query[head, place],
            key=source.key[0, key_head],
            value=source.value[0, head * source.value.shape[1] // heads],
            head=head,
            position=place,
            causal=self.dims.regime == "causal",
            read=read,
            tokens=None if source.tokens is None else source.tokens[0].tolist(),
            row=call.get("row", 0),
            noise=call.get("noise"),
            progress=call.get("progress", 1.0),
            extras=beside,
            key_extras={
                name: leaf(source.extras, name)[0, wanted.head(key_head)]
                for name, wanted in self.key_inputs.items()
            },
        )


def biased(energy: Energy, more: Float[Tensor, "#B Hq L S"] | None) -> Energy:
    """The energy with what positions add to it."""
    return energy if more is None else energy + more
