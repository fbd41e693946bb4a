"""Rows of a hub copy are those of the directory, and every task on such data runs from the copy
alone.

`hub_layout.py` has the invented data of `small_data/` as the hub would give them.
"""

import itertools
import json
import random
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench.api import registry
from bench.api.errors import DataDamaged, DataUnavailable
from bench.api.options import canonical
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.cli import data
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate
from tasks.data import hub, hub_copies, hub_sets
from tasks.data.aeslc import load_aeslc
from tasks.data.ag_news import load_ag_news
from tasks.data.babi import load_babi
from tasks.data.django import load_django
from tasks.data.fsdd import load_fsdd
from tasks.data.imdb import load_imdb
from tasks.data.snli import load_snli
from tasks.data.sst2_sentences import load_sst2_sentences
from tasks.data.tinyshakespeare import load_tinyshakespeare
from tasks.data.wikitext2 import load_wikitext2

HERE = Path(__file__).parent
LAYOUTS = runpy.run_path(str(HERE / "hub_layout.py"))["LAYOUTS"]
TITLE = "A title "
COMMIT = "c" * 40


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("directory")
    for name in LAYOUTS:
        file = HERE / "small_data" / f"{name}.py"
        runpy.run_path(str(file))["write"](folder, random.Random(0))
    return folder


