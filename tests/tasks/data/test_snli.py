"""SNLI's parts on an invented directory: nothing of the evaluation is trained on."""

import gzip
import random
import runpy
from pathlib import Path

import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.snli import load_snli, words_of

SMALL = Path(__file__).parents[1] / "small_data" / "snli.py"


@pytest.fixture
def directory(tmp_path) -> Path:
    runpy.run_path(str(SMALL))["write"](tmp_path, random.Random(0))
    return tmp_path


def put(directory: Path, name: str, text: str) -> None:
    (directory / "snli" / name).write_bytes(gzip.compress(text.encode()))


def test_raw_and_tokenized_texts_come_out_the_same():
    raw = "He isn't John's, he said: \"no\"."
    assert words_of(raw) == words_of("He is n't John 's , he said : `` no '' .")


def test_training_has_nothing_twice_and_nothing_of_any_other_part(directory):
    cat = "3\t3\tAn owl sings.\tA bird sings.\n"
    kept = "1\t1\tA fox naps.\tA red fox naps.\n"
    put(directory, "cat/train.csv.gz", cat + kept + kept)
    for name, text in (("s1", "An owl sings . "), ("s2", "A bird sings . ")):
        put(directory, f"esnli/{name}.test.gz", text + "\n")
    put(directory, "esnli/labels.test.gz", "entailment\n")
    (row,) = load_snli(directory).parts["train"]
    assert row == {"premise": "a fox naps .", "hypothesis": "a red fox naps .", "label": 1}


def test_an_unknown_label_is_named_with_its_file_and_line(directory):
    put(directory, "cat/train.csv.gz", "3\t3\ta\tb\n7\t7\tc\td\n")
    with pytest.raises(DataDamaged, match=r"train.csv.gz: line 2 has a label .* copy the file"):
        load_snli(directory)


def test_other_columns_of_revised_pairs_are_an_error(directory):
    put(directory, "cad/revised_premise/test.tsv.gz", "premise\thypothesis\tlabel\na\tb\tneutral\n")
    with pytest.raises(DataDamaged, match="line 1 names"):
        load_snli(directory)


def test_without_a_directory_it_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)
    with pytest.raises(DataUnavailable, match="snli is not on this machine"):
        load_snli()
