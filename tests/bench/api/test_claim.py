"""The contract of claims: what cannot decide anything is refused in one sentence."""

import math
from functools import partial

import pytest

from bench.api.claim import Bound, Claim, Contrast, Exact, Side
from bench.api.errors import InvalidConfig

SIDE = Side(variant="dot", task="recall", metric="token_accuracy")


def numbers():
    return []


BOUND = Bound(metric="a_count", low=1.0)
MEANS = Contrast(title="t", left=(SIDE,), right=(SIDE,), expect="higher")
SPREADS = Contrast(title="t", left=(SIDE,), right=(SIDE,), expect="higher", of="spread")
REFUSED = {
    "a place without its axis": (
        partial(Side, variant="dot", task="recall", metric="m", x=3.0),
        "both",
    ),
    "an axis without a place": (
        partial(Side, variant="dot", task="recall", metric="m", axis="length"),
        "both",
    ),
    "no left side": (partial(Contrast, title="t", left=(), expect="higher"), "no left side"),
    "a negative margin": (
        partial(Contrast, title="t", left=(SIDE,), expect="lower", margin=-1.0),
        "a margin is a number >= 0",
    ),
    "an infinite margin": (
        partial(Contrast, title="t", left=(SIDE,), expect="lower", margin=float("inf")),
        "a margin is a number >= 0",
    ),
    "equality without a margin": (
        partial(Contrast, title="t", left=(SIDE,), expect="equal"),
        "no run can show",
    ),
    "spreads without a right side": (
        partial(Contrast, title="t", left=(SIDE,), expect="higher", of="spread"),
        "compares spreads",
    ),
    "a spread minus a number": (
        partial(
            Contrast,
            title="t",
            left=(SIDE,),
            right=(SIDE,),
            against=0.1,
            expect="higher",
            of="spread",
        ),
        "compares spreads",
    ),
    "examples that nobody is shown": (
        partial(Side, variant="dot", task="recall", metric="m", examples=9),
        "a probe is shown",
    ),
    "fewer examples than none": (
        partial(Side, variant="dot", task="recall", metric="m", probe="blur", examples=-1),
        "a probe is shown",
    ),
    "five seeds": (
        partial(Claim, key="C1", title="t", source="F0", quote="q", contrasts=(MEANS,), seeds=5),
        "at least 6 seeds",
    ),
    "spreads of few seeds": (
        partial(Claim, key="C1", title="t", source="F0", quote="q", contrasts=(SPREADS,)),
        "at least 12 seeds",
    ),
    "a bound that nothing can keep": (partial(Bound, metric="m", low=math.inf), "leave room"),
    "bounds without ends": (
        partial(Exact, compute=numbers, bounds=(Bound(metric="m"),)),
        "at least one bound that has an end",
    ),
    "a bound upside down": (partial(Bound, metric="m", low=2.0, high=1.0), "low <= high"),
    "numbers without bounds": (partial(Exact, compute=numbers, bounds=()), "at least one bound"),
    "what has no source": (
        partial(Exact, compute=partial(numbers), bounds=(BOUND,)),
        "plain function",
    ),
    "a key with a space": (
        partial(Claim, key="C 1", title="t", source="F0", quote="q", missing="all."),
        "a letter",
    ),
    "no quote": (
        partial(Claim, key="C1", title="t", source="F0", quote="", missing="all."),
        "quoted sentence",
    ),
    "nothing that decides": (
        partial(Claim, key="C1", title="t", source="F0", quote="q"),
        "nothing that could decide",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_decides_nothing_is_refused(case):
    make, sentence = REFUSED[case]
    with pytest.raises(InvalidConfig, match=sentence):
        make()


def test_a_claim_tells_its_kind_and_names_each_side_once():
    contrast = Contrast(title="t", left=(SIDE,), right=(SIDE,), expect="higher")
    exact = Exact(compute=numbers, bounds=(BOUND,))
    make = partial(Claim, key="C1", title="t", source="F0", quote="q")
    assert make(contrasts=(contrast,), exact=exact).kind == "both"
    assert make(contrasts=(contrast,)).kind == "trained"
    assert make(exact=exact).kind == "exact"
    assert make(missing="A GPU.").kind == "missing"
    assert make(contrasts=(contrast, contrast)).sides == (SIDE,)