@pytest.fixture(scope="module", autouse=True)
def copies(tmp_path_factory, directory):
    """Every entry fetched, as small as the invented data; no directory is named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("BENCH_DATA_DIR", raising=False)
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        for name, layout in LAYOUTS.items():
            splits = layout(directory / name)
            fetch(patch, name, splits)
        yield


def fetch(patch, name, splits):
    entry = hub_sets.FETCHABLE[name]
    counts = {split: len(splits[split]) for split in entry.splits}
    patch.setitem(hub_sets.FETCHABLE, name, replace(entry, splits=counts))
    hub.fetch(name, load=lambda *_: splits, resolve=lambda *_: COMMIT)


@pytest.fixture
def another(tmp_path, monkeypatch):
    """Fetch other rows of one set into a cache of their own."""
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path))
    return lambda name, splits: fetch(monkeypatch, name, splits)


def test_every_entry_has_a_layout_here():
    assert set(LAYOUTS) == set(hub_sets.FETCHABLE)


@pytest.mark.parametrize(
    "load",
    [load_aeslc, load_django, load_sst2_sentences, load_tinyshakespeare, load_wikitext2],
)
def test_the_same_data_give_the_same_rows(load, directory):
    local, fetched = load(directory), load()
    assert (local.origin, fetched.origin) == ("directory", "hub")
    if load is load_aeslc:  # the hub has one subject a mail
        names = ("email_body", "subject_line")
        assert {
            part: tuple({name: row[name] for name in names} for row in rows)
            for part, rows in local.parts.items()
        } == fetched.parts
    else:
        assert local.parts == fetched.parts


@pytest.mark.parametrize("numbers", [(1,), (2, 20)])
@pytest.mark.parametrize("train", [0, 7])
def test_stories_give_the_same_questions_and_facts(numbers, train, directory):
    local = load_babi(numbers, directory, train=train)
    fetched = load_babi(numbers, train=train)
    assert local.parts == fetched.parts
    assert fetched.parts["train"][0]["supporting"]
    assert len(fetched.files) == 2 * len(numbers), "only files of these tasks are read"


def test_a_training_part_that_the_directory_lacks_is_in_the_copy(directory):
    assert not load_babi((3,), directory).parts["train"]
    assert len(load_babi((3,)).parts["train"]) == 40


def test_recordings_come_out_in_the_data_directories_parts_and_order(directory):
    local, fetched = load_fsdd(directory), load_fsdd()
    for part, rows in local.parts.items():
        for one, two in zip(rows, fetched.parts[part], strict=True):
            assert {**one, "audio": None} == {**two, "audio": None}
            assert (one["audio"]["array"] == two["audio"]["array"]).all()


def test_news_have_their_titles_and_are_otherwise_the_same(directory):
    local, fetched = load_ag_news(directory), load_ag_news()
    for part, rows in local.parts.items():
        assert fetched.parts[part] == tuple({**r, "text": TITLE + r["text"]} for r in rows)


def test_reviews_that_come_one_label_after_the_other_are_shuffled(directory):
    def every(table):
        return sorted((r["text"], r["label"]) for rows in table.parts.values() for r in rows)

    local, fetched = load_imdb(directory), load_imdb()
    assert every(local) == every(fetched)
    assert all(set(row) == {"text", "label"} for row in local.parts["train"])
    for part in ("train", "test"):
        assert {row["label"] for row in fetched.parts[part][:10]} == {0, 1}
    assert fetched.parts == load_imdb().parts


def test_pairs_without_a_label_or_a_word_are_dropped_and_the_rest_is_the_directories(directory):
    local, fetched = load_snli(directory), load_snli()
    for part in ("validation", "test"):
        assert fetched.parts[part] == local.parts[part]
    whole = fetched.parts["train"]
    assert set(fetched.parts) == {"train", "validation", "test"}
    assert [row for row in whole if row in local.parts["train"]] == [*local.parts["train"]]
    assert fetched.parts == load_snli().parts, "what was tokenized is kept"


def test_raw_pairs_of_the_hub_come_out_as_the_tokenized_ones(another):
    row = {"premise": "He isn't John's.", "hypothesis": 'He said "no".', "label": 2}
    other = {**row, "hypothesis": "He naps."}
    another("snli", {"train": [row, other, other], "validation": [row], "test": [row]})
    parts = load_snli().parts
    (test,) = parts["test"]
    assert test["premise"] == "he is n't john 's ."
    assert [r["hypothesis"] for r in parts["train"]] == ["he naps ."], "test pair, and a repeat"


@pytest.mark.parametrize(
    ("name", "load", "rows", "said"),
    [
        ("ag_news", load_ag_news, {"text": "x", "label": 4}, "line 1 has label 4, none of"),
        ("imdb", load_imdb, {"text": "x", "label": -1}, "line 1 has label -1, none of"),
        ("snli", load_snli, {"premise": "x", "hypothesis": "y", "label": 3}, "line 1 has label 3"),
        ("snli", load_snli, {"premise": "x", "hypothesis": "y", "label": -1}, "no line has a lab"),
        (
            "fsdd",
            load_fsdd,
            {"audio": {"bytes": b"x", "path": "one.wav"}, "label": 1},
            "one.wav is not named digit_speaker_number.wav",
        ),
        (
            "fsdd",
            load_fsdd,
            {"audio": {"bytes": b"fLaC", "path": "1_ann_9.wav"}, "label": 1},
            "1_ann_9.wav is no wave file",
        ),
    ],
)
def test_values_that_are_not_expected_name_file_and_line(name, load, rows, said, another):
    another(name, {split: [rows] for split in hub_sets.FETCHABLE[name].splits})
    with pytest.raises(DataDamaged, match=re.escape(said)) as told:
        load()
    assert ".jsonl: " in str(told.value)
    assert hub_copies.REPORT_IT in str(told.value)


def test_a_recording_beside_another_label_is_refused(directory, another):
    splits = LAYOUTS["fsdd"](directory / "fsdd")
    splits["test"][0] = {**splits["test"][0], "label": 9}
    another("fsdd", splits)
    with pytest.raises(DataDamaged, match=r"test\.jsonl: line 1 has label 9 but name 0_ann_0\.wav"):
        load_fsdd()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"supporting_ids": [[], ["7"]]}, "names a supporting fact that the story lacks"),
        ({"text": ["Ada left."]}, "is no story with"),
        ({"id": [], "type": [], "text": [], "answer": [], "supporting_ids": []}, "is no story"),
    ],
)
def test_stories_that_are_none_are_refused(change, said, another):
    story = {
        "id": ["1", "2"],
        "type": [0, 1],
        "text": ["Ada is in the barn.", "Where is Ada?"],
        "answer": ["", "barn"],
        "supporting_ids": [[], ["1"]],
    }
    good = {split: [{"story": story}] for split in hub_sets.FETCHABLE["babi"].splits}
    another("babi", {**good, "qa1_test": [{"story": {**story, **change}}]})
    assert load_babi((2,)).parts["test"][0]["supporting"] == (0,)
    with pytest.raises(DataDamaged, match=rf"qa1_test\.jsonl: line 1 {said}"):
        load_babi((1,))


def reads_only_fetched(name: str) -> bool:
    sets = registry.find("task", name).target.data_sets
    return bool(sets) and set(sets) <= set(hub_sets.FETCHABLE)


FETCHED = [name for name in registry.registrations("task") if reads_only_fetched(name)]
MORE_LANGUAGES = {"multi_source_translation"}
"""Tasks that read French too, which the hub's Multi30k has not."""


