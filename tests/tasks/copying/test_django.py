"""Pseudo-code to code on a small directory of invented lines, and on the real one where it is."""

import gzip
import os
from pathlib import Path

import pytest

from bench.api.answer import Answer
from bench.api.errors import DataDamaged, InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.copying import django
from tasks.copying.django import Django, DjangoConfig, code_words
from tasks.data.django import load_django

REAL = os.environ.get("BENCH_DATA_DIR", "")
ANNO = [f"call the method run{n}," for n in range(17)] + ["if not,"] + ["call the method run1,"]
ANNO += ["call the method zebra,"]
CODE = [f"  x = run{n} ( )" for n in range(17)] + ["else :"] + ["x = run1 ( )"]
CODE += ["x = zebra ( )"]


def write(folder: Path, anno=ANNO, code=CODE) -> Path:
    place = folder / "django"
    place.mkdir(parents=True, exist_ok=True)
    for kind, lines in (("anno", anno), ("code", code)):
        text = "".join(f"{line}\n" for line in lines)
        (place / f"all.{kind}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def make(folder: Path, **options) -> Django:
    return Django(DjangoConfig(**{"vocab": 60, **options}), 0, folder)


def test_parts_are_in_the_order_of_the_lines(tmp_path):
    parts = load_django(write(tmp_path)).parts
    assert [len(parts[part]) for part in ("train", "validation", "test")] == [17, 1, 2]
    assert parts["train"][3] == {"anno": "call the method run3,", "code": "x = run3 ( )"}


def test_pairs_of_the_test_are_left_out_of_training_and_their_words_are_unknown(tmp_path):
    task = make(write(tmp_path))
    assert len(task.pairs["train"]) == 16
    assert not any("run1" in pair.source for pair in task.pairs["train"])
    assert not task.knows("zebra")


def test_long_pairs_are_left_out_and_counted(tmp_path):
    code = [*CODE[:3], "x " * 30, *CODE[4:]]
    task = make(write(tmp_path, code=code), longest=10)
    assert "1 of 17 in train" in task.notes["left out as too long"]


def test_a_whole_part_has_all_lines_that_are_asked_for_and_one_that_is_cut_has_not(
    tmp_path, monkeypatch
):
    code = [*CODE[:-1], "x " * 30]
    folder = write(tmp_path, code=code)
    assert make(folder).notes["fewer rows"] == "2 of 1805 in test, 1 of 1000 in validation"
    monkeypatch.setattr("tasks.copying.django.LINES", {"validation": 1, "test": 2})
    task = make(folder, longest=10)
    assert "1 of 2 in test" in task.notes["left out as too long"]
    assert "fewer rows" not in task.notes
    monkeypatch.setattr("tasks.copying.django.LINES", {"validation": 1, "test": 3})
    few = make(folder, longest=10, evaluate=2)
    assert few.notes["fewer rows"] == "1 of 2 in test"


def test_code_is_split_into_names_and_marks_alike_in_both_languages():
    assert code_words("self.a_b['x']") == ("self", ".", "a_b", "[", "'", "x", "'", "]")


def test_the_line_itself_scores_a_hundred_and_unk_is_never_right(tmp_path):
    task = make(write(tmp_path))
    (batch,) = task.evaluation("test")
    rows = [
        tuple(row[mask][:-1].tolist()) for row, mask in zip(batch.targets, batch.mask, strict=True)
    ]
    found = {s.metric: s.value for s in task.score("test", [Answer(batch, generated=tuple(rows))])}
    assert found["bleu"] == pytest.approx(100.0)
    assert found["sequence_accuracy"] == found["unknown_said_proportion"] == 1.0
    unknown = tuple(tuple(min(word, 3) for word in row) for row in rows)
    less = {s.metric: s.value for s in task.score("test", [Answer(batch, generated=unknown)])}
    assert less["sequence_accuracy"] == less["unknown_said_proportion"] == 0.0
    assert "tok:none" in task.notes["bleu"]


def test_files_of_different_lengths_are_refused(tmp_path):
    with pytest.raises(DataDamaged, match=r"all\.code\.gz"):
        make(write(tmp_path, code=CODE[:-1]))


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    folder = write(tmp_path)
    (folder / "django" / "all.anno.gz").write_bytes(gzip.compress(b"good\nb\xff\n"))
    with pytest.raises(DataDamaged, match=r"all\.anno\.gz: line 2 is not UTF-8"):
        make(folder)


def test_two_lines_make_no_three_parts(tmp_path):
    with pytest.raises(DataDamaged, match="2 lines make no three parts"):
        load_django(write(tmp_path, ANNO[:2], CODE[:2]))


@pytest.mark.parametrize("options", [{"longest": 0}, {"vocab": 4}, {"train": -1}])
def test_impossible_options_are_refused(tmp_path, options):
    with pytest.raises(InvalidConfig, match="django: "):
        make(write(tmp_path), **options)


def test_a_length_that_leaves_nothing_is_refused(tmp_path):
    with pytest.raises(InvalidConfig, match="longest=1 leaves no pair in test, validation, train;"):
        make(write(tmp_path), longest=1)


@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_a_tenth_of_the_lines_of_the_test_is_also_in_validation_as_the_pages_say():
    parts = load_django(Path(REAL)).parts
    held = {(row["anno"], row["code"]) for row in parts["validation"]}
    shared = [(row["anno"], row["code"]) in held for row in parts["test"]]
    limits = (Path(__file__).parents[3] / "docs/limits.md").read_text(encoding="utf-8")
    assert f"{sum(shared)} of the {len(shared):,} pairs" in django.__doc__
    assert f"{sum(shared)} of {len(shared):,} lines" in limits


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_copying_beats_its_absence_and_the_english_itself():
    request = Request(preset="quick", training="adam[steps=150,evaluate_every=150]")
    default_task = DefaultTask(task="django[longest=20,vocab=300,evaluate=100]")
    found = {}
    for name in ("additive", "pointer_generator"):
        cell = quality_cell(request, resolve(name), default_task, 0).cell
        rows = train_cell(cell, data_dir=Path(REAL)).rows
        plain = [r for r in rows if r.metric == "bleu" and r.split == "test" and not r.axis]
        reached = {row.baseline: row.value for row in plain}
        found[name] = reached[""]
    english = reached["copy the source"]
    assert found["pointer_generator"] > found["additive"] + 2
    assert found["pointer_generator"] > english + 15
