"""A fetched copy remembers its source, is checked on reading, and never asks the hub again."""

import base64
import io
import json
import urllib.request
from dataclasses import replace
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.api.errors import DataDamaged, DataUnavailable, UnknownName
from bench.cli.data import fetch
from tasks.data import hub, hub_copies, hub_sets

ROWS = {"train": ["eins\u2028", "zwei"], "validation": ["drei"], "test": ["vier"]}


@pytest.fixture(autouse=True)
def _small_entry(monkeypatch):
    entry = hub_sets.HubDataset(
        dataset="someone/tiny",
        revision="main",
        splits={split: len(rows) for split, rows in ROWS.items()},
        fields={"de": str, "en": str},
        license="none stated",
        license_open=False,
    )
    monkeypatch.setitem(hub_sets.FETCHABLE, "tiny", entry)


def resolve(dataset: str, revision: str) -> str:
    return {"main": "0123abc"}[revision]


def load(entry: hub_sets.HubDataset, commit: str) -> dict:
    assert (entry.dataset, commit) == ("someone/tiny", "0123abc")
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
    copy = hub_copies.read_copy("tiny")
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
        hub_copies.read_copy("tiny")
    fetch_tiny()
    assert len(hub_copies.read_copy("tiny").splits["train"]) == 2


def unreachable(dataset: str, revision: str) -> str:
    raise DataUnavailable("no network")


def cut_short(entry: hub_sets.HubDataset, commit: str) -> dict:
    return load(entry, commit) | {"test": []}


@pytest.mark.parametrize(
    ("answers", "error", "told"),
    [
        ({"offline": True, "load": never, "resolve": never}, DataDamaged, r"train\.jsonl.*differs"),
        ({"load": never, "resolve": unreachable}, DataUnavailable, "no network"),
        ({"load": cut_short, "resolve": resolve}, DataDamaged, "test has 0 rows"),
    ],
    ids=["offline", "without network", "rows are missing"],
)
def test_a_damaged_copy_is_kept_until_another_can_take_its_place(answers, error, told):
    folder = fetch_tiny()
    (folder / "train.jsonl").write_bytes(b'{"de": "x"}\n')
    with pytest.raises(error, match=told):
        hub.fetch("tiny", **answers)
    assert set(hub_copies.read_copy("tiny", splits=["test"]).splits) == {"test"}
    fetch_tiny()
    assert hub_copies.read_copy("tiny") is not None
    assert sorted(path.name for path in folder.parent.iterdir()) == ["tiny"]


def test_a_copy_that_another_process_made_meanwhile_is_used_if_it_is_good():
    def overtaken(entry: hub_sets.HubDataset, commit: str) -> dict:
        fetch_tiny()
        return load(entry, commit) | {"validation": [{"de": "drei", "en": "three"}]}

    hub.fetch("tiny", load=overtaken, resolve=resolve)
    assert hub_copies.read_copy("tiny").splits["validation"][0]["en"] == "drei in English"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": {"gone.jsonl": ""}, "revision": ""}'])
def test_a_damaged_source_record_is_refused(content):
    (fetch_tiny() / "source.json").write_bytes(content)
    with pytest.raises(DataDamaged, match=r"source\.json"):
        hub_copies.read_copy("tiny")


def test_rows_that_are_missing_leave_nothing_behind():
    def short(entry: hub_sets.HubDataset, commit: str) -> dict:
        return load(entry, commit) | {"test": []}

    with pytest.raises(DataDamaged, match="test has 0 rows where 1 are expected"):
        hub.fetch("tiny", load=short, resolve=resolve)
    assert hub_copies.read_copy("tiny") is None


def test_a_row_without_a_field_is_refused():
    def holed(entry: hub_sets.HubDataset, commit: str) -> dict:
        return load(entry, commit) | {"validation": [{"de": "drei", "en": ""}]}

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


def test_a_copy_that_no_run_would_read_is_told(monkeypatch, tmp_path):
    fetch_tiny()
    (tmp_path / "tiny").mkdir()
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    assert f"runs read {tmp_path / 'tiny'} and not this copy" in fetch("tiny")
    (tmp_path / "tiny").rmdir()
    assert "runs read" not in fetch("tiny")