@pytest.mark.parametrize("name", FETCHED)
def test_every_task_on_such_data_runs_from_the_hub_copy_alone(name):
    comparison = registry.find("task", name).target.comparison
    variant = comparison[0].variant if comparison else "additive"
    cell = quality_cell(Request(preset="smoke"), resolve(variant), DefaultTask(task=name), 0).cell
    if name in MORE_LANGUAGES:
        with pytest.raises(DataUnavailable, match="has no 'fr'"):
            assemble(cell, None)
        return
    with torch.random.fork_rng():
        built = assemble(cell, None)
    assert "from the hub at" in built.task.notes["data"]
    differs = hub_sets.FETCHABLE[registry.find("task", name).target.data_sets[0]].differs
    assert differs in built.task.notes["data"]
    next(built.task.training(2, torch.Generator().manual_seed(0)))
    found = evaluate(
        built.task, built.system.there, "test", torch.device("cpu"), itertools.count().__next__
    )
    assert found.value(built.task.metrics[0].name) is not None


def test_revised_pairs_are_missing_and_that_is_said():
    task = registry.make("task", parse("snli[train=20,validate=8,test=8]"), 0)
    assert not task.changed("test")
    assert task.notes["minimal pairs"] == "none: the hub copy has no revised pairs"


def wikitext(options, data_dir=None):
    return registry.make("task", parse(f"wikitext2_mini[window=32,{options}]"), 0, data_dir)


def test_the_mini_set_is_the_same_from_directory_and_copy(directory):
    one, two = wikitext("full=false", directory), wikitext("full=false")
    assert one.notes["data"] != two.notes["data"]
    assert all((one.parts[split] == two.parts[split]).all() for split in one.parts)
    assert "name" not in two.notes


def test_full_wikitext_trains_on_the_training_part_and_says_its_name(directory):
    task = wikitext("full=true", directory)
    assert "wikitext2 from the hub" in task.notes["data"]
    assert task.notes["name"] == "WikiText-2 in its own parts, not the mini set"
    assert "training" in task.words.words, "a word of the training part alone"
    assert "training" not in wikitext("full=false", directory).words.words
    mini = wikitext("full=false")
    assert len(task.parts["validation"]) > 5 * len(mini.parts["validation"])
    assert (task.parts["test"] != mini.parts["test"]).any() or task.words != mini.words


def test_the_directory_alone_cannot_be_full_and_says_what_to_fetch(
    directory, tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path))
    with pytest.raises(
        DataUnavailable, match=r"has no train\.txt\.gz.*run `python -m bench data fetch wikitext2`"
    ):
        wikitext("full=true", directory)


def test_ids_of_the_mini_set_are_those_from_before_it_could_be_full():
    def written(options):
        return canonical("task", parse(f"wikitext2_mini{options}")).show()

    assert "full" not in written("") + written("[full=false]")
    assert "full=true" in written("[full=true]")


def test_an_unpinned_copy_warns_and_a_pinned_one_does_not():
    assert "Warning: no commit" in data.fetch("babi")
    assert f"revision {COMMIT} (unpinned)" in data.fetch("babi")
    assert "Warning" not in data.fetch("imdb")
    listed = data.data_sets("")
    for name, registered in hub_sets.FETCHABLE.items():
        (line,) = [line for line in listed.splitlines() if line.split()[:1] == [name]]
        assert "fetched copy" in line
        assert registered.dataset in line


def test_a_copy_that_some_options_read_is_listed_and_told_as_that(directory, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_DATA_DIR", str(directory))
    folder = directory / "wikitext2"
    told = data.fetch("wikitext2")
    assert f"\nRuns that need train.txt.gz read this copy; others read {folder}, because" in told
    assert "and not this copy" not in told
    assert f"Warning: runs read {directory / 'imdb'} and not this copy" in data.fetch("imdb")

    def listed():
        rows = json.loads(data.data_sets("", as_json=True))
        return {row["data_set"]: (row["here"], row["where"]) for row in rows}

    assert listed()["imdb"] == (True, str(directory / "imdb"))
    assert listed()["wikitext2"] == (
        True,
        f"{folder}; with train.txt.gz: fetched copy in the cache",
    )
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path))
    assert listed()["wikitext2"] == (
        True,
        f"{folder}; with train.txt.gz: not here; python -m bench data fetch wikitext2",
    )


def test_a_training_part_in_the_directory_is_read_there_and_the_copy_by_nothing(
    directory, tmp_path, monkeypatch
):
    whole = tmp_path / "whole"
    shutil.copytree(directory / "wikitext2", whole / "wikitext2")
    shutil.copy(whole / "wikitext2" / "valid.txt.gz", whole / "wikitext2" / "train.txt.gz")
    monkeypatch.setenv("BENCH_DATA_DIR", str(whole))
    assert load_wikitext2(whole=True).origin == "directory"
    assert f"Warning: runs read {whole / 'wikitext2'} and not" in data.fetch("wikitext2")
