"""Free Spoken Digit Dataset, on invented noise."""

import random
import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.fsdd import load_fsdd

SMALL = runpy.run_path(str(Path(__file__).parents[1] / "small_data" / "fsdd.py"))


@pytest.fixture
def directory(tmp_path) -> Path:
    SMALL["write"](tmp_path, random.Random(0))
    return tmp_path


def test_the_first_five_takes_are_the_test_and_the_next_five_validate(directory):
    table = load_fsdd(directory)
    removes = {part: {row["take"] for row in rows} for part, rows in table.parts.items()}
    assert removes == {
        "train": {10, 11, 12, 13},
        "validation": {5, 6, 7, 8, 9},
        "test": {0, 1, 2, 3, 4},
    }
    row = table.parts["test"][0]
    assert (row["label"], row["speaker"]) == (0, "ann")
    assert row["audio"]["array"].dtype == np.float32
    assert len(row["audio"]["array"]) == 600
    assert np.abs(row["audio"]["array"]).max() < 0.1
    assert table.note.startswith("fsdd from the directory: recordings.zip ")


def test_a_cut_archive_is_one_sentence_with_its_remedy(directory):
    path = directory / "fsdd" / "recordings.zip"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataDamaged, match=r"recordings\.zip: the zip archive is damaged .*copy"):
        load_fsdd(directory)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("recordings/ten_ann_3.wav", b"", "is not named digit_speaker_number"),
        ("recordings/9_cid_3.wav", b"no sound", "9_cid_3.wav is no wave file"),
        ("recordings/9_cid_3.wav", b"", "9_cid_3.wav is no wave file"),
    ],
)
def test_what_is_no_recording_is_named(directory, name, content, told):
    with zipfile.ZipFile(directory / "fsdd" / "recordings.zip", "a") as archive:
        archive.writestr(name, content)
    with pytest.raises(DataDamaged, match=told):
        load_fsdd(directory)


def test_a_recording_that_ends_too_early_is_named(directory):
    whole = SMALL["recording"](random.Random(1))
    with zipfile.ZipFile(directory / "fsdd" / "recordings.zip", "a") as archive:
        archive.writestr("recordings/9_cid_3.wav", whole[:-200])
    with pytest.raises(DataDamaged, match="has 800 of 900 samples"):
        load_fsdd(directory)


def test_an_archive_without_a_test_part_is_refused(directory):
    with zipfile.ZipFile(directory / "fsdd" / "recordings.zip", "w") as archive:
        archive.writestr("recordings/9_cid_30.wav", SMALL["recording"](random.Random(1)))
    with pytest.raises(DataDamaged, match="no recording for validation"):
        load_fsdd(directory)


def test_a_directory_without_it_says_what_to_do(tmp_path):
    with pytest.raises(DataUnavailable, match="fsdd is not on this machine"):
        load_fsdd(tmp_path)
