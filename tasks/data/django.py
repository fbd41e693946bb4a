"""Lines of Django's code and what they do in English.

Oda et al., 2015, "Learning to generate pseudo-code from source code using statistical machine
translation", https://doi.org/10.1109/ASE.2015.36. License: MIT.

The data directory has the lines in their order, which the parts of the literature follow. The hub's
`AhmedSSoliman/DJANGO` has the same lines as `nl` and `code`, and parts of the same sizes that were
drawn at random: neighbors of a line of its test may be in training. Numbers are not comparable.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.api.errors import DataDamaged
from tasks.data.files import TextFile, read_parallel
from tasks.data.hub_copies import HubCopy
from tasks.data.tables import DataSet, Rows, load_table

TRAIN, VALIDATION = 0.851, 0.0532
"""Shares of the usual parts: lines 1 to 16000, then 1000 more, of 18805."""


def load_django(data_dir: Path | None = None) -> DataSet:
    """Load rows with `anno`, an English line, and `code`, a Python line.

    The parts have 16000, 1000 and 1805 lines: of the data directory those of the literature.

    Raises:
        DataUnavailable: It is not on this machine; the message says how to get it.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("django", _read, data_dir, from_hub=_from_hub)


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    return {
        part: tuple({"anno": row["nl"].strip(), "code": row["code"].strip()} for row in rows)
        for part, rows in copy.splits.items()
    }


def _read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
    names = {"anno": folder / "all.anno.gz", "code": folder / "all.code.gz"}
    files = read_parallel(names)
    lines = zip(files["anno"].lines, files["code"].lines, strict=True)
    rows = tuple({"anno": anno.strip(), "code": code.strip()} for anno, code in lines)
    if len(rows) < 3:
        raise DataDamaged(
            f"{names['anno']}: {len(rows)} lines make no three parts; "
            "copy the file again from its source."
        )
    # an invented, smaller file is cut at the same shares
    first, second = round(TRAIN * len(rows)), round((TRAIN + VALIDATION) * len(rows))
    if len(rows) == 18805:
        first, second = 16000, 17000
    parts = {"train": rows[:first], "validation": rows[first:second], "test": rows[second:]}
    return parts, list(files.values())
