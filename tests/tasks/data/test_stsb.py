"""STS-B comes from a data directory or the fetched copy, its scores from 0 to 5."""

import json

import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data import hub, hub_sets
from tasks.data.stsb import load_stsb

PARTS = ("train", "validation", "test")
ROW = {"sentence1": "An owl sings.", "sentence2": "A bird sings.", "score": 0.75}
OTHER = {"sentence1": "An owl sings.", "sentence2": "It rains.", "score": 0.0}


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def write(folder, rows):
    (folder / "stsb").mkdir(exist_ok=True)
    for part in PARTS:
        text = "".join(json.dumps(row) + "\n" for row in rows[part])
        (folder / "stsb" / f"{part}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_pairs_of_the_test_are_dropped_from_training(tmp_path):
    rows = {"train": [ROW, OTHER], "validation": [OTHER], "test": [ROW]}
    rows["train"].append({**OTHER, "sentence2": "It snows."})
    table = load_stsb(write(tmp_path, rows))
    assert [row["sentence2"] for row in table.parts["train"]] == ["It snows."]
    assert table.parts["test"][0]["score"] == 3.75


def test_the_fetched_copy_has_the_same_fields(monkeypatch):
    entry = hub_sets.FETCHABLE["stsb"]
    small = hub_sets.HubDataset(**{**vars(entry), "splits": dict.fromkeys(PARTS, 2)})
    monkeypatch.setitem(hub_sets.FETCHABLE, "stsb", small)
    hub.fetch(
        "stsb",
        load=lambda entry, commit: {key: [ROW, OTHER] for key in PARTS},
        resolve=lambda dataset, revision: revision,
    )
    table = load_stsb()
    assert (table.origin, table.revision) == ("hub", entry.revision)
    assert [row["score"] for row in table.parts["test"]] == [3.75, 0.0]


def test_without_either_it_names_the_command():
    with pytest.raises(DataUnavailable, match="run `python -m bench data fetch stsb`"):
        load_stsb()


def test_a_score_outside_its_range_is_named(tmp_path):
    rows = {key: [ROW] for key in PARTS} | {"test": [ROW, {**ROW, "score": 3.0}]}
    with pytest.raises(DataDamaged, match="row 2 of test"):
        load_stsb(write(tmp_path, rows))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({**ROW, "sentence2": " "}, "row 1 of validation of directory is not two sentences"),
        ({**ROW, "score": "1"}, "line 1 has str in 'score' where float is expected"),
        ({**ROW, "sentence1": None}, "line 1 has null in 'sentence1' where str is expected"),
    ],
)
def test_what_is_no_sentence_and_no_score_is_named(tmp_path, row, says):
    rows = {key: [ROW] for key in PARTS} | {"validation": [row]}
    with pytest.raises(DataDamaged, match=says):
        load_stsb(write(tmp_path, rows))