def test_fetching_what_is_not_pinned_warns_and_says_which_commit_came(monkeypatch):
    fetch_tiny()
    told = fetch("tiny")
    assert "revision 0123abc (unpinned)" in told
    assert "Warning: no commit of this data set is pinned" in told


def test_a_pinned_commit_is_told_as_it_is(monkeypatch):
    commit = "ab" * 20
    entry = replace(hub_sets.FETCHABLE["tiny"], revision=commit)
    monkeypatch.setitem(hub_sets.FETCHABLE, "tiny", entry)
    hub.fetch("tiny", load=lambda entry, _: load(entry, "0123abc"), resolve=lambda *_: commit)
    assert fetch("tiny").startswith(f"tiny: revision {commit}, 3 files")
    assert "Warning" not in fetch("tiny")


def test_multi30k_is_pinned_and_not_open():
    entry = hub_sets.FETCHABLE["multi30k"]
    assert len(entry.revision) == 40
    assert not entry.license_open


def change(monkeypatch, **changed):
    entry = replace(hub_sets.FETCHABLE["tiny"], **changed)
    monkeypatch.setitem(hub_sets.FETCHABLE, "tiny", entry)


def test_what_came_in_the_place_of_a_field_a_type_or_a_split_is_told(monkeypatch):
    change(monkeypatch, fields={"de": str, "fr": str})
    with pytest.raises(DataDamaged, match="row 1 of train has no 'fr', only 'de', 'en', 'id'; rep"):
        fetch_tiny()
    change(monkeypatch, fields={"de": str, "id": str})
    with pytest.raises(DataDamaged, match="row 1 of train has int in 'id' where str is expected"):
        fetch_tiny()
    change(monkeypatch, fields={"de": str}, splits={"train": 2, "dev": 1})
    with pytest.raises(DataDamaged, match="there is no split 'dev', only 'train', 'validation', "):
        fetch_tiny()
    assert hub_copies.read_copy("tiny") is None


def test_rows_that_were_not_counted_may_be_any_but_none(monkeypatch):
    change(monkeypatch, splits={"train": None, "test": None})
    fetch_tiny()
    assert len(hub_copies.read_copy("tiny").splits["train"]) == 2
    change(monkeypatch, dataset="someone/tiny", splits={"train": None, "validation": None})
    with pytest.raises(DataDamaged, match=r"source\.json names no validation\.jsonl; delete"):
        hub_copies.read_copy("tiny")
    with pytest.raises(DataDamaged, match="validation has 0 rows where some are expected"):
        hub.fetch(
            "tiny",
            load=lambda entry, commit: load(entry, commit) | {"validation": []},
            resolve=resolve,
        )


def test_blank_rows_pass_where_the_data_have_them(monkeypatch):
    def blank(registered, commit):
        return load(registered, commit) | {"test": [{"de": "", "en": "x"}]}

    with pytest.raises(DataDamaged, match="row 1 of test has no 'de'"):
        hub.fetch("tiny", load=blank, resolve=resolve)
    change(monkeypatch, blank=("de",))
    hub.fetch("tiny", load=blank, resolve=resolve)
    assert hub_copies.read_copy("tiny").splits["test"][0]["de"] == ""


def test_only_the_splits_asked_for_are_read_and_named():
    folder = fetch_tiny()
    (folder / "train.jsonl").unlink()
    copy = hub_copies.read_copy("tiny", splits=["test"])
    assert set(copy.splits) == {"test"}
    assert set(copy.files) == {"test.jsonl"}


