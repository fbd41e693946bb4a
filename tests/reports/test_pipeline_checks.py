"""Published comparisons in which a non-neural baseline wins are no evidence, and say so.

Who wins is computed from the rows by pandas alone. `claims` is left out: what it compares are the
two sides of a sentence, and no summary counts its comparisons.
"""

import re

import pandas as pd
import pytest
from recomputed import RANKED, Compared, pack_of

from bench.api import registry
from bench.api.loading import load_package
from bench.api.selector import parse
from bench.api.task import TASKS
from bench.running.catalog import describe_task

load_package("variants")
load_package("tasks")

MARKS = ("pipeline_check", "pipeline_check_over", "rule_baseline", "counts_with")
BY_NETWORK = {"families": 3, "quick": 1}
"""Comparisons, but for input ablations, that are pipeline checks over their network alone."""


def best_baseline(one: Compared) -> "pd.Series[float] | None":
    """Score by seed of the non-neural baseline with the best mean."""
    found = [*one.pack.non_neural(one.task, one.metric).values()]
    return max(found, key=lambda scores: one.sign * scores.mean(), default=None)


def baseline_wins(one: Compared) -> bool:
    """Whether the best non-neural baseline is at least as good as every contender in every seed."""
    best = best_baseline(one)
    if best is None or not one.contenders:
        return False
    gaps = one.sign * (one.scores.loc[[*one.contenders]] - best)
    return bool((gaps.stack() <= 0).all())


def is_ceiling(one: Compared) -> bool:
    """Whether a non-neural baseline is the rule of the data, with the best score in every seed."""
    rule = one.pack.non_neural(one.task, one.metric).get(one.about.get("rule_baseline", ""))
    return rule is not None and {*rule} == {one.about["ceiling"]}


def is_ablation(one: Compared) -> bool:
    return bool(one.about.get("whole", "") not in ("", one.task))


@pytest.mark.parametrize("name", RANKED)
def test_where_a_non_neural_baseline_wins_is_a_pipeline_check_or_a_ceiling(name: str) -> None:
    unmarked = [
        (one.task, one.network)
        for one in pack_of(name).comparisons
        if baseline_wins(one) and one.is_evidence and not is_ceiling(one)
    ]
    assert unmarked == []


@pytest.mark.parametrize("name", RANKED)
def test_a_network_that_is_marked_is_beaten_by_a_non_neural_baseline(name: str) -> None:
    marked = [
        one
        for one in pack_of(name).comparisons
        if one.network in one.about.get("pipeline_check_over", {}) and not is_ablation(one)
    ]
    assert len(marked) == BY_NETWORK.get(name, 0)
    assert [one.task for one in marked if not baseline_wins(one)] == []


@pytest.mark.parametrize("name", RANKED)
def test_the_catalog_of_a_pack_has_the_marks_of_today(name: str) -> None:
    pack = pack_of(name)
    for task, facts in pack.tasks.items():
        told = describe_task(facts["short"], parse(task), pack.catalog["preset"])
        for mark in MARKS:
            assert (facts.get(mark) or None) == (getattr(told, mark) or None), (task, mark)


@pytest.mark.parametrize(
    ("pack", "task", "network", "told"),
    [
        ("families", "wikitext2_mini", "rnn_decoder", [44.5, 81.8]),
        ("families", "string_alignment", "transformer_seq2seq", [0.04, 0.08]),
        ("families", "method_naming", "rnn_seq2seq", [0.09, 0.08]),
        ("families", "two_source", "rnn_seq2seq", [0.56]),
        ("quick", "two_source", "rnn_seq2seq", [0.56]),
    ],
)
def test_the_numbers_of_a_reason_are_those_of_the_rows(
    pack: str, task: str, network: str, told: list[float]
) -> None:
    target = registry.find(TASKS, task).target
    why = target.pipeline_check or target.pipeline_check_over[network]
    assert [float(number) for number in re.findall(r"\d+\.\d+", why)] == told
    (one,) = [
        one
        for one in pack_of(pack).comparisons
        if one.task.partition("[")[0] == task and one.network == network and not is_ablation(one)
    ]
    best = best_baseline(one)
    assert best is not None
    means = one.scores.loc[[*one.contenders]].mean(axis=1)
    known = [best.mean(), one.sign * (one.sign * means).max()]
    for number in told:
        digits = len(str(number).partition(".")[2])
        assert number in [round(float(value), digits) for value in known]
