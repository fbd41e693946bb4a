"""What runs in a copy of this process: it may take long by the clock, and not by the processor."""

import itertools
import time

import pytest

from tests.planted import finding
from tests.planted.__main__ import verdict
from tests.planted.defect import Defect
from tests.planted.finding import Found, TookTooLong, isolated


def of_work(work, limit_s=1):
    return isolated(work, otherwise="hangs", limit_s=limit_s)


def test_a_copy_that_waits_for_others_is_heard():
    def slow():
        time.sleep(1.5)
        return Found({"oracle": "differs"})

    assert of_work(slow).red == {"oracle": "differs"}


def test_a_copy_that_uses_its_time_up_has_been_noticed(monkeypatch):
    monkeypatch.setattr(finding, "WAITED", 60)
    assert set(of_work(lambda: [None for _ in itertools.count() if False]).red) == {"hangs"}


def test_a_copy_that_does_nothing_for_long_says_nothing(monkeypatch):
    monkeypatch.setattr(finding, "WAITED", 1)
    with pytest.raises(TookTooLong, match="no answer after 1 s"):
        of_work(lambda: time.sleep(60))


def test_what_is_not_known_did_not_survive():
    defect = Defect(name="one", axis="none", file="x.py", old="x", new="y", test="t")
    assert verdict(defect, Found({}, unanswered="no answer after 1 s")) == "no answer"
    assert verdict(defect, Found({})) == "survived"
