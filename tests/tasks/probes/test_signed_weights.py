"""Weights below zero or above one: a probe says that it has no value, or gives a true one."""

import math
from contextlib import nullcontext, suppress

import pytest

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse

PROBES = ("blur", "head_diversity", "adversary[steps=10]", "erasure", "permutation")
SIGNED = ("differential[head=multi[heads=2]]", "talking_heads")
UNBOUNDED = "dot[normalizer=none,head=multi[heads=2]]"


def measured(seen, probe):
    made = make("probe", parse(probe))
    limits = {metric.name: metric for metric in made.metrics}
    for scored in made.measure(seen):
        low, high = limits[scored.metric].low, limits[scored.metric].high
        assert math.isfinite(scored.value), scored
        assert low is None or scored.value >= low - 1e-6, scored
        assert high is None or scored.value <= high + 1e-6, scored


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_refuses_weights_below_zero_in_a_sentence(subject, probe):
    with pytest.raises(Refused, match="below zero"):
        measured(subject(UNBOUNDED, batches=2), probe)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize(
    "variant",
    [
        *SIGNED,
        "additive[normalizer=sigmoid_attention,head=multi[heads=2]]",
        "luong_local_p[head=multi[heads=2]]",
    ],
)
def test_values_of_other_weights_are_within_their_limits(subject, variant, probe):
    may_refuse = suppress(Refused) if variant in SIGNED else nullcontext()
    with may_refuse:
        measured(subject(variant, batches=2), probe)
