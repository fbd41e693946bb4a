"""Subjects of e-mails on a small directory of invented ones."""

import gzip
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import DataDamaged, DataUnavailable, InvalidConfig
from bench.api.selector import parse
from tasks.data.aeslc import load_aeslc
from tasks.summarization import aeslc
from tasks.summarization.aeslc import Aeslc, AeslcConfig
from tasks.summarization.summary_pairs import best_length

REAL = os.environ.get("BENCH_DATA_DIR", "")
ROOT = Path(__file__).parents[3]
TRAIN = [
    ("The dragon sleeps in the tower.", "Dragon sleeps"),
    ("The dragon sleeps in the tower.", "Dragon again"),
    ("The witch counts moons. And so on.", "Moons"),
    ("An elf of the test.", "An elf"),
]
TEST = [("An elf of the test.", "An elf"), ("Rumpelstilzchen keeps the gold.", "Gold of elf")]


def line(body: str, subject: str, *others: str) -> str:
    row = {"email_body": body, "subject_line": subject}
    row |= {f"ann{number}": other for number, other in enumerate(others)}
    return json.dumps(row) + "\n"


def write(folder: Path) -> Path:
    place = folder / "aeslc"
    place.mkdir(parents=True)
    held = "".join(line(*row, "The gold", "Elf", "Who keeps gold") for row in TEST)
    texts = {"train": "".join(line(*row) for row in TRAIN), "dev": held, "test": held}
    for stem, text in texts.items():
        (place / f"{stem}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    return write(tmp_path / "data")


def make(directory: Path, **options) -> Aeslc:
    return Aeslc(AeslcConfig(**{"words": 20, "vocab": 100, **options}), 0, directory)


def test_an_email_is_trained_on_once_and_never_if_it_is_evaluated_on(directory):
    task = make(directory)
    assert [pair.target for pair in task.pairs["train"]] == [("dragon", "sleeps"), ("moons",)]


def test_emails_that_a_network_cannot_tell_apart_are_trained_on_once_and_never_if_evaluated(
    directory,
):
    bodies = ["An ELF of the gate.", "The Dragon flies.", "the dragon swims.", "A witch of moons."]
    text = "".join(line(body, f"Number {at}") for at, body in enumerate(bodies))
    (directory / "aeslc" / "train.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    few, many = (make(directory, words=words).pairs["train"] for words in (2, 3))
    assert [pair.target[-1] for pair in few] == ["1", "3"]
    assert [pair.target[-1] for pair in many] == ["1", "2", "3"]


def test_words_that_training_never_shows_are_unknown_and_can_be_copied(directory):
    task = make(directory)
    assert not task.knows("rumpelstilzchen")
    (batch,) = task.evaluation("test")
    assert ["rumpelstilzchen" in words for words in batch.extra_words] == [True, False]


def test_an_email_is_cut_and_a_subject_is_scored_whole(directory):
    task = make(directory, words=3, subject=1)
    pair = task.pairs["test"][1]
    assert pair.source == ("rumpelstilzchen", "keeps", "the")
    assert pair.target == ("gold",)
    assert pair.references[0] == "gold of elf"


def test_other_subjects_count_in_the_best_rouge_alone(directory):
    task = make(directory)
    (batch,) = task.evaluation("test")
    known = len(task.vocabulary)
    words = {name: known + n for n, name in enumerate(batch.extra_words[0])}
    said = ((words["keeps"], words["gold"]), ())
    found = {s.metric: s.value for s in task.score("test", [Answer(batch, generated=said)])}
    assert found["rouge_1_f1"] == pytest.approx(0.4 / 2)
    assert found["rouge_1_best_f1"] == pytest.approx(0.8 / 2)
    assert found["unknown_said_proportion"] == pytest.approx(1 / 5)
    assert set(found) == {metric.name for metric in task.metrics}


def test_baselines_are_named_and_between_zero_and_one(directory):
    found = make(directory).baselines()
    assert set(found) == {"first words", "most frequent summary", "nearest document"}
    assert all(0 <= value <= 1 for value in found.values())


def test_a_line_without_a_subject_is_named(directory):
    text = line(*TRAIN[0]) + '{"email_body": "x"}\n'
    (directory / "aeslc" / "dev.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DataDamaged, match=r"dev.jsonl.gz: line 2 has no field 'subject_line'"):
        load_aeslc(directory)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"email_body": "x", "subject_line": 7}\n', "int in 'subject_line' where str"),
        (line("x", "y").replace("}", ', "ann1": null}'), "null in 'ann1' where str"),
    ],
)
def test_a_subject_that_is_no_text_is_named(directory, text, says):
    (directory / "aeslc" / "dev.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DataDamaged, match=rf"dev\.jsonl\.gz: line 1 has {says} is expected; copy"):
        load_aeslc(directory)


def test_where_nothing_is_the_message_says_how_to_get_it(tmp_path):
    with pytest.raises(DataUnavailable, match="bench data fetch aeslc"):
        load_aeslc(tmp_path, cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("options", [{"words": 0}, {"vocab": 4}, {"train": -1}])
def test_impossible_options_are_refused(directory, options):
    with pytest.raises(InvalidConfig, match="aeslc: "):
        make(directory, **options)


@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_a_tenth_of_the_emails_of_the_test_is_also_in_validation_as_the_pages_say():
    parts = load_aeslc(Path(REAL)).parts
    held = {(row["email_body"], row["subject_line"]) for row in parts["validation"]}
    shared = [(row["email_body"], row["subject_line"]) in held for row in parts["test"]]
    limits = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    for text in (aeslc.__doc__, limits):
        assert f"{sum(shared)} of" in text
        assert f"{len(shared):,} e-mails" in text


@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_no_published_network_is_above_the_best_lead_in_every_seed_as_the_limits_say():
    rows = pd.read_parquet(ROOT / "results/published/families.parquet")
    rows = rows[
        (rows.task_name == "aeslc") & (rows.metric == "rouge_1_f1") & (rows.split == "test")
    ]
    (options,) = rows.task.unique()
    task = registry.make("task", parse(options), 0, Path(REAL))
    lead = task.lead(task.pairs["train"], task.pairs["test"])
    assert best_length(task.pairs["train"]) == 18
    assert lead == pytest.approx(0.127, abs=5e-4)
    assert rows[rows.baseline == "first words"].value.unique() == pytest.approx([lead])
    worst = rows[rows.baseline == ""].groupby("variant").value.min()
    assert (worst <= lead).all()
    (near,) = rows[rows.baseline == "nearest document"].value.unique()
    assert (round(near, 3), sum(worst > near)) == (0.108, 3)
