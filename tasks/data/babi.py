"""bAbI: twenty tasks of stories, questions and supporting facts, 10000 training questions each.

Weston et al., 2015, "Towards AI-complete question answering: a set of prerequisite toy tasks",
https://arxiv.org/abs/1502.05698. The files are those of `en-10k`; a data directory without the
training part of a task (`qa3` is one that is often left out for its size) has only its test.

The hub's `facebook/babi_qa` is a script, so its conversion to Parquet is fetched, a file a task and
part. A row there is a whole story: columns of line numbers, of kinds (0 statement, 1 question), of
texts, answers and numbers of supporting lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.files import TextFile, read_text
from tasks.data.hub_copies import REPORT_IT, HubCopy
from tasks.data.tables import DataSet, Row, Rows, load_table

FOLDER = "en-10k"
PARTS = ("train", "test")
ASKED = 1
"""Kind of a line of the hub's stories that is a question."""
_COLUMNS = ("id", "type", "text", "answer", "supporting_ids")
_REMEDY = "copy the file again from its source"


def load_babi(numbers: Sequence[int], data_dir: Path | None = None, *, train: int = 0) -> DataSet:
    """Load questions of some tasks.

    Parts are `train` and `test`; a row has `number` (of its task), `told` (which story of the part
    it is, from 0; several questions may ask about one), `story` (its sentences before the
    question), `question`, `answer` and `supporting` (positions of facts in the story).

    Args:
        numbers: Of the tasks, 1 to 20.
        data_dir: The data directory.
        train: First training questions of each task; 0 for all.

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched, or a test file is missing.
        DataDamaged: A file is not what it should be; the sentence names file and line.
    """

    def read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
        files: list[TextFile] = []
        parts: dict[str, list[Row]] = {part: [] for part in PARTS}
        for part, number in ((part, number) for part in PARTS for number in numbers):
            path = _path(folder / FOLDER, number, part)
            if path is None and part == "train":
                continue
            if path is None:
                raise DataUnavailable(
                    f"{folder / FOLDER} has no file qa{number}_*_{part}.txt.gz; {_REMEDY}."
                )
            file = read_text(path)
            files.append(file)
            parts[part] += _first(read_stories(file, number), part)
        return {part: tuple(rows) for part, rows in parts.items()}, files

    def from_hub(copy: HubCopy) -> Mapping[str, Rows]:
        return {
            part: tuple(
                row for number in numbers for row in _first(_from_hub(copy, number, part), part)
            )
            for part in PARTS
        }

    def _first(rows: Iterator[Row], part: str) -> Iterator[Row]:
        return islice(rows, train if part == "train" and train else None)

    splits = [_split(number, part) for number in numbers for part in PARTS]
    return load_table("babi", read, data_dir, from_hub=from_hub, splits=splits)


def _split(number: int, part: str) -> str:
    """What the hub copy calls a part of a task."""
    return f"qa{number}_{part}"


def _from_hub(copy: HubCopy, number: int, part: str) -> Iterator[Row]:
    """Questions of the hub's stories in their order, as those of `read_stories`."""
    path = copy.path(_split(number, part))
    for at, row in enumerate(copy.splits[_split(number, part)], start=1):
        story: list[str] = []
        places: dict[str, int] = {}
        columns = [row["story"].get(name, ()) for name in _COLUMNS]
        if len({len(column) for column in columns}) > 1 or not columns[0]:
            raise DataDamaged(
                f"{path}: line {at} is no story with {', '.join(_COLUMNS)} of as many lines; "
                f"{REPORT_IT}."
            )
        for line, kind, text, answer, facts in zip(*columns, strict=True):
            if kind != ASKED:
                places[line] = len(story)
                story.append(text.strip())
                continue
            if any(fact not in places for fact in facts):
                raise DataDamaged(
                    f"{path}: line {at} names a supporting fact that the story lacks; {REPORT_IT}."
                )
            yield {
                "number": number,
                "told": at - 1,
                "story": tuple(story),
                "question": text.strip(),
                "answer": answer.strip(),
                "supporting": tuple(places[fact] for fact in facts),
            }


class _Line(NamedTuple):
    number: int
    text: str
    answer: str
    supporting: tuple[int, ...]


def read_stories(file: TextFile, number: int) -> Iterator[Row]:
    """Questions of a file in their order, each with the statements before it in its story."""
    story: list[str] = []
    places: dict[int, int] = {}
    expected, told = 1, -1
    for at, raw in enumerate(file.lines, start=1):
        line = _parse(raw)
        if line is None or line.number not in (1, expected):
            raise DataDamaged(
                f"{file.path}: line {at} is neither `{expected} sentence` nor `{expected} "
                f"question, answer, facts` with tabs between them; {_REMEDY}."
            )
        if line.number == 1:
            story, places, told = [], {}, told + 1
        expected = line.number + 1
        if not line.answer:
            places[line.number] = len(story)
            story.append(line.text)
            continue
        if any(fact not in places for fact in line.supporting):
            raise DataDamaged(
                f"{file.path}: line {at} names a supporting fact that the story lacks; {_REMEDY}."
            )
        yield {
            "number": number,
            "told": told,
            "story": tuple(story),
            "question": line.text,
            "answer": line.answer,
            "supporting": tuple(places[fact] for fact in line.supporting),
        }


def _parse(raw: str) -> _Line | None:
    number, _, rest = raw.partition(" ")
    fields = rest.split("\t")
    if not number.isdigit() or not fields[0].strip() or len(fields) not in (1, 3):
        return None
    if len(fields) == 1:
        return _Line(int(number), fields[0].strip(), "", ())
    facts = fields[2].split()
    if not fields[1].strip() or not all(fact.isdigit() for fact in facts):
        return None
    return _Line(int(number), fields[0].strip(), fields[1].strip(), tuple(map(int, facts)))


def _path(folder: Path, number: int, part: str) -> Path | None:
    return next(iter(sorted(folder.glob(f"qa{number}_*_{part}.txt.gz"))), None)
