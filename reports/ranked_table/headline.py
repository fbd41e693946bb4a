"""What a comparison is ranked by where its plain score is saturated: the only place that decides.

A harder part of the test comes first, then the training steps to a threshold. Where a run stored
neither, the score stays, and the page says so. What a task declared to rank by stays, too: nobody
chooses another one after looking at scores.
"""

from dataclasses import replace

from bench.api.headline import learned_in_the_end, made_of
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.harder_test import harder_test
from reports.ranked_table.saturation import is_solved, nearly_all_solved
from reports.ranked_table.steps_to_threshold import explanation, has_curves, steps_to_threshold

PLANNED = "Outcomes and p values are those of the planned tests, which are of the whole test."


def headline_of(comparison: Comparison) -> Comparison:
    """What a ranked table shows: another metric where nearly all variants are saturated."""
    if is_declared(comparison) or not nearly_all_solved(comparison):
        return comparison
    return harder_test(comparison) or steps_to_threshold(comparison) or comparison


def separating(comparison: Comparison) -> Comparison:
    """What decides between the best: a harder part as soon as two of them are saturated."""
    after_looking = is_solved(comparison) and not is_declared(comparison)
    harder = harder_test(comparison) if after_looking else None
    return harder or headline_of(comparison)


def at_the_end(comparison: Comparison) -> Comparison | None:
    """By the score after training, where an area along training is ranked; else None."""
    plain_metric = learned_in_the_end(comparison.metric)
    if comparison.given is not None or plain_metric == comparison.metric:
        return None
    return replace(comparison, metric=plain_metric)


def is_declared(comparison: Comparison) -> bool:
    """Whether the task says what ranks in the place of its plain score (`Task.headline`)."""
    return made_of(comparison.metric) != comparison.metric


def about_the_headline(comparison: Comparison) -> str:
    """Sentences for the page on what a table ranks by; empty where it is the plain score.

    Args:
        comparison: From `headline_of`.
    """
    if comparison.part:
        return (
            f"Nearly all variants are saturated on the whole test. So the table ranks by "
            f"{comparison.part}, the hardest part on which something is significantly better than "
            f"uniform attention. {PLANNED}"
        )
    if comparison.plain is not None:
        return f"{explanation(comparison)} {PLANNED}"
    if not nearly_all_solved(comparison):
        return ""
    if is_declared(comparison):
        return (
            "Nearly all variants are saturated. The task declared this metric before the run, so "
            "that the table keeps it."
        )
    why = (
        "too few of them reached the threshold in validation"
        if has_curves(comparison)
        else "no learning curve is stored"
    )
    return (
        "Nearly all variants are saturated on this test, so its score cannot separate them. Steps "
        f"to a threshold are unknown, because {why}."
    )
