"""Intervals, tests and rankings for few seeds: pure functions that claim no more than they know."""

from results.statistics.across_tasks import PairOfScores, probability_of_improvement, sign_test
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
from results.statistics.ranking import Ranked, adjusted_pairs, rank

__all__ = [
    "LEAST_VARIANTS",
    "Agreement",
    "Equivalence",
    "Interval",
    "PairOfScores",
    "PairedDifference",
    "Ranked",
    "Verdict",
    "adjusted_pairs",
    "equivalence",
    "exp_interval",
    "holm",
    "log_log_slope",
    "log_ratio_interval",
    "paired_difference",
    "pareto_front",
    "probability_of_improvement",
    "rank",
    "rank_agreement",
    "sign_test",
    "speed_verdict",
    "t_interval",
]
