"""Which folder is the data directory."""

from pathlib import Path

import pytest

from bench.api.data_folder import data_folder
from bench.api.errors import DataUnavailable


def test_the_argument_wins_over_the_environment(tmp_path, monkeypatch):
    named = tmp_path / "named"
    named.mkdir()
    assert data_folder() is None
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(named) == named
    monkeypatch.setenv("BENCH_DATA_DIR", "")
    assert data_folder() is None


def test_a_home_that_nobody_has_is_no_folder():
    with pytest.raises(DataUnavailable, match="which is not a folder"):
        data_folder(Path("~no_such_user_here/data"))


def test_a_folder_that_is_not_there_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataUnavailable, match=r"--data-dir names .*nowhere"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path / "gone"))
    with pytest.raises(DataUnavailable, match=r"BENCH_DATA_DIR names .*gone"):
        data_folder()
