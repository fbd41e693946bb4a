"""A cache that takes nothing is one sentence, and no error."""

import pytest

from bench.api.cache import CACHE_VARIABLE, cache_folder, keep, unwritable_cache


def test_the_argument_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_folder(tmp_path / "named") == tmp_path / "named"


def test_what_is_kept_replaces_what_was(tmp_path):
    path = tmp_path / "kind" / "file"
    assert keep(path, b"old")
    assert keep(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("place", ["/dev/null", "/proc/nothing"])
def test_a_cache_that_takes_nothing_is_one_sentence(monkeypatch, place):
    monkeypatch.setenv(CACHE_VARIABLE, f"{place}/cache")
    assert not keep(cache_folder() / "file", b"content")
    sentence = unwritable_cache()
    assert sentence.startswith("nothing can be kept in the cache")
    assert sentence.endswith(f"name a folder that can be written to in {CACHE_VARIABLE}.")


def test_a_home_folder_that_nobody_knows_is_a_cache_that_takes_nothing(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError("home")))
    assert unwritable_cache().startswith("nothing can be kept")


def test_a_cache_that_takes_files_has_nothing_to_say(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "new"))
    assert unwritable_cache() == ""
    assert list((tmp_path / "new").iterdir()) == []
