"""Natural language inference in English: parts of SNLI, and its counterfactual revisions.

Bowman et al., 2015, "A large annotated corpus for learning natural language inference",
https://aclanthology.org/D15-1075. Kaushik et al., 2020, "Learning the difference that makes a
difference with counterfactually-augmented data", https://arxiv.org/abs/1909.12434: crowd workers
revised one side of a pair by as little as makes another label true.

Only a data directory has both; its parts are named in `_read`. Rows have the fields of the hub's
`stanfordnlp/snli`, their texts tokenized and lower-cased, because the official parts of the data
directory come tokenized and the others do not. The hub has the three official parts of SNLI, raw,
with pairs whose annotators did not agree (label -1); these are dropped, and so are pairs with a
text without a word. What is left of validation and test are the data directory's pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.api.errors import DataDamaged
from tasks.data.derived import kept_arrays
from tasks.data.files import TextFile, read_parallel
from tasks.data.hub_copies import REPORT_IT, HubCopy
from tasks.data.tables import DataSet, Row, Rows, load_table, read_table
from tasks.data.words import tokenize

RELATIONS = ("entailment", "neutral", "contradiction")
"""Labels by number, in the order of the hub's SNLI."""
CAT_LABELS = {"1": "neutral", "2": "contradiction", "3": "entailment"}
CAT_FIELDS = ("number", "label", "premise", "hypothesis")
CAD_FIELDS = ("sentence1", "sentence2", "gold_label")
REVISIONS = ("revised_premise", "revised_hypothesis")
NO_LABEL = -1
"""Label of the hub's pairs whose annotators did not agree."""
TEXTS = ("premise", "hypothesis")


def load_snli(data_dir: Path | None = None) -> DataSet:
    """Load the parts: nothing of `train` is in any other part, and nothing is in it twice.

    `train`: 18000 pairs of SNLI's training part, or all of the hub copy, less those dropped.
    `validation` and `test`: the official ones. Only a data directory has
    `counterfactual_validation` and `counterfactual_test`, revised pairs; `same_source` (2000 pairs
    of SNLI's training part) and `revised_from` (the pairs that were revised, rows of the official
    parts) are there to keep `train` clear of them.

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched.
        DataDamaged: A file is not what it should be; the sentence names file and line.
    """
    return load_table("snli", _read, data_dir, from_hub=_from_hub)


def words_of(text: str) -> list[str]:
    """Words of a raw or a tokenized text, which come out the same.

    >>> words_of('He said "no".') == words_of("He said `` no '' .")
    True
    """
    return tokenize(text.replace("``", '"').replace("''", '"'))


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts = {
        "train": _cat(folder / "cat" / "train.csv.gz", files),
        "same_source": _cat(folder / "cat" / "test.csv.gz", files),
        "validation": _official(folder / "esnli", "dev", files),
        "test": _official(folder / "esnli", "test", files),
        "counterfactual_validation": _revised(folder / "cad", REVISIONS, ("dev",), files),
        "counterfactual_test": _revised(folder / "cad", REVISIONS, ("test",), files),
        "revised_from": _revised(folder / "cad", ("original",), ("dev", "test"), files),
    }
    return _clear(parts), files


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    # half a million pairs take a minute to tokenize
    arrays = kept_arrays("snli", {"files": dict(copy.files), "revision": 1}, lambda: _words(copy))
    parts = {}
    for part in copy.splits:
        columns = (arrays[f"{part}_{name}"].tobytes().decode().split("\n") for name in TEXTS)
        triples = zip(*columns, arrays[f"{part}_label"].tolist(), strict=True)
        parts[part] = tuple(dict(zip((*TEXTS, "label"), row, strict=True)) for row in triples)
    return _clear(parts)


def _words(copy: HubCopy) -> Mapping[str, npt.NDArray[np.generic]]:
    """Labels of the pairs that are kept, and their texts as words, a line each."""
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for part, rows in copy.splits.items():
        kept = []
        for number, row in enumerate(rows, start=1):
            if row["label"] not in (NO_LABEL, *range(len(RELATIONS))):
                raise DataDamaged(
                    f"{copy.path(part)}: line {number} has label {row['label']}, which is neither "
                    f"{NO_LABEL} nor one of {len(RELATIONS)} relations; {REPORT_IT}."
                )
            texts = [" ".join(words_of(row[name])) for name in TEXTS]
            if row["label"] != NO_LABEL and all(texts):
                kept.append((*texts, row["label"]))
        if not kept:
            raise DataDamaged(f"{copy.path(part)}: no line has a label and words; {REPORT_IT}.")
        *columns, labels = zip(*kept, strict=True)
        for name, column in zip(TEXTS, columns, strict=True):
            arrays[f"{part}_{name}"] = np.frombuffer("\n".join(column).encode(), np.uint8)
        arrays[f"{part}_label"] = np.asarray(labels, np.int8)
    return arrays


def _clear(parts: Mapping[str, Rows]) -> Mapping[str, Rows]:
    """The parts, without training pairs that occur twice or in another part."""
    held_out = {_key(row) for part in parts if part != "train" for row in parts[part]}
    clear: dict[tuple[str, str], Row] = {}
    for row in parts["train"]:
        if _key(row) not in held_out:
            clear.setdefault(_key(row), row)
    return {**parts, "train": tuple(clear.values())}


def _key(row: Row) -> tuple[str, str]:
    return row["premise"], row["hypothesis"]


def _cat(path: Path, files: list[TextFile]) -> Rows:
    rows, file = read_table(path, CAT_FIELDS)
    files.append(file)
    pairs = ((row["premise"], row["hypothesis"], CAT_LABELS.get(row["label"], "")) for row in rows)
    return _rows(path, pairs, first=1)


def _official(folder: Path, part: str, files: list[TextFile]) -> Rows:
    names = ("s1", "s2", "labels")
    found = read_parallel({name: folder / f"{name}.{part}.gz" for name in names})
    files += found.values()
    columns = (found[name].lines for name in names)
    triples = ((one, two, label.strip()) for one, two, label in zip(*columns, strict=True))
    return _rows(folder / f"labels.{part}.gz", triples, first=1)


def _revised(
    folder: Path, kinds: Sequence[str], parts: Sequence[str], files: list[TextFile]
) -> Rows:
    """Rows of some files; each file's own name goes with its folder into the list of files."""
    found: list[Row] = []
    for kind in kinds:
        for part in parts:
            path = folder / kind / f"{part}.tsv.gz"
            rows, file = read_table(path, CAD_FIELDS, header=True)
            # three folders have files of the same names, and a table knows files by their name
            files.append(replace(file, path=path.with_name(f"{kind}_{path.name}")))
            pairs = ((row["sentence1"], row["sentence2"], row["gold_label"]) for row in rows)
            found += _rows(path, pairs, first=2)
    return tuple(found)


def _rows(path: Path, triples: Iterable[tuple[str, str, str]], first: int) -> Rows:
    rows = []
    for number, (premise, hypothesis, label) in enumerate(triples, start=first):
        if label not in RELATIONS:
            raise DataDamaged(
                f"{path}: line {number} has a label that is none of {', '.join(RELATIONS)}; "
                f"copy the file again from its source."
            )
        texts = [" ".join(words_of(text)) for text in (premise, hypothesis)]
        if not all(texts):
            raise DataDamaged(
                f"{path}: line {number} has a text without a word; copy the file again from its "
                f"source."
            )
        row = dict(zip(TEXTS, texts, strict=True))
        rows.append({**row, "label": RELATIONS.index(label)})
    return tuple(rows)
