"""Data kept in the cache: a damaged file, or a cache that takes none, costs time alone."""

import random

import numpy as np
import pytest

from bench.api import code_of_data
from bench.api.cache import CACHE_VARIABLE
from bench.running import source_code
from bench.running.certificate_cache import CertificateCache
from bench.running.code_of_cells import CodeOfCells
from tasks.classification.read_texts import ReadTextTask
from tasks.data import snli
from tasks.data.derived import kept_arrays, pack, unpack
from tasks.data.ibm_alignments import ibm_links
from tasks.data.stdlib_methods import load_methods
from tasks.data.subwords import SubwordConfig, cached_subwords
from tests.bench.running.test_code_of_cells import edited

ROWS = [[number, number + 1] * (number % 5) for number in range(300)]
LINES = ["a small text of some words", "some more words of a text"] * 20


def kept(folder, made):
    def make():
        made.append(1)
        return pack(ROWS)

    return kept_arrays("kind", {"text": "one"}, make, cache_dir=folder)


def damaged(whole, chance):
    """A file cut, with bytes changed, taken out or put in, or with something else in it."""
    content = bytearray(whole)
    for _ in range(chance.choice([1, 1, 4, 40])):
        place = chance.randrange(len(content))
        kind = chance.randrange(4)
        if kind == 0:
            content[place] = chance.randrange(256)
        elif kind == 1:
            del content[place : place + chance.randrange(1, 30)]
        elif kind == 2:
            content[place:place] = chance.randbytes(chance.randrange(1, 30))
        else:
            content[place : place + 1] = b""
        content = content or bytearray(b"x")
    return bytes(content[: chance.randrange(len(content))] if chance.random() < 0.2 else content)


@pytest.mark.filterwarnings("ignore")  # of zipfile, about names that are there twice
def test_a_damaged_file_is_made_anew_and_never_gives_other_rows(tmp_path):
    made = []
    kept(tmp_path, made)
    (path,) = (tmp_path / "kind").iterdir()
    whole = path.read_bytes()
    chance = random.Random(0)
    for _ in range(150):
        path.write_bytes(damaged(whole, chance))
        assert unpack(kept(tmp_path, made)) == ROWS
    assert path.read_bytes() == whole
    assert len(made) > 100
    before = len(made)
    kept(tmp_path, made)
    assert len(made) == before


def test_a_file_of_an_earlier_version_is_made_anew(tmp_path):
    made = []
    kept(tmp_path, made)
    (path,) = (tmp_path / "kind").iterdir()
    np.savez(path, **pack([[9]]))
    assert unpack(kept(tmp_path, made)) == ROWS
    assert len(made) == 2


def test_a_damaged_vocabulary_is_trained_anew_and_never_another(tmp_path):
    config = SubwordConfig(size=40)
    whole = cached_subwords(LINES, config, cache_dir=tmp_path).to_json()
    (path,) = (tmp_path / "subwords").iterdir()
    stored, chance = path.read_bytes(), random.Random(0)
    for _ in range(60):
        path.write_bytes(damaged(stored, chance))
        assert cached_subwords(LINES, config, cache_dir=tmp_path).to_json() == whole


def test_what_edited_code_makes_is_made_anew(tmp_path, monkeypatch):
    made, asked = [], []
    for code in ("one", "two", "one"):
        monkeypatch.setattr(
            code_of_data, "_reader", lambda makers, c=code: asked.extend(makers) or c
        )
        kept(tmp_path, made)
        cached_subwords(LINES, SubwordConfig(size=40), cache_dir=tmp_path)
    assert len(made) == len([*(tmp_path / "kind").iterdir()]) == 2
    assert len([*(tmp_path / "subwords").iterdir()]) == 2
    assert [one.__name__ for one in asked[:2]] == ["make", "train_subwords"]


def test_code_that_a_maker_was_given_counts_too(tmp_path, monkeypatch):
    def cut():
        pass

    asked = []
    monkeypatch.setattr(code_of_data, "_reader", lambda makers: asked.extend(makers) or "code")
    kept_arrays("kind", {}, lambda: pack(ROWS), given=(cut,), cache_dir=tmp_path)
    assert asked[-1] is cut


@pytest.mark.parametrize(
    ("maker", "module", "edit"),
    [
        (load_methods.__wrapped__, "tasks.data.stdlib_methods", "node.name.starts -> node.starts"),
        (ibm_links, "tasks.data.ibm_alignments", "index(max(chances)) - 1 -> index(1)"),
        (snli._from_hub, "tasks.data.words", "return  -> return 2 * "),
        (ReadTextTask.take, "tasks.data.words", "return  -> return 2 * "),
    ],
)
def test_the_code_of_a_maker_is_all_that_it_reaches(monkeypatch, maker, module, edit):
    usual = code_of_data.code_of(maker)
    assert len(usual) == 12
    source = edited(source_code.loaded_source(), module, *edit.split(" -> "))
    monkeypatch.setattr(source_code, "loaded_source", lambda: source)
    assert code_of_data.code_of(maker) != usual


@pytest.mark.parametrize("place", ["/dev/null", "/proc/nothing"])
def test_data_are_made_where_the_cache_takes_nothing(monkeypatch, place):
    monkeypatch.setenv(CACHE_VARIABLE, f"{place}/cache")
    made = []
    for _ in range(2):
        assert unpack(kept(None, made)) == ROWS
    assert len(made) == 2
    assert cached_subwords(LINES, SubwordConfig(size=40)).size <= 40
    CertificateCache(CodeOfCells()).write(
        "dot", "auto", {"passed": [], "skipped": {}, "failed": {}}
    )
