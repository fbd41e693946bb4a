"""Whole texts: Tiny Shakespeare, WikiText-2 and the standard library are read strictly."""

import gzip
from pathlib import Path

import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.stdlib_code import MODULES, load_stdlib_code
from tasks.data.tinyshakespeare import load_tinyshakespeare
from tasks.data.wikitext2 import load_wikitext2


def put(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder.parent


def test_parts_of_the_plays_are_the_text(tmp_path):
    text = "VELMORA:\n\nWho knocks?\n" * 20
    table = load_tinyshakespeare(put(tmp_path / "tinyshakespeare", "input.txt.gz", gz(text)))
    parts = [table.parts[part][0]["text"] for part in ("train", "validation", "test")]
    assert "".join(parts) == text
    assert [len(part) for part in parts] == [396, 22, 22]
    assert "tinyshakespeare from the directory: input.txt.gz " in table.note


def gz(text: str) -> bytes:
    return gzip.compress(text.encode())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the file is empty"),
        (gz("\n \n"), "the file is empty"),
        (gz("who\nknocks\n" * 999)[:-30], "ends too early|is damaged"),
        (gzip.compress(b"who\nkn\xff\n"), "line 2 is not UTF-8"),
        (gz("a\r\nb\r\n"), "line 1 ends in a carriage return"),
        (gz("who?\n"), "line 1 ends a text of 5 characters"),
    ],
    # the bytes hold the time at which they were made, which workers of one session do not share
    ids=["nothing", "blank", "cut", "latin", "carriage", "short"],
)
def test_a_damaged_text_is_told_with_its_place_and_the_remedy(content, told, tmp_path):
    folder = put(tmp_path / "tinyshakespeare", "input.txt.gz", content)
    with pytest.raises(DataDamaged, match=told) as raised:
        load_tinyshakespeare(folder)
    assert "input.txt.gz" in str(raised.value)
    assert "again from its source" in str(raised.value)


def test_rows_of_the_articles_keep_their_blanks(tmp_path):
    put(tmp_path / "wikitext2", "valid.txt.gz", gz(" \n = Storm = \n \n"))
    table = load_wikitext2(put(tmp_path / "wikitext2", "test.txt.gz", gz(" \n a storm . \n")))
    assert [row["text"] for row in table.parts["validation"]] == [" ", " = Storm = ", " "]
    assert set(table.parts) == {"validation", "test"}


def test_a_missing_part_of_the_articles_is_told(tmp_path):
    folder = put(tmp_path / "wikitext2", "valid.txt.gz", gz("a\n"))
    with pytest.raises(DataUnavailable, match=r"test\.txt\.gz is missing"):
        load_wikitext2(folder)


@pytest.mark.parametrize("load", [load_tinyshakespeare, load_wikitext2])
def test_without_a_directory_the_remedy_is_told(load):
    with pytest.raises(DataUnavailable, match="name a data directory with --data-dir"):
        load()


def test_no_module_stands_in_two_parts():
    modules = [module for part in MODULES.values() for module in part]
    assert len(modules) == len(set(modules))


def test_modules_are_read_whole_and_one_after_the_other(tmp_path):
    for part in MODULES.values():
        for module in part:
            (tmp_path / f"{module}.py").write_text(f'"""{module}."""\n')
    code = load_stdlib_code(tmp_path)
    assert code.parts["validation"] == "".join(f'"""{m}."""\n' for m in MODULES["validation"])
    again = load_stdlib_code(tmp_path)
    (tmp_path / "glob.py").write_text("other\n")
    assert again.note == code.note != load_stdlib_code(tmp_path).note


def test_a_library_without_its_source_is_told(tmp_path):
    with pytest.raises(DataUnavailable, match=r"stdlib_code: .*argparse\.py is missing; install"):
        load_stdlib_code(tmp_path)
