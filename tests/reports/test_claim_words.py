"""What was seen of a part of a claim, in words."""

import math
from types import SimpleNamespace
from typing import cast

import pytest

from reports.claim_words import seen_in_words
from results.statistics.verdicts import Finding


def finding(count: int, half_width: float) -> Finding:
    """A difference of 0.25 on some seeds."""
    gap = SimpleNamespace(estimate=0.25, low=0.1, high=0.4, count=count, half_width=half_width)
    return cast(Finding, SimpleNamespace(difference=gap, p=0.012))


@pytest.mark.parametrize(
    ("count", "half_width", "told"),
    [
        (0, math.inf, "not run"),
        (1, math.inf, "+0.25, 1 seed"),
        (3, math.inf, "+0.25, no spread over 3 seeds"),
        (3, 0.15, "+0.25 (+0.1 to +0.4), 3 seeds, p = 0.012"),
    ],
)
def test_one_seed_has_no_spread_that_could_be_seen(
    count: int, half_width: float, told: str
) -> None:
    assert seen_in_words(finding(count, half_width)) == told
