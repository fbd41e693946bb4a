"""Inflection of real words, on a few invented ones and on the real ones where they are."""

import gzip
import os
from pathlib import Path

import pytest

from bench.api.errors import DataDamaged, DataUnavailable, InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.words import UNK
from tasks.inflection.inflection import InflectionConfig, RealInflection
from tasks.inflection.word_forms import SPACE

REAL = os.environ.get("BENCH_DATA_DIR", "")
TRAIN = [
    "walk\twalked\tV;PST",
    "hop\thopped\tV;PST",
    "walk\twalked\tV;PST",
    "go on\twent on\tV;PST",
]
DEV = ["talk\ttalked\tV;PST"]
TEST = ["hop\thopped\tV;PST", "żyć\tżył\tV;PST;MASC"]


def write(folder: Path, train=TRAIN) -> Path:
    place = folder / "sigmorphon2017"
    place.mkdir(parents=True, exist_ok=True)
    parts = {"train-low": train, "dev": DEV, "uncovered-test": TEST}
    for stem, lines in parts.items():
        text = "".join(f"{line}\n" for line in lines)
        (place / f"english-{stem}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def make(folder: Path, **options) -> RealInflection:
    config = InflectionConfig(**{"language": "english", "size": "low", **options})
    return RealInflection(config, 0, folder)


def test_pairs_of_the_test_and_copies_are_left_out_of_training(tmp_path):
    task = make(write(tmp_path))
    assert [row.lemma for row in task.rows["train"]] == ["walk", "go on"]
    assert [row.lemma for row in task.rows["test"]] == ["hop", "żyć"]


def test_letters_and_tags_that_training_never_shows_are_unknown(tmp_path):
    task = make(write(tmp_path))
    assert task.vocabulary.encode(["ż", "+MASC", "p"]) == [UNK, UNK, UNK]
    (batch,) = task.evaluation("test")
    assert "ż" in {word for row in batch.extra_words for word in row}


def test_a_space_inside_a_word_is_a_letter(tmp_path):
    task = make(write(tmp_path))
    pair = next(pair for pair in task.pairs["train"] if len(pair.source) == 7)
    assert pair.source == ("+V", "+PST", "g", "o", SPACE, "o", "n")
    assert pair.target == ("w", "e", "n", "t", SPACE, "o", "n")


def test_baselines_copy_or_apply_the_rules_of_training(tmp_path):
    found = make(write(tmp_path)).baselines()
    assert found == {"copy the lemma": 0.0, "suffix rules": 0.0}


def test_the_words_that_are_shown_are_our_own_with_their_forms(tmp_path):
    batch = make(write(tmp_path)).examples()
    assert batch.references == ("w o n d e r i n g", "c a r r i e s")


def test_a_row_without_its_tags_is_named(tmp_path):
    folder = write(tmp_path, [*TRAIN, "walk\twalked"])
    with pytest.raises(DataDamaged, match=r"train-low.gz: line 5 has 2 fields where 3 .*copy"):
        make(folder)


def test_a_truncated_file_and_a_missing_one_are_named(tmp_path):
    file = write(tmp_path) / "sigmorphon2017" / "english-dev.gz"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DataDamaged, match="english-dev"):
        make(tmp_path)
    file.unlink()
    with pytest.raises(DataUnavailable, match="english-dev"):
        make(tmp_path)


@pytest.mark.parametrize("options", [{"evaluate": 0}, {"train": -1}])
def test_impossible_options_are_refused(tmp_path, options):
    with pytest.raises(InvalidConfig, match="inflection: "):
        make(tmp_path, **options)


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_attention_learns_to_inflect_where_its_absence_does_not():
    request = Request(preset="quick", training="adam[steps=300,evaluate_every=300]")
    default_task = DefaultTask(task="inflection[language=english,evaluate=100]")
    found = {}
    for name in ("additive", "none_state"):
        cell = quality_cell(request, resolve(name), default_task, 0).cell
        rows = train_cell(cell, data_dir=Path(REAL)).rows
        found[name] = next(
            r.value for r in rows if r.metric == "sequence_accuracy" and r.split == "test"
        )
    assert found["additive"] > 0.18 + 0.1, "better than copying the lemma"
    assert found["additive"] > found["none_state"] + 0.1
