"""Randomized rounds: every round visits everyone, so that a drift of the machine hits all alike.

A variant timed after another differs from it in 98% of experiments on a drifting machine even if
both are the same code; tests/bench/timing/test_rounds.py repeats that experiment.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from bench.timing.reason import Reason, reason_for
from bench.timing.shape import Rounds
from bench.timing.timer import Timer, Work

Progress = Callable[[int, int], None]
"""Told the visits made and the visits planned."""

T = TypeVar("T")

MOST_SAMPLES = 1000
WARM_UP_CALLS = 3
BASELINE_SHARE = 4
"""Budgets of the baseline and of its twin, because every comparison needs their rounds."""


@dataclass
class TimedVariant:
    """Something to time under a name."""

    name: str
    works: Mapping[str, Work]
    """Calls by workload."""
    call_ms: dict[str, float] = field(default_factory=dict)
    """Time of one call by workload, from the warm-up."""
    visits: dict[str, dict[int, float]] = field(default_factory=dict)
    """Median sample (ms) by workload and round."""
    failed: Reason | None = None
    """Why it left the field."""
    compared: bool = False
    """Whether the others are compared with it, in rounds that both take part in."""


def warm_up(timed_variants: Sequence[TimedVariant], protocol: Rounds, timer: Timer) -> None:
    """Call everything before anything is timed, and estimate how long a call takes.

    Whatever compiles has done so in an earlier call. Short calls are estimated by the best of
    several.
    """
    for timed_variant in timed_variants:
        try:
            for workload, work in timed_variant.works.items():
                first = timer.samples(work, 1)[0]
                more = timer.samples(work, WARM_UP_CALLS) if first < protocol.visit_ms else []
                timed_variant.call_ms[workload] = min([first, *more])
        except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
            timed_variant.failed = reason_for(error)


def run_rounds(
    timed_variants: Sequence[TimedVariant],
    protocol: Rounds,
    timer: Timer,
    *,
    seed: int,
    progress: Progress = lambda done, planned: None,
) -> None:
    """Fill the visits of warmed-up timed_variants; one that fails leaves and keeps its reason.

    Within a round the workloads follow each other and the timed_variants of a workload stand side
    by side, both in random order.
    """
    shuffler = random.Random(seed)
    plan = {
        workload: plan_rounds(playing(timed_variants, workload), workload, protocol)
        for workload in protocol.asked
    }
    planned, done = sum(len(rounds) for part in plan.values() for rounds in part.values()), 0
    for number in range(protocol.count):
        for workload in shuffled(protocol.asked, shuffler):
            for timed_variant in shuffled(timed_variants, shuffler):
                if number in plan[workload].get(timed_variant.name, ()):
                    visit(timed_variant, workload, number, protocol, timer)
                    done += 1
                    progress(done, planned)


def visit(
    timed_variant: TimedVariant, workload: str, number: int, protocol: Rounds, timer: Timer
) -> None:
    """Settle, sample, and note the median."""
    if timed_variant.failed is not None:
        return
    settle, samples = visit_calls(timed_variant.call_ms[workload], protocol)
    try:
        found = timer.samples(timed_variant.works[workload], settle + samples)
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        timed_variant.failed = reason_for(error)
        return
    timed_variant.visits.setdefault(workload, {})[number] = median(found[settle:])


def visit_calls(call_ms: float, protocol: Rounds) -> tuple[int, int]:
    """Calls that settle and calls that count, for a call of this length.

    A call longer than the visit settles itself: what the previous timed_variant left in the cache
    is a small part of it.
    """
    fitting = protocol.visit_ms / call_ms if call_ms > 0 else MOST_SAMPLES
    samples = min(MOST_SAMPLES, max(protocol.samples, int(fitting)))
    return int(fitting >= 1), samples


def playing(timed_variants: Sequence[TimedVariant], workload: str) -> list[TimedVariant]:
    """Those that are still in the field and have this workload."""
    return [one for one in timed_variants if one.failed is None and workload in one.works]


def plan_rounds(
    timed_variants: Sequence[TimedVariant], workload: str, protocol: Rounds
) -> dict[str, list[int]]:
    """Rounds of one workload that each timed_variant takes part in.

    All of them, or evenly spread ones if it is slow; never one without those it is compared with.
    """
    rounds = {
        one.name: affordable(one.call_ms[workload], protocol, BASELINE_SHARE if one.compared else 1)
        for one in timed_variants
    }
    common = min(
        (rounds[one.name] for one in timed_variants if one.compared), default=protocol.count
    )
    shared = spread(list(range(protocol.count)), common)
    return {
        one.name: shared if one.compared else spread(shared, min(common, rounds[one.name]))
        for one in timed_variants
    }


def affordable(call_ms: float, protocol: Rounds, share: int = 1) -> int:
    """Rounds that fit the budget of one timed_variant, or several budgets."""
    cost = sum(visit_calls(call_ms, protocol)) * call_ms
    fitting = int(share * protocol.budget_ms / cost) if cost > 0 else protocol.count
    return min(protocol.count, max(protocol.least, fitting))


def spread(rounds: list[int], count: int) -> list[int]:
    """Evenly spaced ones of some rounds."""
    return [rounds[index * len(rounds) // count] for index in range(count)]


def shuffled(items: Sequence[T], shuffler: random.Random) -> list[T]:
    """A copy in random order."""
    return shuffler.sample(items, len(items))
