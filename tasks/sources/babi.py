"""bAbI: twenty tasks of stories, questions and supporting facts, 10000 training questions each.

Weston et al., 2015, "Towards AI-complete question answering: a set of prerequisite toy tasks",
https://arxiv.org/abs/1502.05698. The files are those of `en-10k`; a mirror without the training
part of a task (`qa3` is one that is often left out for its size) has only its test.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.sources.mirror import TextFile, read_text
from tasks.sources.tables import Row, Rows, Table, load_table

FOLDER = "en-10k"
_REMEDY = "copy the file again from its source"


def load_babi(numbers: Sequence[int], data_dir: Path | None = None, *, train: int = 0) -> Table:
    """Load questions of some tasks.

    Parts are `train` and `test`; a row has `number` (of its task), `story` (sentences told before
    the question), `question`, `answer` and `supporting` (places of facts in the story).

    Args:
        numbers: Of the tasks, 1 to 20.
        data_dir: The mirror.
        train: First training questions of each task; 0 for all.

    Raises:
        DataUnavailable: There is no mirror with `babi`, or no test file of a task.
        DataDamaged: A file is not what it should be; the sentence names file and line.
    """

    def read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
        files: list[TextFile] = []
        parts: dict[str, list[Row]] = {"train": [], "test": []}
        for part, number in ((part, number) for part in parts for number in numbers):
            path = _path(folder / FOLDER, number, part)
            if path is None and part == "train":
                continue
            if path is None:
                raise DataUnavailable(
                    f"{folder / FOLDER} has no file qa{number}_*_{part}.txt.gz; {_REMEDY}."
                )
            file = read_text(path)
            files.append(file)
            for at, row in enumerate(read_stories(file, number)):
                if part == "train" and train and at == train:
                    break
                parts[part].append(row)
        return {part: tuple(rows) for part, rows in parts.items()}, files

    return load_table("babi", read, data_dir)


class _Line(NamedTuple):
    number: int
    text: str
    answer: str
    supporting: tuple[int, ...]


def read_stories(file: TextFile, number: int) -> Iterator[Row]:
    """Questions of a file in their order, each with what was told before it in its story."""
    story: list[str] = []
    places: dict[int, int] = {}
    expected = 1
    for at, raw in enumerate(file.lines, start=1):
        line = _parse(raw)
        if line is None or line.number not in (1, expected):
            raise DataDamaged(
                f"{file.path}: line {at} is neither `{expected} sentence` nor `{expected} "
                f"question, answer, facts` with tabs between them; {_REMEDY}."
            )
        if line.number == 1:
            story, places = [], {}
        expected = line.number + 1
        if not line.answer:
            places[line.number] = len(story)
            story.append(line.text)
            continue
        if any(fact not in places for fact in line.supporting):
            raise DataDamaged(
                f"{file.path}: line {at} names a supporting fact that was not told; {_REMEDY}."
            )
        yield {
            "number": number,
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
