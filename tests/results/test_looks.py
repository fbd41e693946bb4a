"""When a run looks: the numbers of seeds, and what each look may spend."""

import pytest

from results.looks import Looks


@pytest.mark.parametrize(
    ("first", "counts"), [(2, [2, 4, 7, 12, 20]), (3, [3, 5, 8, 13, 21]), (5, [5, 8, 13, 21, 34])]
)
def test_a_look_has_about_six_tenths_more_seeds_than_the_one_before(first, counts):
    looks = Looks(first=first, first_seed=7)
    assert [len(looks.seeds(number)) for number in range(1, 6)] == counts
    assert {looks.seeds(number)[0] for number in range(1, 6)} == {7}


def test_no_look_has_more_seeds_than_are_allowed():
    looks = Looks(first=3)
    assert [looks.most(most) for most in (2, 3, 4, 5, 20, 21, 22)] == [0, 1, 1, 2, 4, 5, 5]


def test_however_many_looks_there_are_they_spend_no_more_than_the_error_rate():
    shares = [Looks(first=3).share(number) for number in range(1, 60)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.25
    assert sum(shares) <= 1.0
    assert sum(shares) == pytest.approx(1.0)
