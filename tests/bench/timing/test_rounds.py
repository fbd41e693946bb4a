import itertools
import math
import random

from bench.api.errors import Refused
from bench.timing.reason import Reason
from bench.timing.rounds import (
    TimedVariant,
    affordable,
    plan_rounds,
    run_rounds,
    spread,
    visit_calls,
    warm_up,
)
from bench.timing.shape import Rounds
from bench.timing.timer import CpuTimer
from results.statistics import t_interval

PROTOCOL = Rounds(count=20, visit_ms=5.0, budget_ms=1000.0)


class Machine:
    """A computer whose clock rate wanders and which slows down as it warms up."""

    def __init__(self, seed, drift=0.015, wander=0.004, noise=0.003, settle_s=0.3):
        self.now = 0.0
        self.random = random.Random(seed)
        self.drift, self.wander, self.noise, self.settle_s = drift, wander, noise, settle_s
        self.rate = 0.0

    def clock(self):
        return self.now

    def work(self, cost_ms):
        def call():
            self.rate = 0.99 * self.rate + self.random.gauss(0, self.wander * 0.14)
            slow = 1 + self.drift * (1 - math.exp(-self.now / self.settle_s)) + self.rate
            self.now += cost_ms / 1e3 * slow * (1 + self.random.gauss(0, self.noise))

        return call


def same_code_twice(machine):
    return [TimedVariant(name, {"forward": machine.work(1.0)}) for name in ("one", "two")]


def log_ratios(timed_variants, workload="forward"):
    one, two = (timed_variant.visits[workload] for timed_variant in timed_variants)
    return [math.log(two[number] / one[number]) for number in sorted(one)]


def in_rounds(seed):
    machine = Machine(seed)
    timed_variants = same_code_twice(machine)
    timer = CpuTimer(machine.clock)
    warm_up(timed_variants, PROTOCOL, timer)
    run_rounds(timed_variants, PROTOCOL, timer, seed=seed)
    return log_ratios(timed_variants)


def one_after_another(seed):
    machine = Machine(seed)
    timed_variants = same_code_twice(machine)
    timer = CpuTimer(machine.clock)
    warm_up(timed_variants, PROTOCOL, timer)
    for timed_variant in timed_variants:
        run_rounds([timed_variant], PROTOCOL, timer, seed=seed)
    return log_ratios(timed_variants)


def share_of_false_alarms(experiment, count=60):
    intervals = [t_interval(experiment(seed)) for seed in range(count)]
    return sum(bounds.low > 0 or bounds.high < 0 for bounds in intervals) / count


def test_timing_one_variant_after_another_calls_a_drift_a_difference():
    assert share_of_false_alarms(one_after_another) > 0.8


def test_random_rounds_tell_that_the_same_code_is_the_same():
    assert share_of_false_alarms(in_rounds) < 0.12


def test_random_rounds_still_see_a_small_difference():
    machine = Machine(0)
    timed_variants = [
        TimedVariant(str(cost), {"forward": machine.work(cost)}) for cost in (1.0, 1.02)
    ]
    timer = CpuTimer(machine.clock)
    warm_up(timed_variants, PROTOCOL, timer)
    run_rounds(timed_variants, PROTOCOL, timer, seed=0)
    bounds = t_interval(log_ratios(timed_variants))
    assert bounds.low > 0
    assert bounds.low < math.log(1.02) < bounds.high