def test_a_branch_with_a_slash_is_one_word_of_the_address(monkeypatch):
    asked = []

    def answer(url, timeout):
        asked.append(url)
        return io.BytesIO(b'{"sha": "0123abc"}')

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    change(monkeypatch, revision="refs/convert/parquet")
    hub.fetch("tiny", load=load)
    assert asked[0].endswith("/api/datasets/someone/tiny/revision/refs%2Fconvert%2Fparquet")
    assert hub_copies.read_copy("tiny").revision == "0123abc (unpinned)"


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A folder as `datasets` sees a repository: a card with two configs, a text, and sound."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "arrow")
    folder = tmp_path / "repository"
    for config in ("one", "two"):
        (folder / config).mkdir(parents=True)
        for split in ("train", "test"):
            rows = pa.table({"text": [f" {config} {split}\n", ""], "label": [0, 1]})
            pq.write_table(rows, folder / config / f"{split}-00000-of-00001.parquet")
    (folder / "input.txt").write_text("First line\u2028 of two\n\nlast\n", encoding="utf-8")
    (folder / "sound").mkdir()
    sound = pa.table({"audio": [{"bytes": b"RIFF, not decoded", "path": "some/7_ann_3.wav"}]})
    features = {"info": {"features": {"audio": {"_type": "Audio"}}}}
    sound = sound.replace_schema_metadata({"huggingface": json.dumps(features)})
    pq.write_table(sound, folder / "sound" / "train.parquet")
    lines = ["---", "configs:"]
    for config in ("one", "two"):
        lines += [f"- config_name: {config}", "  data_files:"]
        for split in ("train", "test"):
            lines += [f"  - split: {split}", f"    path: {config}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
    return folder


def fetch_local(monkeypatch, folder, **changed):
    change(monkeypatch, dataset=str(folder), **changed)
    hub.fetch("tiny", resolve=resolve)
    return hub_copies.read_copy("tiny").splits


def test_datasets_reads_the_config_that_an_entry_names(local, monkeypatch):
    splits = fetch_local(
        monkeypatch,
        local,
        config="two",
        splits={"train": 2, "test": 2},
        fields={"text": str, "label": int},
        blank=("text",),
    )
    assert splits["train"] == ({"text": " two train\n", "label": 0}, {"text": "", "label": 1})
    assert splits["test"][0]["text"] == " two test\n"
    source = json.loads((hub_copies.copy_folder("tiny") / "source.json").read_bytes())
    assert source["config"] == "two"


def test_a_config_that_is_not_there_is_one_sentence(local, monkeypatch):
    with pytest.raises(
        DataUnavailable, match=r"could not be fetched .*three.*BENCH_DATA_DIR"
    ) as told:
        fetch_local(monkeypatch, local, config="three")
    assert "\n" not in str(told.value)


def test_datasets_reads_the_files_that_an_entry_names_under_its_splits(local, monkeypatch):
    splits = fetch_local(
        monkeypatch,
        local,
        files={"train": "input.txt"},
        splits={"train": 3},
        fields={"text": str},
        blank=("text",),
    )
    assert [row["text"] for row in splits["train"]] == ["First line\u2028 of two", "", "last"]


def test_sound_is_kept_as_it_was_stored_and_never_decoded(local, monkeypatch):
    splits = fetch_local(
        monkeypatch,
        local,
        files={"qa1_train": "sound/train.parquet"},
        splits={"qa1_train": 1},
        fields={"audio": bytes},
    )
    (row,) = splits["qa1_train"]
    assert row["audio"]["name"] == "7_ann_3.wav"
    assert base64.b64decode(row["audio"]["base64"]) == b"RIFF, not decoded"


def test_sound_without_a_name_is_refused(monkeypatch):
    change(monkeypatch, fields={"audio": bytes}, splits={"train": 1})
    for audio in ({"bytes": b"x", "path": None}, {"bytes": None, "path": "a.wav"}, "a.wav"):
        with pytest.raises(DataDamaged, match="row 1 of train has no named file of sound in 'aud"):
            hub.fetch(
                "tiny", load=lambda *_, found=audio: {"train": [{"audio": found}]}, resolve=resolve
            )


PINNED = {name for name, registered in hub_sets.FETCHABLE.items() if registered.pinned}


@pytest.mark.parametrize("name", sorted(hub_sets.FETCHABLE))
def test_an_entry_that_is_not_pinned_says_so_everywhere(name):
    entry = hub_sets.FETCHABLE[name]
    assert name in PINNED or entry.revision in {"main", "refs/convert/parquet"}
    assert set(entry.files) in (set(), set(entry.splits))
    assert set(entry.blank) <= set(entry.fields)
    assert entry.size
