"""A pack: a published run as one Parquet file, with what a report must know inside (ADR 11)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.api.errors import DataDamaged
from bench.api.whole_file import written_whole
from results.catalog import CATALOG
from results.certificate import certificate_entries, with_sentences
from results.compressed import compressed, json_text, uncompressed
from results.frame import COLUMNS, NUMBERS, StoredRun, rows_of
from results.json_values import Json, JsonObject, as_object, as_text, read_value
from results.ledger import Ledger, OtherSchema
from results.published_commands import DATA_DIR, as_published, file_name, without_folders
from results.row import RECORD_SCHEMA, Record, record_from_json
from results.run_path import (
    SUFFIX,
    NotARunFolder,
    damaged_pack,
    refuse_damaged_pack,
    refuse_no_name_of_a_pack,
)
from results.shown_artifacts import RunWithArtifacts, packed, shown_artifacts, unpacked
from results.store import Store
from results.stored_plan import PLAN

ADDED_COLUMNS = ("code",)
"""Columns that packs of earlier versions do not have."""
CERTIFICATES = "certificates.json"
FILES = (CATALOG, CERTIFICATES, PLAN, "spec.json")
"""Files of a run folder that go into a pack."""

_PREFIX = "attention_bench:"
_SCHEMA = f"{_PREFIX}record_schema"
_ENVIRONMENTS = f"{_PREFIX}environments"
_ORIGINS = f"{_PREFIX}origins"
_ARTIFACTS = f"{_PREFIX}artifacts"
_ORIGIN = ("made", "data", "environmental")
"""Fields of a record by which a run that goes on from a pack knows what is outdated."""
_CELL = (
    "kind",
    "task",
    "backbone",
    "variant",
    "slot",
    "protocol",
    "impl",
    "dtype",
    "device",
    "seed",
    "revisions",
)
_RECORD = ("status", "detail", "environment", "code", "attempt", "seconds", "finished")
_ROW = ("metric", "value", "repeat", "axis", "x", "split", "baseline")
_UNMEASURED = ("metric", "status", "detail")
_PLACES: Mapping[str, Callable[[str], str]] = {
    "command": as_published,
    "commands": as_published,
    "plugin": file_name,
    "plugins": file_name,
    "data_dir": lambda folder: DATA_DIR if folder else "",
    "storage": lambda address: "",  # it may hold a password
}
"""Keys of texts that name places of this machine, and what a pack says of them."""
_WITH_PLACES = ("asked", "budgets", "earlier", "left_out", "tuning")
"""Keys of objects, and of lists of objects, that have such texts inside."""


class PackedRun(StoredRun, RunWithArtifacts, Protocol):
    """A run folder, a pack, or a part of one, as far as a pack is made of it."""

    def ledger(self) -> Ledger:
        """Every record."""


class Pack:
    """A published run; reads like a `Store`, has few artifacts, and is never written to again."""

    def __init__(self, path: Path | str) -> None:
        """Open a pack.

        Raises:
            NotARunFolder: The file is no pack.
            OtherSchema: It was written by a version of the bench with other rows.
        """
        self.folder = Path(path)
        refuse_damaged_pack(self.folder)
        try:
            stored = pq.read_metadata(self.folder).metadata or {}
            self._stored = {key.decode(): value for key, value in stored.items()}
            schema = int(self._stored.get(_SCHEMA, 0))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise damaged_pack(self.folder) from error
        if _SCHEMA not in self._stored:
            raise NotARunFolder(
                f"{self.folder} is a Parquet file, but no pack of a run; "
                "give a file that `bench report --pack` wrote."
            )
        if schema != RECORD_SCHEMA:
            raise OtherSchema(
                f"{self.folder}: written with record schema {schema}, this "
                f"bench reads {RECORD_SCHEMA}; take the pack of this version."
            )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One line per row, with the columns of `results.frame.COLUMNS`.

        Raises:
            DataDamaged: The file cannot be read, or has other columns.
        """
        with self._whole():
            stored = pq.read_table(self.folder).to_pandas()
            for name in ADDED_COLUMNS:
                if name not in stored:
                    stored[name] = ""
            return stored[list(COLUMNS)].astype(_dtypes())

    def ledger(self) -> Ledger:
        """Every cell of the run, as a run folder gives it."""
        return Ledger(records=tuple(self.records()))

    def records(self) -> list[Record]:
        """The record of every cell."""
        lines = {name: self.frame[name].tolist() for name in COLUMNS}
        with self._whole():
            found = [_record(lines, start, stop) for start, stop in _spans(lines["cell"])]
            return [record_from_json({**one, **self._origin(str(one["id"]))}) for one in found]

    def _origin(self, cell_id: str) -> JsonObject:
        """What packs of earlier versions do not have of a record."""
        if self._origins is None:
            return {}
        shared, cells = as_object(self._origins["shared"]), as_object(self._origins["cells"])
        return as_object(shared[as_text(cells[cell_id])])

    @cached_property
    def _origins(self) -> JsonObject | None:
        text = self._stored.get(_ORIGINS)
        return None if text is None else as_object(uncompressed(text))

    def environments(self) -> dict[str, JsonObject]:
        """Facts of every machine by environment id."""
        with self._whole():
            stored = as_object(uncompressed(self._stored[_ENVIRONMENTS]))
        return {name: as_object(facts) for name, facts in stored.items()}

    def read_json(self, name: str) -> dict[str, Json] | None:
        """One of `FILES`, or None where the run had no such file."""
        text = self._stored.get(_PREFIX + name)
        with self._whole():
            return None if text is None else dict(as_object(uncompressed(text)))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Turn what is raised for a damaged file into a sentence.

        Arrow and pandas raise whatever the bytes happen to lead to.
        """
        try:
            yield
        except Exception as error:
            raise DataDamaged(
                f"{self.folder} is damaged; take a whole copy of the pack."
            ) from error

    def read_artifact(self, cell_id: str) -> JsonObject | None:
        """Maps and samples of one seed; None where none went into the pack."""
        return self._artifacts.get(cell_id)

    @cached_property
    def _artifacts(self) -> Mapping[str, JsonObject]:
        text = self._stored.get(_ARTIFACTS)
        with self._whole():
            return {} if text is None else unpacked(text)


def open_run(path: Path | str) -> Store | Pack:
    """Open a run folder or a pack.

    Raises:
        NotARunFolder: The path is neither.
    """
    return Pack(path) if Path(path).suffix == SUFFIX else Store(path)


def write_pack(source: PackedRun, path: Path) -> Path:
    """Write the newest record of every cell, in the order of their settings, into one file.

    Args:
        source: The run.
        path: The file, ending in `.parquet`; replaced if it is there.

    Raises:
        NotARunFolder: The file has another ending.
    """
    refuse_no_name_of_a_pack(path)
    frame = rows_of([source])
    frame["detail"] = frame["detail"].map(without_folders)
    order = frame.drop_duplicates("cell").sort_values(["kind", "task", "variant", "seed", "cell"])
    places = {cell: place for place, cell in enumerate(order["cell"])}
    frame = frame.sort_values("cell", key=lambda cells: cells.map(places), kind="stable")
    records = source.ledger().newest()
    stored = {
        _SCHEMA: str(RECORD_SCHEMA),
        _ENVIRONMENTS: compressed(source.environments()),
        _ORIGINS: compressed(_origins(records, places)),
    }
    if artifacts := shown_artifacts(source, records.values()):
        stored[_ARTIFACTS] = packed(artifacts)
    for name in FILES:
        data = source.read_json(name)
        if data is not None:
            stored[_PREFIX + name] = compressed(_as_packed(name, data))
    table = pa.Table.from_pandas(frame, schema=_arrow_schema(), preserve_index=False)
    # without the copy of the schema, which would hold the metadata a second time
    how = {"compression": "zstd", "compression_level": 19, "store_schema": False}
    with written_whole(path) as draft, pq.ParquetWriter(draft, table.schema, **how) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(stored)
    return path


def _as_packed(name: str, data: JsonObject) -> Mapping[str, object]:
    """What a pack has of a file of a run."""
    if name == CERTIFICATES:
        every = certificate_entries(data).items()
        return {variant: with_sentences(entry, without_folders) for variant, entry in every}
    kept = {key: one for key, one in data.items() if name == CATALOG or key != "data_dir"}
    return _without_places(kept)


def _without_places(data: JsonObject) -> dict[str, Json]:
    """A file of a run, without folders and databases of this machine."""
    return {name: _elsewhere(name, one) for name, one in data.items()}


def _elsewhere(name: str, said: Json) -> Json:
    """What a key of a file says to a reader elsewhere."""
    if isinstance(said, list):
        return [_elsewhere(name, one) for one in said]
    if isinstance(said, dict):
        return _without_places(said) if name in _WITH_PLACES else said
    if isinstance(said, str) and name in _PLACES:
        return _PLACES[name](said)
    return said


def _origins(records: Mapping[str, Record], cells: Iterable[str]) -> JsonObject:
    """What made each cell; cells of one network and one task share it."""
    shared: dict[str, str] = {}
    found: dict[str, Json] = {}
    for id_ in cells:
        origin = json_text({name: getattr(records[id_], name) for name in _ORIGIN})
        found[id_] = shared.setdefault(origin, str(len(shared)))
    return {"shared": {key: read_value(text) for text, key in shared.items()}, "cells": found}


def _dtypes() -> Mapping[str, str]:
    return {name: NUMBERS.get(name, "str") for name in COLUMNS}


def _arrow_schema() -> pa.Schema:
    kinds = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
    return pa.schema([(name, kinds[kind]) for name, kind in _dtypes().items()])


def _spans(cells: list[str]) -> Iterator[tuple[int, int]]:
    """First line, and the one after the last, of each cell."""
    start = 0
    for at in range(1, len(cells) + 1):
        if at == len(cells) or cells[at] != cells[start]:
            yield start, at
            start = at


def _record(lines: Mapping[str, list[object]], start: int, stop: int) -> dict[str, object]:
    named = [at for at in range(start, stop) if lines["metric"][at]]
    rows = [
        {name: _value(lines[name][at]) for name in _ROW}
        for at in named
        if _value(lines["value"][at]) is not None
    ]
    unmeasured = [
        {name: lines[name][at] for name in _UNMEASURED}
        for at in named
        if _value(lines["value"][at]) is None
    ]
    cell = {name: lines[name][start] for name in _CELL}
    told = {name: lines[name][start] for name in _RECORD}
    read = {"id": lines["cell"][start], "cell": cell, "rows": rows, "unmeasured": unmeasured}
    return {**told, **read}


def _value(value: object) -> object:
    """NaN stands for a position that a row does not have."""
    return None if value != value else value  # noqa: PLR0124  only NaN differs from itself