class Diary:
    """Works that write down who was called, on a clock that each call advances by its cost."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def timed_variant(self, name, cost_ms=1.0, workloads=("forward",), **attributes):
        def work(workload):
            def call():
                self.calls.append((name, workload))
                self.now += cost_ms / 1e3

            return call

        return TimedVariant(name, {w: work(w) for w in workloads}, **attributes)

    def run(self, timed_variants, protocol, seed=0, **more):
        timer = CpuTimer(lambda: self.now)
        warm_up(timed_variants, protocol, timer)
        self.calls.clear()
        run_rounds(timed_variants, protocol, timer, seed=seed, **more)

    def visits(self):
        return [call for at, call in enumerate(self.calls) if at == 0 or self.calls[at - 1] != call]


def test_every_round_visits_everyone_in_an_order_of_its_own():
    diary = Diary()
    names = ["a", "b", "c", "d"]
    protocol = Rounds(count=6, visit_ms=2.0, workloads=PROTOCOL.workloads[:1])
    diary.run([diary.timed_variant(name) for name in names], protocol)
    assert len(diary.calls) == 6 * 4 * (1 + 3)  # one call settles, three count
    orders = [diary.calls[at : at + 16 : 4] for at in range(0, len(diary.calls), 16)]
    assert all(sorted(name for name, _ in order) == names for order in orders)
    assert len({tuple(order) for order in orders}) > 3


def test_the_order_follows_from_the_seed():
    def calls(seed):
        diary = Diary()
        diary.run([diary.timed_variant(name) for name in "abcd"], Rounds(count=3), seed)
        return diary.calls

    assert calls(1) == calls(1)
    assert calls(1) != calls(2)


def test_contestants_of_one_workload_stand_side_by_side():
    diary = Diary()
    both = ("forward", "decode_step")
    diary.run([diary.timed_variant(name, workloads=both) for name in "abc"], Rounds(count=4))
    workloads = [workload for _, workload in diary.visits()]
    changes = sum(one != two for one, two in itertools.pairwise(workloads))
    assert changes <= 7


def test_a_visit_counts_as_its_median_so_that_one_interruption_changes_nothing():
    samples = [9.0, 1.0, 50.0, 1.2, 1.1]

    class Canned:
        def samples(self, work, count):
            return samples[:count]

    timed_variant = TimedVariant("a", {"forward": lambda: None}, call_ms={"forward": 1.0})
    run_rounds([timed_variant], Rounds(count=1, visit_ms=4.0), Canned(), seed=0)
    assert timed_variant.visits["forward"] == {0: 1.15}


def test_short_calls_fill_the_visit_and_long_ones_get_the_fewest_samples():
    protocol = Rounds(visit_ms=10.0, samples=3)
    assert visit_calls(0.1, protocol) == (1, 100)
    assert visit_calls(5.0, protocol) == (1, 3)
    assert visit_calls(500.0, protocol) == (0, 3)
    assert visit_calls(0.0, protocol) == (1, 1000)


def test_a_slow_variant_sits_out_rounds_but_never_too_many():
    protocol = Rounds(count=20, visit_ms=10.0, samples=3, budget_ms=300.0, least=4)
    assert affordable(0.1, protocol) == 20
    assert affordable(12.0, protocol) == 8
    assert affordable(900.0, protocol) == 4
    assert spread(list(range(20)), 4) == [0, 5, 10, 15]


def test_nobody_is_timed_in_a_round_that_the_baseline_sits_out():
    protocol = Rounds(count=12, visit_ms=10.0, samples=3, budget_ms=300.0, least=4)
    slow = TimedVariant("baseline", {}, call_ms={"forward": 80.0}, compared=True)
    twin = TimedVariant("aa_control", {}, call_ms={"forward": 100.0}, compared=True)
    fast = TimedVariant("fast", {}, call_ms={"forward": 0.1})
    slower = TimedVariant("slower", {}, call_ms={"forward": 1000.0})
    plan = plan_rounds([slow, twin, fast, slower], "forward", protocol)
    assert plan["baseline"] == plan["aa_control"] == plan["fast"] == [0, 3, 6, 9]
    assert plan["slower"] == [0, 3, 6, 9]


def test_the_baseline_may_take_longer_because_all_comparisons_need_it():
    protocol = Rounds(count=12, visit_ms=10.0, samples=3, budget_ms=300.0, least=4)
    baseline = TimedVariant("baseline", {}, call_ms={"forward": 30.0}, compared=True)
    other = TimedVariant("other", {}, call_ms={"forward": 30.0})
    plan = plan_rounds([baseline, other], "forward", protocol)
    assert plan["baseline"] == list(range(12))
    assert plan["other"] == [0, 3, 6, 9]


def test_who_fails_while_being_timed_leaves_and_the_others_go_on():
    diary = Diary()
    count = iter(range(1000))

    def breaks_later():
        if next(count) > 8:
            raise MemoryError("no more room")

    fragile = TimedVariant("fragile", {"forward": breaks_later})
    steady = diary.timed_variant("steady")
    diary.run([fragile, steady], Rounds(count=8))
    assert fragile.failed is not None
    assert fragile.failed.status == "out_of_memory"
    assert len(steady.visits["forward"]) == 8


def test_who_refuses_in_the_warm_up_is_never_timed():
    def refuses():
        raise Refused("a bridge too far")

    timed_variant = TimedVariant("refusing", {"forward": refuses})
    Diary().run([timed_variant], Rounds(count=2))
    assert timed_variant.failed == Reason("refused", "a bridge too far")
    assert timed_variant.visits == {}


def test_progress_ends_at_what_was_planned():
    diary, seen = Diary(), []
    timed_variants = [diary.timed_variant("a"), diary.timed_variant("b", cost_ms=900.0)]
    diary.run(timed_variants, Rounds(count=5, least=2), progress=lambda *at: seen.append(at))
    assert seen[0] == (1, 7)
    assert seen[-1] == (7, 7)
