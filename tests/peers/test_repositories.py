"""How single files of repositories are found, known again and taken apart."""

from pathlib import Path

import pytest

from bench.docs.peers import STORED, read_comparisons
from tests.peers import repositories
from tests.peers.repositories import HOST, REPOSITORIES, SOURCES, Repository, git_id, taken

ROOT = Path(__file__).parents[2]
CODE = b"""import nothing_of_this_name

def doubled(x: Unknown) -> Unknown:
    return given * x

def other():
    return nothing_of_this_name
"""


@pytest.fixture
def checked_out(tmp_path, monkeypatch):
    """A folder with one repository of one file."""
    folder = tmp_path / "some+one"
    folder.mkdir()
    (folder / "code.py").write_bytes(CODE)
    known = {"some/one": Repository("c0ffee" * 6, {"code.py": git_id(CODE)})}
    monkeypatch.setattr(repositories, "REPOSITORIES", known)
    monkeypatch.setenv(SOURCES, str(tmp_path))
    return folder


def test_ids_are_those_of_git():
    assert git_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_function_is_taken_without_what_its_file_imports(checked_out):
    assert taken("some/one", "code.py", "doubled", given=2).doubled(3) == 6


def test_a_file_of_another_commit_fails_with_the_commit(checked_out):
    (checked_out / "code.py").write_bytes(CODE + b"\n")
    with pytest.raises(
        pytest.fail.Exception, match=r"code\.py of some/one is not that of commit c0ff"
    ):
        taken("some/one", "code.py", "doubled", given=2)


def test_what_is_missing_is_skipped_by_name(checked_out, monkeypatch):
    with pytest.raises(pytest.skip.Exception, match=r"has no folder other\+one with a checkout"):
        taken("other/one", "code.py", "doubled")
    monkeypatch.delenv(SOURCES)
    with pytest.raises(pytest.skip.Exception, match=f"{SOURCES} is not set; .* of some/one"):
        taken("some/one", "code.py", "doubled")


def test_every_repository_has_stored_comparisons_at_its_commit():
    stored = {one.reference for one in read_comparisons(ROOT / STORED)}
    ours = {f"{HOST}/{name} {one.version}" for name, one in REPOSITORIES.items()}
    assert ours == {one for one in stored if one.startswith(f"{HOST}/")}
