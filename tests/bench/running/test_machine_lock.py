"""The lock of the machine: where there can be none, a run goes on and says so."""

import tempfile

import pytest

from bench.running.machine_lock import machine_lock


@pytest.mark.parametrize(("exclusive", "sentences"), [(True, 1), (False, 0)])
def test_without_a_place_for_the_lock_timing_says_that_it_may_not_be_alone(
    monkeypatch, exclusive, sentences
):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    said, done = [], False
    with machine_lock(exclusive=exclusive, say=said.append):
        done = True
    assert done
    assert len(said) == sentences
    assert all("timing may not be alone" in one for one in said)
