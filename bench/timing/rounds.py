"""Randomized rounds: every round visits everyone, so that a drift of the machine hits all alike.

A variant timed after another differs from it in most experiments on a drifting machine even if both
are the same code; tests/bench/timing/test_rounds.py repeats that experiment.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TypeVar

from bench.timing.reason import Reason, attempt
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
    lost: dict[str, Reason] = field(default_factory=dict)
    """Why a workload has no value, by workload; the others go on."""
    failed: Reason | None = None
    """Why it left the field with all its workloads."""
    compared: bool = False
    """Whether the others are compared with it, in rounds that both take part in."""

    def lose(self, workload: str, reason: Reason) -> None:
        """Drop a workload and what was timed of it; whoever has none left has failed."""
        self.lost[workload] = reason
        self.visits.pop(workload, None)
        if not self.able:
            self.failed = main_reason(self.lost.values())

    @property
    def able(self) -> list[str]:
        """Workloads that it still takes part in."""
        if self.failed is not None:
            return []
        return [workload for workload in self.works if workload not in self.lost]


def main_reason(reasons: Iterable[Reason]) -> Reason:
    """The one to tell where all calls came to nothing: a refusal only if all are refusals."""
    every = list(reasons)
    return next((reason for reason in every if reason.status != "refused"), every[0])


def warm_up(timed_variants: Sequence[TimedVariant], protocol: Rounds, timer: Timer) -> None:
    """Call everything before anything is timed, and estimate how long a call takes.

    Whatever compiles has done so in an earlier call. Short calls are estimated by the best of
    several.
    """

    def estimate(work: Work) -> float:
        first = timer.samples(work, 1)[0]
        more = timer.samples(work, WARM_UP_CALLS) if first < protocol.visit_ms else []
        return min([first, *more])

    for timed_variant in timed_variants:
        for workload in timed_variant.able:
            found = attempt(partial(estimate, timed_variant.works[workload]))
            if isinstance(found, Reason):
                timed_variant.lose(workload, found)
            else:
                timed_variant.call_ms[workload] = found


def run_rounds(
    timed_variants: Sequence[TimedVariant],
    protocol: Rounds,
    timer: Timer,
    *,
    seed: int,
    progress: Progress = lambda done, planned: None,
) -> None:
    """Fill the visits of warmed-up variants; a workload that fails leaves with its reason.

    Within a round the workloads follow each other and the variants of a workload stand side by
    side, both in random order.
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
    if workload not in timed_variant.able:
        return
    settle, samples = visit_calls(timed_variant.call_ms[workload], protocol)
    work = timed_variant.works[workload]
    found = attempt(lambda: timer.samples(work, settle + samples))
    if isinstance(found, Reason):
        timed_variant.lose(workload, found)
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
    return [one for one in timed_variants if workload in one.able]


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
