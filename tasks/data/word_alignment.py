"""Sentence pairs with gold word alignments, in four pairs of languages.

`en_cs`: CzEnAli 1.0, newspaper text (Mareček, 2011, http://hdl.handle.net/11234/1-1804), sure links
alone, in the split of its data directory. `en_fr`: Hansards of the NAACL 2003 shared task (Mihalcea
& Pedersen, 2003, https://aclanthology.org/W03-0301), sure and possible links. `ja_en`: the Kyoto
Free Translation Task (Neubig, 2011, http://www.phontron.com/kftt). `de_en`: Europarl of Biçici
(2011, "The regression model of machine translation"). Words are those of the sets, lower-cased.

`ja_en` is cut into 400, 82 and 100 pairs. `en_fr` and `de_en` have no training part of their own:
their first 47 and 20 pairs are the validation, and the training pairs are captions of Multi30k
(Elliott et al., 2016, https://aclanthology.org/W16-3210), which are of another domain and have no
links. A pair of `en_cs` is taken out of training if its source sentence is also in the test. It
stays if its source is also in validation, as it is for 6 of the 150 pairs there.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from bench.api.errors import DataDamaged
from bench.api.license import License
from bench.api.plain_text import shortened
from tasks.data.files import TextFile, read_parallel, read_text
from tasks.data.multi30k import load_multi30k
from tasks.data.tables import DataSet, Row, Rows, load_table, read_json_lines
from tasks.data.words import tokenize

LanguagePair = Literal["en_cs", "en_fr", "ja_en", "de_en"]
CAPTIONED: Mapping[str, tuple[str, str]] = {"en_fr": ("en", "fr"), "de_en": ("de", "en")}
"""Pairs that are trained on captions, and their languages."""

LICENSES: Mapping[str, License] = {
    "en_cs": License("CC BY-SA 4.0 (CzEnAli 1.0)", redistributable=True),
    "en_fr": License(
        "no restriction stated (Hansards); research use (Multi30k)", redistributable=False
    ),
    "ja_en": License("CC BY-SA 3.0 (KFTT)", redistributable=True),
    "de_en": License("no open license stated; research use", redistributable=False),
}

_VALIDATION = 150
"""Last pairs of the training file of `en_cs` that are the validation."""
_REMEDY = "copy the file again from its source"
_WORDS = ("src_words", "tgt_words")
"""Fields of `en_cs` that hold the words of a sentence."""
Link = tuple[int, int]
"""Positions of a source and a target word."""
_LINK = re.compile(r"(\d+)([-p])(\d+)")


def load_word_alignment(
    pair: LanguagePair, data_dir: Path | None = None, *, cache_dir: Path | None = None
) -> DataSet:
    """Load one pair of languages from the data directory.

    Rows have `source` and `target` (words), `sure` and `possible` (source and target position of
    each link, from 0; sure links are possible ones too).

    Raises:
        DataUnavailable: The data are not on this machine; the message says how to get them.
        DataDamaged: A file is there and is not whole.
    """
    readers = {"en_cs": _read_en_cs, "de_en": _read_de_en}
    read = readers.get(pair, partial(_read_awesome, pair.replace("_", "")))
    table = load_table("word_alignment", read, data_dir, cache_dir=cache_dir)
    if pair not in CAPTIONED:
        return table
    languages = CAPTIONED[pair]
    corpus = load_multi30k(languages, data_dir, cache_dir=cache_dir)
    source, target = (corpus.train[language] for language in languages)
    rows = tuple(_unlinked(one, two) for one, two in zip(source, target, strict=True))
    train = {name: digest for name, digest in corpus.files.items() if name.startswith("train")}
    return DataSet(
        name=table.name,
        parts={**table.parts, "train": rows},
        origin=table.origin,
        files={**table.files, **train},
    )


def _unlinked(source: str, target: str) -> Row:
    return {"source": tokenize(source), "target": tokenize(target), "sure": [], "possible": []}


def _read_en_cs(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    fields = dict.fromkeys((*_WORDS, "alignment"), list)
    paths = [folder / "encs-czenali" / f"czenali.{part}.jsonl.gz" for part in ("train", "valid")]
    read = [read_json_lines(path, fields) for path in paths]
    made = [
        [_checked(path, line, row) for line, row in enumerate(rows, start=1)]
        for path, (rows, _) in zip(paths, read, strict=True)
    ]
    known = {tuple(row["source"]) for row in made[1]}
    train = tuple(row for row in made[0] if tuple(row["source"]) not in known)
    # a small file keeps more than half of itself for training
    kept = max(len(train) // 2, len(train) - _VALIDATION)
    parts = {"train": train[:kept], "validation": train[kept:], "test": tuple(made[1])}
    return parts, [file for _, file in read]


def _checked(path: Path, line: int, row: Row) -> Row:
    """One pair of CzEnAli, whose links must be positions of its words."""
    for name in _WORDS:
        if not all(isinstance(word, str) for word in row[name]):
            raise DataDamaged(
                f"{path}: line {line} has other things than words in {name!r}; {_REMEDY}."
            )
    source, target = (row[name] for name in _WORDS)
    try:
        sure = [(int(i), int(j)) for i, j in row["alignment"]]
    except (TypeError, ValueError, OverflowError) as error:
        raise DataDamaged(
            f"{path}: line {line} has a link that is no pair of numbers; {_REMEDY}."
        ) from error
    for i, j in sure:
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise DataDamaged(
                f"{path}: line {line} links word {i} with word {j} of {len(source)} and "
                f"{len(target)} words; {_REMEDY}."
            )
    return _row(source, target, sure, sure)


def _read_awesome(stem: str, folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    """Pairs on one line, links on another: `i-j` is sure and `ipj` possible, counted from 1."""
    files = read_parallel(
        {name: folder / "awesome-align" / f"{stem}.{name}" for name in ("src-tgt", "gold")}
    )
    text, gold = files["src-tgt"], files["gold"]
    rows = []
    for line, (pair, links) in enumerate(zip(text.lines, gold.lines, strict=True), start=1):
        sides = pair.split("|||")
        if len(sides) != 2:
            raise DataDamaged(f"{text.path}: line {line} is no 'source ||| target'; {_REMEDY}.")
        found = _links(gold.path, line, links, first=1)
        rows.append(_row(sides[0].split(), sides[1].split(), *found))
    whole = tuple(rows)
    cuts = (400, 482) if stem == "jaen" else (0, 47)
    return _parts(whole, *cuts), list(files.values())


def _read_de_en(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    place = folder / "deen-bicici"
    files = read_parallel({name: place / f"test.{name}" for name in ("de", "en")})
    gold = read_text(place / "de-en.wa")
    if len(gold.lines) != len(files["de"].lines):
        raise DataDamaged(
            f"{gold.path} has {len(gold.lines)} lines for {len(files['de'].lines)} pairs; "
            f"{_REMEDY}."
        )
    rows = [
        _row(source.split(), target.split(), *_links(gold.path, line, links, first=0))
        for line, (source, target, links) in enumerate(
            zip(files["de"].lines, files["en"].lines, gold.lines, strict=True), start=1
        )
    ]
    return _parts(tuple(rows), 0, 20), [*files.values(), gold]


def _parts(rows: Rows, first: int, second: int) -> dict[str, Rows]:
    """Cut one file; a shorter one than expected keeps the shares."""
    if len(rows) <= second:
        first, second = (0 if first == 0 else len(rows) // 2), 3 * len(rows) // 4
    return {"train": rows[:first], "validation": rows[first:second], "test": rows[second:]}


def _links(path: Path, line: int, text: str, *, first: int) -> tuple[list[Link], list[Link]]:
    """Sure and possible links of one line, counted from 0; the sure ones are possible too."""
    sure, possible = [], []
    for link in text.split():
        found = _LINK.fullmatch(link)
        if found is None:
            raise DataDamaged(
                f"{path}: line {line} has {shortened(link, 200)!r} where a link like 3-4 is "
                f"expected; {_REMEDY}."
            )
        places = (int(found[1]) - first, int(found[3]) - first)
        possible.append(places)
        if found[2] == "-":
            sure.append(places)
    return sure, possible


def _row(
    source: Sequence[str], target: Sequence[str], sure: list[Link], possible: list[Link]
) -> Row:
    """Lower-case the words; drop links that no word answers to, of which two sets have a few."""

    def inside(links: list[Link]) -> list[Link]:
        return [(i, j) for i, j in links if 0 <= i < len(source) and 0 <= j < len(target)]

    return {
        "source": [word.lower() for word in source],
        "target": [word.lower() for word in target],
        "sure": inside(sure),
        "possible": inside(possible),
    }
