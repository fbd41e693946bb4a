"""A small part of every attack in the fast suite, a minute of all of them in the slow one."""

import pytest

from tests.fuzz.attacks import ATTACKS
from tests.fuzz.law import attempt


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name)
def test_a_few_cases_end_in_a_value_or_a_sentence(attack, tmp_path):
    assert attempt(attack, attack.few, 0, tmp_path).failures == []


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name)
def test_many_cases_end_in_a_value_or_a_sentence(attack, tmp_path):
    assert attempt(attack, attack.many, 1, tmp_path).failures == []
