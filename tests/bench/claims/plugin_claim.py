"""A claim as a third party would write it."""

from bench.api.claim import Bound, Claim, Exact, register_claim
from bench.api.metric import Scored


def halves() -> list[Scored]:
    """Two halves."""
    return [Scored(metric="halves_count", value=1 / 0.5)]


register_claim(
    Claim(
        key="own1",
        title="Two halves make one.",
        source="My notes",
        quote="a half and a half",
        exact=Exact(compute=halves, bounds=(Bound(metric="halves_count", low=2.0, high=2.0),)),
    ),
    module=__name__,
)
