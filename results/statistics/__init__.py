"""Intervals, tests and rankings for few seeds: pure functions that claim no more than they know."""

from results.statistics.across_tasks import (
    PairOfScores,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    sign_test,
)
from results.statistics.agreement import LEAST_VARIANTS, Agreement, rank_agreement
from results.statistics.decisions import Equivalence, Verdict, equivalence, holm, speed_verdict
from results.statistics.growth import STRAIGHT_WITHIN, Growth, Line, growth
from results.statistics.intervals import (
    Interval,
    PairedDifference,
    paired_difference,
    ratio_interval,
    t_interval,
)
from results.statistics.moderated import DifferenceTable, ModeratedDifference, ModeratedTable
from results.statistics.pareto import pareto_front
from results.statistics.primary import (
    MOST_SEEDS,
    Decision,
    Hypothesis,
    Outcome,
    decide,
    primary_decisions,
    primary_hypotheses,
    seeds_to_decide,
)
from results.statistics.ranking import Ranked, Ranking, Tests, rank
from results.statistics.sequential import Ended, SequentialDifference, SequentialTable

__all__ = [
    "LEAST_VARIANTS",
    "MOST_SEEDS",
    "STRAIGHT_WITHIN",
    "Agreement",
    "Decision",
    "DifferenceTable",
    "Ended",
    "Equivalence",
    "Growth",
    "Hypothesis",
    "Interval",
    "Line",
    "ModeratedDifference",
    "ModeratedTable",
    "Outcome",
    "PairOfScores",
    "PairedDifference",
    "Ranked",
    "Ranking",
    "SequentialDifference",
    "SequentialTable",
    "Tests",
    "Verdict",
    "decide",
    "equivalence",
    "growth",
    "holm",
    "interquartile_mean",
    "paired_difference",
    "pareto_front",
    "performance_profile",
    "primary_decisions",
    "primary_hypotheses",
    "probability_of_improvement",
    "rank",
    "rank_agreement",
    "ratio_interval",
    "seeds_to_decide",
    "sign_test",
    "speed_verdict",
    "t_interval",
]
