"""A run as tidy frames, whether it lies in a folder of `bench run` or in a published pack."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from results.certificate import CertificateEntry, certificate_entries
from results.frame import rows_of
from results.json_values import JsonObject, as_object
from results.pack import Pack, open_run
from results.run_path import SUFFIX
from results.stored_plan import PLAN

_OF_A_ROW = ("metric", "value", "repeat", "axis", "x", "split", "baseline")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was asked, what came of it, and on which machines."""

    name: str
    """Name of the folder or of the pack."""
    rows: pd.DataFrame
    """One line per measured value, with the columns of `results.frame.COLUMNS`."""
    environments: Mapping[str, JsonObject]
    """Facts of each machine, by the id in the column `environment`."""
    catalog: JsonObject
    """Titles, papers, units and better sides of all that the rows name (ADR 2)."""
    certificates: Mapping[str, CertificateEntry]
    """Which checks each variant passed."""
    plan: JsonObject
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
        catalog=as_object(source.read_json("catalog.json")),
        certificates=certificate_entries(as_object(source.read_json("certificates.json"))),
        plan=as_object(source.read_json(PLAN)),
    )
