"""Reservations of cells: what cannot be opened is told, and not taken for a lock of others."""

import os

import pytest

from results.reservations import Reservations


def test_a_file_of_locks_that_cannot_be_opened_is_an_error(tmp_path, monkeypatch):
    """A run that took it for the lock of another process would wait for ever."""

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(PermissionError):
        Reservations(tmp_path / "reservations.lock").take("0123456789ab")


def test_who_may_write_to_the_folder_may_reserve(tmp_path):
    before = os.umask(0o002)
    try:
        locks = Reservations(tmp_path / "reservations.lock")
        assert locks.take("0123456789ab")
        assert (tmp_path / "reservations.lock").stat().st_mode & 0o777 == 0o664
        locks.close()
    finally:
        os.umask(before)
