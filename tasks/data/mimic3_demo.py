"""MIMIC-III demo: hospital stays of 100 patients as events in the order in which they are known.

Johnson et al., 2016, "MIMIC-III, a freely accessible critical care database",
https://doi.org/10.1038/sdata.2016.35; the demo is de-identified and open (Open Database License
1.0).

What was known only later is left out. Codes of diagnoses and procedures are assigned after a stay,
so those of earlier stays are read and those of the stay itself are not; of prescriptions only those
that begin within two days; stays that end before that (by death or not) are no examples. Times of
death, places of discharge and whatever follows are never read.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bench.api.errors import DataDamaged
from tasks.data.files import TextFile, read_text
from tasks.data.tables import DataSet, Row, Rows, load_table, numbered
from tasks.data.words import tokenize

WINDOW_DAYS = 2
"""Calendar days of a stay that are read."""

_REMEDY = "copy the file again from its source"
_OLDEST = 90
"""Ages above 89 are shifted by the source; they are all read as this one."""
_TELLS = ("death", "dead", "expired", "donor")
"""Words of preliminary diagnoses that would reveal the outcome."""
_FIELDS = {
    "PATIENTS": ("subject_id", "dob"),
    "ADMISSIONS": (
        "subject_id",
        "hadm_id",
        "admittime",
        "dischtime",
        "admission_type",
        "admission_location",
        "diagnosis",
        "hospital_expire_flag",
    ),
    "ICUSTAYS": ("hadm_id", "first_careunit", "intime"),
    "PRESCRIPTIONS": ("row_id", "hadm_id", "startdate", "drug"),
    "DIAGNOSES_ICD": ("hadm_id", "seq_num", "icd9_code"),
    "PROCEDURES_ICD": ("hadm_id", "seq_num", "icd9_code"),
}


def load_mimic3_demo(data_dir: Path | None = None) -> DataSet:
    """Load stays with the fields `patient`, `events` and `label` (1: died in hospital).

    Raises:
        DataUnavailable: It is not in the data directory.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("mimic3_demo", _read, data_dir)


def read_csv(path: Path, fields: Sequence[str]) -> tuple[Rows, TextFile]:
    """Read some named columns of comma-separated lines; fields may be quoted, lines not broken.

    Raises:
        DataUnavailable: There is no such file.
        DataDamaged: The file is damaged, lacks a column, or a line has another number of fields.
    """
    file = read_text(path)
    names = _fields(path, 1, file.lines[0])
    absent = [name for name in fields if name not in names]
    if absent:
        raise DataDamaged(f"{path}: line 1 names no column {absent[0]!r}; {_REMEDY}.")
    rows = []
    for number, line in enumerate(file.lines[1:], start=2):
        found = _fields(path, number, line)
        if len(found) != len(names):
            raise DataDamaged(
                f"{path}: line {number} has {len(found)} fields where {len(names)} are expected; "
                f"{_REMEDY}."
            )
        whole = dict(zip(names, found, strict=True))
        rows.append({name: whole[name] for name in fields})
    return tuple(rows), file


def _fields(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:  # a field of more characters than the module takes
        raise DataDamaged(f"{path}: line {number} cannot be read ({error}); {_REMEDY}.") from error


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    read = {name: read_csv(folder / f"{name}.csv.gz", _FIELDS[name]) for name in _FIELDS}
    paths = {name: file.path for name, (_, file) in read.items()}
    tables = {name: rows for name, (rows, _) in read.items()}
    born = {row["subject_id"]: row["dob"] for row in tables["PATIENTS"]}
    outcomes = {"0": 0, "1": 1}
    stays = numbered(
        tables["ADMISSIONS"], "hospital_expire_flag", outcomes, paths["ADMISSIONS"], first=2
    )
    stays = tuple({**stay, "line": line} for line, stay in enumerate(stays, start=2))
    by_stay = {
        name: _grouped(tables[name])
        for name in ("ICUSTAYS", "PRESCRIPTIONS", "DIAGNOSES_ICD", "PROCEDURES_ICD")
    }
    found = []
    for stay in sorted(stays, key=lambda one: (one["subject_id"], one["admittime"])):
        where = f"{paths['ADMISSIONS']}: line {stay['line']}"
        if _days(stay["admittime"], stay["dischtime"], where) < WINDOW_DAYS:
            continue
        if stay["subject_id"] not in born:
            raise DataDamaged(f"{where} is of a patient whom PATIENTS lacks; {_REMEDY}.")
        earlier = [
            other["hadm_id"]
            for other in stays
            if other["subject_id"] == stay["subject_id"] and other["dischtime"] < stay["admittime"]
        ]
        events = [*_coded(earlier, by_stay), *_arrival(stay, born[stay["subject_id"]], where)]
        events += _begun(stay, by_stay, paths)
        label = stay["hospital_expire_flag"]
        found.append({"patient": stay["subject_id"], "events": tuple(events), "label": label})
    return {"stays": tuple(found)}, [file for _, file in read.values()]


def _grouped(rows: Rows) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for number, row in enumerate(rows, start=2):
        found[row["hadm_id"]].append({**row, "line": number})
    return found


def _coded(stays: Sequence[str], by_stay: Mapping[str, Mapping[str, list[Row]]]) -> list[str]:
    """First three digits of the codes of earlier stays, in the order of their importance."""
    events = []
    for stay in stays:
        for name, kind in (("DIAGNOSES_ICD", "dx"), ("PROCEDURES_ICD", "px")):
            rows = by_stay[name].get(stay, [])
            events += [f"{kind}:{row['icd9_code'][:3]}" for row in rows]
    return list(dict.fromkeys(events))


def _arrival(stay: Row, born: str, where: str) -> list[str]:
    """What is written down when a patient arrives."""
    age = min(_OLDEST, int(_days(born, stay["admittime"], where) / 365.25))
    words = [word for word in tokenize(stay["diagnosis"]) if word.isalpha()]
    return [
        f"age:{age // 10 * 10}",
        f"type:{stay['admission_type'].lower()}",
        f"from:{stay['admission_location'].lower()}",
        *(f"for:{word}" for word in dict.fromkeys(words) if word not in _TELLS),
    ]


def _begun(
    stay: Row, by_stay: Mapping[str, Mapping[str, list[Row]]], paths: Mapping[str, Path]
) -> list[str]:
    """Units and drugs that begin within the window, each once, in their order."""
    dated = []
    for name, kind, when, what in (
        ("ICUSTAYS", "unit", "intime", "first_careunit"),
        ("PRESCRIPTIONS", "rx", "startdate", "drug"),
    ):
        for row in by_stay[name].get(stay["hadm_id"], []):
            where = f"{paths[name]}: line {row['line']}"
            if row[when] and 0 <= _days(stay["admittime"], row[when], where) < WINDOW_DAYS:
                dated.append((row[when][:10], f"{kind}:{row[what].lower().strip()}"))
    # the sort is stable: within a day units come first, then drugs as the file has them
    return list(dict.fromkeys(event for _, event in sorted(dated, key=lambda pair: pair[0])))


def _days(begin: str, end: str, where: str) -> int:
    """Calendar days from one time to another."""
    try:
        return (datetime.fromisoformat(end).date() - datetime.fromisoformat(begin).date()).days
    except ValueError as error:
        raise DataDamaged(f"{where} has a time that is none ({error}); {_REMEDY}.") from error
