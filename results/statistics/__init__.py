"""Intervals, tests and rankings for few seeds: pure functions that claim no more than they know."""

from results.statistics.agreement import LEAST_VARIANTS, Agreement, rank_agreement
from results.statistics.decisions import Equivalence, Verdict, equivalence, holm, speed_verdict
from results.statistics.intervals import (
    Interval,
    PairedDifference,
    exp_interval,
    log_log_slope,
    log_ratio_interval,
    paired_difference,
    t_interval,
)
from results.statistics.pareto import pareto_front
from results.statistics.ranking import Ranked, rank

__all__ = [
    "LEAST_VARIANTS",
    "Agreement",
    "Equivalence",
    "Interval",
    "PairedDifference",
    "Ranked",
    "Verdict",
    "equivalence",
    "exp_interval",
    "holm",
    "log_log_slope",
    "log_ratio_interval",
    "paired_difference",
    "pareto_front",
    "rank",
    "rank_agreement",
    "speed_verdict",
    "t_interval",
]
