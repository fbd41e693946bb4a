"""A run as tidy frames, whether it lies in a folder of `bench run` or in a published pack."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from results.frame import rows_of
from results.pack import SUFFIX, Pack, open_run

_OF_A_ROW = ("metric", "value", "repeat", "axis", "x", "split", "baseline")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was asked, what came of it, and on which machines."""

    name: str
    """Name of the folder or of the pack."""
    rows: pd.DataFrame
    """One line per measured value, with the columns of `results.frame.COLUMNS`."""
    environments: Mapping[str, Mapping[str, Any]]
    """Facts of each machine, by the id in the column `environment`."""
    catalog: Mapping[str, Any]
    """Titles, papers, units and better sides of all that the rows name (ADR 2)."""
    certificates: Mapping[str, Any]
    """Which checks each variant passed."""
    plan: Mapping[str, Any]
    """What was planned, and what was left out and why."""

    @property
    def cells(self) -> pd.DataFrame:
        """One line per cell, without what differs between its rows."""
        single = self.rows.drop_duplicates("cell", ignore_index=True)
        return single.drop(columns=list(_OF_A_ROW))


def load_run(path: Path | str) -> Run:
    """Read a run folder or a pack."""
    source = open_run(path)
    rows = source.frame if isinstance(source, Pack) else rows_of([source])
    return Run(
        name=Path(path).resolve().name.removesuffix(SUFFIX),
        rows=rows,
        environments=source.environments(),
        catalog=source.read_json("catalog.json") or {},
        certificates=source.read_json("certificates.json") or {},
        plan=source.read_json("plan.json") or {},
    )
