"""Files of a data directory and of the cache, damaged."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.derived import kept_arrays, pack, unpack
from tasks.data.files import read_parallel, read_text
from tasks.data.subwords import SubwordConfig, cached_subwords
from tasks.data.tables import numbered, read_json_lines, read_table
from tests.fuzz.law import Attack, Broken, Case
from tests.fuzz.mutations import damaged_bytes, other_json

ROWS = [[number, number + 1] * (number % 5) for number in range(300)]
LINES = ["a small text of some words", "some more words of a text"] * 20
TABLE = "".join(f"{number % 3}\tone two {number}\n" for number in range(60))


def texts(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Texts, tables and JSON lines, plain and gzipped."""
    objects = [{"label": number % 3, "text": f"one {number}"} for number in range(40)]
    while True:
        lines = [json.dumps(other_json(one, chance) if one["label"] else one) for one in objects]
        content = chance.choice((TABLE, "\n".join(lines) + "\n")).encode()
        packed = chance.random() < 0.5
        stored = gzip.compress(content, mtime=0) if packed else content
        path = folder / f"file.{'gz' if packed else 'txt'}"
        path.write_bytes(damaged_bytes(stored, chance))
        yield path.name, lambda path=path: _read(path)


def _read(path: Path) -> None:
    readers = (
        lambda: read_text(path),
        lambda: read_parallel({"a": path, "b": path}),
        lambda: read_table(path, ["label", "text"]),
        lambda: read_table(path, ["label", "text"], header=True),
        lambda: _labels(path),
    )
    for reader in readers:
        try:
            reader()
        except (DataDamaged, DataUnavailable) as error:
            if len(str(error)) > 2000:
                raise Broken(f"a sentence of {len(str(error))} characters") from None


def _labels(path: Path) -> None:
    rows, _ = read_json_lines(path, {"label": int, "text": str})
    numbered(rows, "label", {0: 0, 1: 1, 2: 2}, path)


def caches(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Arrays and vocabularies in the cache: what is read is what was stored."""
    _kept(folder)
    config = SubwordConfig(size=40)
    vocabulary = cached_subwords(LINES, config, cache_dir=folder).to_json()
    (arrays,), (words,) = (folder / "kind").iterdir(), (folder / "subwords").iterdir()
    whole = {path: path.read_bytes() for path in (arrays, words)}

    def read() -> None:
        if unpack(_kept(folder)) != ROWS:
            raise Broken("other rows than were stored")
        if cached_subwords(LINES, config, cache_dir=folder).to_json() != vocabulary:
            raise Broken("another vocabulary than was stored")

    while True:
        path = chance.choice((arrays, arrays, words))
        path.write_bytes(damaged_bytes(whole[path], chance))
        yield path.name, read


def _kept(folder: Path):
    return kept_arrays("kind", {"text": "one"}, lambda: pack(ROWS), cache_dir=folder)


ATTACKS = (
    Attack("data files", texts, few=60, many=2500),
    Attack("caches", caches, few=60, many=1500),
)
