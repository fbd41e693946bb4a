"""Counts of published rows that follow from a cell alone, counted again by the code of today.

Parameters and FLOPs of a network before its training and FLOPs by formula need no training and no
clock. Where a count was wrong, it is made again, and everything else of a pack stays as it was.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bench.api.cell import Cell, cell_from_dict
from bench.api.errors import DataUnavailable
from bench.api.impl import impl_of
from bench.api.loading import load_package
from bench.api.resolve import resolve
from bench.timing.flops import analytic_flops
from bench.timing.shape import parse_shape
from bench.timing.workloads import build
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops
from bench.training.precision import place
from bench.training.quality import NETWORK_FLOPS
from results.json_values import Json, JsonObject
from results.ledger import Ledger
from results.pack import Pack, write_pack
from results.row import Record, Row

BY_FORMULA = "forward_flops_analytic_count"
"""Metric of the operations that papers quote."""
OF_A_NETWORK = frozenset({NETWORK_FLOPS, "parameters_count", "slot_parameters_count"})
"""Metrics of what is trained that a new network has, too."""


@dataclass(frozen=True)
class Recounted:
    """A pack with other records."""

    pack: Pack
    changed: Mapping[str, Record]

    def records(self) -> list[Record]:
        """The record of every cell."""
        return [self.changed.get(record.id, record) for record in self.pack.records()]

    def ledger(self) -> Ledger:
        """Every record."""
        return Ledger(records=tuple(self.records()))

    def environments(self) -> dict[str, JsonObject]:
        """Those of the pack."""
        return self.pack.environments()

    def read_json(self, name: str) -> dict[str, Json] | None:
        """What the pack says beside its rows."""
        return self.pack.read_json(name)

    def read_artifact(self, cell_id: str) -> JsonObject | None:
        """Maps and samples of the pack."""
        return self.pack.read_artifact(cell_id)


def count_again(path: Path, tell: Callable[[str], None], containing: Sequence[str] = ()) -> bool:
    """Count a pack again, and write it where a number is another one.

    Args:
        path: The pack.
        tell: Called with a sentence for each cell with another number.
        containing: Only cells whose label has one of these texts; empty for all.

    Returns:
        Whether it was written.
    """
    load_package("variants")
    load_package("tasks")
    pack, changed = Pack(path), dict[str, Record]()
    for record in pack.records():
        cell = cell_from_dict(dict(record.cell))
        if not any(text in cell.label for text in containing or ("",)):
            continue
        rows = tuple(_rows_again(cell, record.rows))
        if rows != record.rows:
            changed[record.id] = replace(record, rows=rows)
            tell(_sentence(record, rows))
    if changed:
        write_pack(Recounted(pack, changed), path)
    return bool(changed)


def _rows_again(cell: Cell, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a cell, without those that nothing counts any more."""
    network: dict[str, float] | None = None
    for row in rows:
        if not _follows_from_the_cell(cell, row):
            yield row
        elif row.metric == BY_FORMULA:
            count = _formula(cell)
            if count is not None:
                yield replace(row, value=float(count))
        else:
            network = _network(cell) if network is None else network
            yield replace(row, value=network.get(row.metric, row.value))


def _follows_from_the_cell(cell: Cell, row: Row) -> bool:
    counted = OF_A_NETWORK if cell.kind == "quality" else {BY_FORMULA}
    return not row.baseline and row.metric in counted


def _network(cell: Cell) -> dict[str, float]:
    """Counts of a new network; none where its data are not here."""
    torch.manual_seed(cell.seed)
    try:
        built = assemble(cell, None)
    except DataUnavailable:
        return {}
    place(built.system, cell)
    whole = sum(one.numel() for one in built.system.parameters())
    slots = built.system.there.variant_slots()
    return {
        "parameters_count": float(whole),
        "slot_parameters_count": float(sum(p.numel() for s in slots for p in s.parameters())),
        NETWORK_FLOPS: float(forward_flops(built.system, built.task, cell)),
    }


def _formula(cell: Cell) -> int | None:
    shape = parse_shape(cell.task)
    variant = build(resolve(cell.variant), shape, impl_of(cell.impl), seed=0)
    return analytic_flops(variant, shape)


def _sentence(record: Record, rows: Iterable[Row]) -> str:
    cell = cell_from_dict(dict(record.cell))
    before, after = (
        {row.metric: row.value for row in some if _follows_from_the_cell(cell, row)}
        for some in (record.rows, rows)
    )
    told = [f"{name} {value:g} -> {after.get(name, math.nan):g}" for name, value in before.items()]
    return f"{cell.label}: {', '.join(told)}"
