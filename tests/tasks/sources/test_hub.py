"""A fetched copy remembers its source, is checked on reading, and never asks the hub again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import shows
from bench.api.errors import DataDamaged, DataUnavailable, UnknownName
from tasks.sources import hub

ROWS = {"train": ["eins\u2028", "zwei"], "validation": ["drei"], "test": ["vier"]}


@pytest.fixture(autouse=True)
def _small_entry(monkeypatch):
    entry = hub.HubDataset(
        dataset="someone/tiny",
        revision="main",
        splits={split: len(rows) for split, rows in ROWS.items()},
        fields=("de", "en"),
        license="none stated",
        license_open=False,
    )
    monkeypatch.setitem(hub.FETCHABLE, "tiny", entry)


def resolve(dataset: str, revision: str) -> str:
    return {"main": "0123abc"}[revision]


def load(dataset: str, revision: str) -> dict:
    assert (dataset, revision) == ("someone/tiny", "0123abc")
    return {
        split: [{"de": text, "en": f"{text} in English", "id": 7} for text in texts]
        for split, texts in ROWS.items()
    }


def never(*_: str) -> dict:
    raise AssertionError("the hub was asked")


def fetch_tiny() -> Path:
    return hub.fetch("tiny", load=load, resolve=resolve)


def test_a_copy_holds_the_fields_and_the_source():
    folder = fetch_tiny()
    copy = hub.read_copy("tiny")
    assert copy.revision == "0123abc (unpinned)", "`main` is a branch, which moves"
    assert copy.splits["train"][0] == {"de": "eins\u2028", "en": "eins\u2028 in English"}
    assert {split: len(rows) for split, rows in copy.splits.items()} == {
        "train": 2,
        "validation": 1,
        "test": 1,
    }
    source = json.loads((folder / "source.json").read_text(encoding="utf-8"))
    assert source["dataset"] == "someone/tiny"
    assert source["license_open"] is False
    assert set(source["files"]) == {"train.jsonl", "validation.jsonl", "test.jsonl"}
    assert sorted(path.name for path in folder.parent.iterdir()) == ["tiny"]


def test_a_good_copy_is_used_without_asking():
    folder = fetch_tiny()
    assert hub.fetch("tiny", offline=True, load=never, resolve=never) == folder


def test_a_damaged_copy_is_refused_and_fetched_anew():
    folder = fetch_tiny()
    (folder / "train.jsonl").write_bytes(b'{"de": "x"}\n')
    with pytest.raises(DataDamaged, match=r"train\.jsonl.*python -m bench data fetch tiny"):
        hub.read_copy("tiny")
    fetch_tiny()
    assert len(hub.read_copy("tiny").splits["train"]) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": {"gone.jsonl": ""}, "revision": ""}'])
def test_a_damaged_source_record_is_refused(content):
    (fetch_tiny() / "source.json").write_bytes(content)
    with pytest.raises(DataDamaged, match=r"source\.json"):
        hub.read_copy("tiny")


def test_rows_that_are_missing_leave_nothing_behind():
    def short(dataset: str, revision: str) -> dict:
        return load(dataset, revision) | {"test": []}

    with pytest.raises(DataDamaged, match="test has 0 rows where 1 are expected"):
        hub.fetch("tiny", load=short, resolve=resolve)
    assert hub.read_copy("tiny") is None


def test_a_row_without_a_field_is_refused():
    def holed(dataset: str, revision: str) -> dict:
        return load(dataset, revision) | {"validation": [{"de": "drei", "en": ""}]}

    with pytest.raises(DataDamaged, match="row 1 of validation has no 'en'"):
        hub.fetch("tiny", load=holed, resolve=resolve)


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_offline_is_a_sentence_with_the_command(how, monkeypatch):
    if how == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="run `python -m bench data fetch tiny`"):
        hub.fetch("tiny", offline=how == "argument", load=never, resolve=never)


def test_an_unreachable_hub_is_one_sentence(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(DataUnavailable, match=r"someone/tiny could not be fetched") as caught:
        hub.fetch("tiny", load=never)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_answered_with_a_known_one():
    with pytest.raises(UnknownName, match="did you mean 'multi30k'"):
        hub.fetch("multi30")


def test_fetching_what_is_not_pinned_warns_and_says_which_commit_came(monkeypatch):
    fetch_tiny()
    told = shows.fetch("tiny")
    assert "revision 0123abc (unpinned)" in told
    assert "Warning: no commit of this data set is pinned" in told


def test_a_pinned_commit_is_told_as_it_is(monkeypatch):
    commit = "ab" * 20
    entry = replace(hub.FETCHABLE["tiny"], revision=commit)
    monkeypatch.setitem(hub.FETCHABLE, "tiny", entry)
    hub.fetch("tiny", load=lambda dataset, _: load(dataset, "0123abc"), resolve=lambda *_: commit)
    assert shows.fetch("tiny").startswith(f"tiny: revision {commit}, 3 files")
    assert "Warning" not in shows.fetch("tiny")


def test_multi30k_is_pinned_and_not_open():
    entry = hub.FETCHABLE["multi30k"]
    assert len(entry.revision) == 40
    assert not entry.license_open
