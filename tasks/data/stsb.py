"""The benchmark of semantic textual similarity, from the hub's `sentence-transformers/stsb`.

Cer et al., 2017, "SemEval-2017 task 1: semantic textual similarity multilingual and crosslingual
focused evaluation", https://aclanthology.org/S17-2001. That copy divides scores by five; here they
are from 0 to 5 again. A data directory has `train.jsonl`, `validation.jsonl` and `test.jsonl` with
the same fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.api.errors import DataDamaged
from tasks.data.files import TextFile
from tasks.data.tables import DataSet, Row, Rows, load_table, read_json_lines

FIELDS = {"sentence1": str, "sentence2": str, "score": float}
PARTS = ("train", "validation", "test")
MOST = 5.0


def load_stsb(data_dir: Path | None = None, *, cache_dir: Path | None = None) -> DataSet:
    """Load the parts, less training pairs that another part has too.

    Raises:
        DataUnavailable: It is not on this machine; the message says how to get it.
        DataDamaged: A file is not what it should be.
    """
    table = load_table("stsb", _read, data_dir, cache_dir=cache_dir)
    parts = {
        part: tuple(_graded(row, f"{part} of {table.origin}", at) for at, row in enumerate(rows, 1))
        for part, rows in table.parts.items()
    }
    held_out = {_key(row) for part in PARTS[1:] for row in parts[part]}
    parts["train"] = tuple(row for row in parts["train"] if _key(row) not in held_out)
    return replace(table, parts=parts)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    found = {part: read_json_lines(folder / f"{part}.jsonl", FIELDS) for part in PARTS}
    return {part: rows for part, (rows, _) in found.items()}, [file for _, file in found.values()]


def _graded(row: Row, place: str, number: int) -> Row:
    score = row["score"]
    if not (0 <= score <= 1 and row["sentence1"].strip() and row["sentence2"].strip()):
        raise DataDamaged(
            f"stsb: row {number} of {place} is not two sentences and a score from 0 to 1; "
            f"copy the file again from its source."
        )
    return {**row, "score": MOST * score}


def _key(row: Row) -> tuple[str, str]:
    return row["sentence1"], row["sentence2"]
