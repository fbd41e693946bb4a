"""Intervals, tests and rankings for few seeds: pure functions that claim no more than they know."""

from results.statistics.aggregates import (
    expected_best,
    interquartile_mean,
    pareto_front,
    probability_of_improvement,
)
from results.statistics.agreement import LEAST_VARIANTS, Agreement, rank_agreement
from results.statistics.bootstrap import hierarchical_bootstrap
from results.statistics.decisions import Equivalence, Verdict, equivalence, holm, speed_verdict
from results.statistics.intervals import (
    Interval,
    PairedDifference,
    exp_interval,
    fieller_ratio,
    log_log_slope,
    log_ratio_interval,
    paired_difference,
    t_interval,
)
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
    "expected_best",
    "fieller_ratio",
    "hierarchical_bootstrap",
    "holm",
    "interquartile_mean",
    "log_log_slope",
    "log_ratio_interval",
    "paired_difference",
    "pareto_front",
    "probability_of_improvement",
    "rank",
    "rank_agreement",
    "speed_verdict",
    "t_interval",
]
