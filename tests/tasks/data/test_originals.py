"""Data sets that no command fetches are told with their publisher and their files."""

import random
import re
from itertools import product
from pathlib import Path
from runpy import run_path

import pytest

from bench.api import registry
from bench.api.errors import DataUnavailable
from bench.api.task import TASKS
from bench.cli.registered import load_registry
from tasks.data.hub_sets import FETCHABLE
from tasks.data.mimic3_demo import load_mimic3_demo
from tasks.data.originals import ORIGINALS
from tasks.data.sigmorphon2017 import load_sigmorphon2017
from tasks.data.word_alignment import load_word_alignment

SMALL = Path(__file__).parents[1] / "small_data"
NAMES = ("mimic3_demo", "sigmorphon2017", "word_alignment")


def spread(name: str) -> list[str]:
    """The files that a name with braces stands for."""
    pieces = re.split(r"\{([^}]*)\}", name)
    choices = [piece.split(",") if at % 2 else [piece] for at, piece in enumerate(pieces)]
    return ["".join(chosen) for chosen in product(*choices)]


def test_braces_stand_for_one_file_each() -> None:
    assert spread("{a,b}-{1,2}.gz") == ["a-1.gz", "a-2.gz", "b-1.gz", "b-2.gz"]


def test_every_data_set_can_be_fetched_or_says_where_it_is_from() -> None:
    load_registry(())
    read = {
        name for task in registry.registrations(TASKS).values() for name in task.target.data_sets
    }
    assert read <= {*FETCHABLE, *ORIGINALS}
    assert ORIGINALS.keys() == {*NAMES} == read - FETCHABLE.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_files_told_are_those_of_a_folder_that_loads(name: str, tmp_path: Path) -> None:
    run_path(str(SMALL / f"{name}.py"))["write"](tmp_path, random.Random(1))
    found = {
        str(path.relative_to(tmp_path / name))
        for path in (tmp_path / name).rglob("*")
        if path.is_file()
    }
    told = {file for one in ORIGINALS[name] for here in one.files for file in spread(here)}
    assert told == found


@pytest.mark.parametrize("name", ORIGINALS)
def test_files_and_their_originals_stand_for_as_many(name: str) -> None:
    for one in ORIGINALS[name]:
        assert one.address.startswith("https://")
        for here, there in one.files.items():
            assert there.endswith(".zip") or len(spread(here)) == len(spread(there))


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("mimic3_demo", load_mimic3_demo),
        ("sigmorphon2017", lambda where: load_sigmorphon2017("german", "low", where)),
        ("word_alignment", lambda where: load_word_alignment("en_cs", where)),
    ],
)
def test_the_error_names_the_publisher(name: str, load, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable) as raised:
        load(tmp_path)
    said = str(raised.value)
    assert f"{tmp_path} has no folder {name}); copy its files from https://" in said
    assert all(one.address in said for one in ORIGINALS[name])
    assert said.endswith(
        "as `bench data list` says, and name a data directory with --data-dir or BENCH_DATA_DIR."
    )
