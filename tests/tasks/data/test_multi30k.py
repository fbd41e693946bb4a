"""Multi30k comes from the directory, else from the fetched copy, else with the command."""

import pytest

from bench.api.errors import DataDamaged, DataUnavailable, InvalidConfig, UnknownName
from tasks.data import hub, hub_sets
from tasks.data.multi30k import load_multi30k

PART = {"de": ("ein Hund", "eine Katze"), "en": ("a dog", "a cat"), "fr": ("un chien", "un chat")}
FILES = {"train": PART, "val": PART, "test_2016_flickr": PART}
SPLITS = ("train", "validation", "test")


def fetch_small(monkeypatch):
    entry = hub_sets.FETCHABLE["multi30k"]
    small = hub_sets.HubDataset(**{**vars(entry), "splits": dict.fromkeys(SPLITS, 2)})
    monkeypatch.setitem(hub_sets.FETCHABLE, "multi30k", small)
    rows = [{"de": de, "en": en} for de, en in zip(PART["de"], PART["en"], strict=True)]
    hub.fetch(
        "multi30k",
        load=lambda entry, commit: dict.fromkeys(SPLITS, rows),
        resolve=lambda dataset, revision: revision,
    )


def test_the_directory_gives_the_languages_asked_for(write_directory):
    corpus = load_multi30k(("de", "fr", "en"), write_directory(FILES))
    assert corpus.languages == ("de", "fr", "en")
    assert corpus.train == corpus.validation == corpus.test == PART
    assert corpus.origin == "directory"
    assert not corpus.license_open
    assert len(corpus.files) == 9


def test_equal_text_has_one_hash_wherever_it_comes_from(write_directory, monkeypatch):
    fetch_small(monkeypatch)
    fetched = load_multi30k()
    assert fetched.origin == "hub"
    assert fetched.revision == hub_sets.FETCHABLE["multi30k"].revision
    local = load_multi30k(("en", "de"), write_directory(FILES))
    assert local.origin == "directory"
    assert local.hash == fetched.hash
    changed = {**FILES, "val": {**PART, "en": ("a dog", "a cat!")}}
    assert load_multi30k(data_dir=write_directory(changed)).hash != fetched.hash


def test_the_hub_copy_has_two_languages(monkeypatch):
    fetch_small(monkeypatch)
    with pytest.raises(DataUnavailable, match="has no 'fr', only de, en"):
        load_multi30k(("fr", "en"))


def test_nothing_there_names_the_command(tmp_path):
    with pytest.raises(DataUnavailable, match="run `python -m bench data fetch multi30k`"):
        load_multi30k()
    with pytest.raises(DataUnavailable, match="has no folder multi30k"):
        load_multi30k(data_dir=tmp_path)


def test_a_half_directory_is_not_replaced_in_silence(write_directory, monkeypatch):
    fetch_small(monkeypatch)
    folder = write_directory(FILES)
    (folder / "multi30k" / "val.en.gz").unlink()
    with pytest.raises(DataUnavailable, match=r"val\.en\.gz is missing"):
        load_multi30k(data_dir=folder)


def test_misaligned_parts_are_refused(write_directory):
    folder = write_directory({**FILES, "train": {**PART, "en": ("a dog",)}})
    with pytest.raises(DataDamaged, match="misaligned from line 2 on"):
        load_multi30k(data_dir=folder)


def test_languages_are_checked():
    with pytest.raises(UnknownName, match="no language of Multi30k named 'xx'"):
        load_multi30k(("de", "xx"))
    with pytest.raises(InvalidConfig, match="different"):
        load_multi30k(("de", "de"))
    with pytest.raises(InvalidConfig, match="at least one"):
        load_multi30k(())


def test_the_real_directory_is_whole(real_directory):
    corpus = load_multi30k(("de", "en"), real_directory)
    sizes = [len(part["en"]) for part in (corpus.train, corpus.validation, corpus.test)]
    assert sizes == [29000, 1014, 1000]
    assert corpus.hash.startswith("e6bbdc57b6dc")
    assert not set(corpus.test["en"]) & set(corpus.train["en"])
