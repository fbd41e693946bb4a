"""What packs keep of artifacts: notes, and a few maps and samples of data with an open license."""

from collections.abc import Iterable
from typing import Protocol

from results.artifact import whole_artifact
from results.catalog import RunCatalog
from results.compressed import compressed, uncompressed
from results.json_values import Json, JsonObject, as_list, as_object
from results.row import Record

MOST_MAPS, MOST_SAMPLES = 2, 3
"""Of one cell."""
MOST_WEIGHTS = 4000
"""Numbers of one map; a larger one stays behind."""


class RunWithArtifacts(Protocol):
    """A run folder, a pack, or a part of one, as far as artifacts are taken from it."""

    def read_artifact(self, cell_id: str) -> JsonObject | None:
        """Attention maps and samples of a cell."""

    def read_json(self, name: str) -> dict[str, Json] | None:
        """What the run says beside its rows."""


def shown_artifacts(source: RunWithArtifacts, records: Iterable[Record]) -> JsonObject:
    """What a report of a pack shows, by the id of the cell.

    They are of the lowest seed of each variant in each network. Tasks whose data may not be passed
    on have notes alone, for maps and samples hold their sentences.
    """
    tasks = RunCatalog.of(source).tasks
    first: dict[tuple[str, str, str], Record] = {}
    for record in records:
        cell = record.cell
        task = str(cell["task"])
        if record.status != "ok" or cell["kind"] != "quality":
            continue
        key = (task, str(cell["backbone"]), str(cell["variant"]))
        held = first.get(key)
        if held is None or int(str(cell["seed"])) < int(str(held.cell["seed"])):
            first[key] = record
    found: dict[str, Json] = {}
    for (task, _, _), record in first.items():
        is_open = task in tasks and tasks[task].license.redistributable
        kept = _kept(source.read_artifact(record.id) or {}, is_open=is_open)
        if kept:
            found[record.id] = kept
    return found


def _kept(artifact: JsonObject, *, is_open: bool) -> dict[str, Json]:
    """The notes, and the first maps and samples of open data."""
    notes: dict[str, Json] = {"notes": artifact["notes"]} if artifact.get("notes") else {}
    if not is_open:
        return notes
    maps = [one for one in as_list(artifact.get("attention")) if _is_small(as_object(one))]
    samples = as_list(artifact.get("samples"))
    found = {"attention": [*maps[:MOST_MAPS]], "samples": [*samples[:MOST_SAMPLES]]}
    return {**notes, **{name: entries for name, entries in found.items() if entries}}


def _is_small(entry: JsonObject) -> bool:
    rows = as_list(entry.get("weights"))
    return 0 < sum(len(as_list(row)) for row in rows) <= MOST_WEIGHTS


def packed(artifacts: JsonObject) -> str:
    """As a short text.

    >>> unpacked(packed({"cell": {"samples": []}}).encode())
    {'cell': {'samples': []}}
    """
    return compressed(artifacts)


def unpacked(text: bytes) -> dict[str, JsonObject]:
    """What `packed` wrote; raises whatever damaged bytes lead to."""
    found = as_object(uncompressed(text))
    return {cell: whole_artifact(as_object(one)) for cell, one in found.items()}
