"""Chains of facts: stories, gold, scores, and a memory that learns to look up a fact."""

from dataclasses import replace

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.reading.chains import Chains, ChainsConfig


def make(**options) -> Chains:
    return Chains(ChainsConfig(**options), 0)


def follow(task: Chains, row) -> str:
    links = {}
    for sentence in row.story:
        words = task.words.decode(sentence)
        links[words[1]] = words[5]
    at = task.words.decode(row.question)[3]
    steps = 0
    while at in links:
        at, steps = links[at], steps + 1
    assert steps == row.number == len(row.supporting)
    return at


def test_following_the_links_gives_the_answer_in_as_many_facts():
    task = make(test=60)
    rows = task.rows("test")
    assert {row.number for row in rows} == {1, 2, 3}
    assert all(task.words.decode([row.answer]) == [follow(task, row)] for row in rows)


def test_gold_is_spread_over_the_words_of_supporting_facts():
    task = make(test=60)
    batch = task.evaluation("test")[2]
    assert torch.allclose(batch.gold.sum(-1), torch.ones(20, 1))
    assert ((batch.gold > 0).sum(-1) == 3 * 7).all()


def test_story_and_question_can_be_one_text():
    (joined,) = make(test=60, joined=True).evaluation("test")[0].sources
    story, question = make(test=60).evaluation("test")[0].sources
    assert torch.equal(joined.tokens[:, :21], story.tokens[:, :21])
    assert torch.equal(joined.tokens[:, 21:], question.tokens)
    assert (joined.segments[:, 21:] == 3).all()


def test_errors_are_counted_task_by_task_and_five_percent_is_solved():
    task = make(test=60)
    batches = task.evaluation("test")
    said = [b.targets.clone() for b in batches]
    said[1][0] += 1
    said[2][:] += 1
    answers = [Answer(b, predicted=p) for b, p in zip(batches, said, strict=True)]
    found = {(s.metric, s.x): s.value for s in task.score("test", answers)}
    assert found["label_accuracy", None] == pytest.approx(39 / 60)
    assert found["solved_count", None] == 2.0
    assert found["error_proportion", 2.0] == pytest.approx(0.05)
    assert found["error_proportion", None] == pytest.approx(1.05 / 3)


def test_impossible_counts_are_refused():
    with pytest.raises(InvalidConfig, match="facts is 1 to 3"):
        make(facts=4)


@pytest.mark.slow
def test_a_memory_finds_one_fact_and_uniform_weights_do_not():
    def accuracy(variant):
        cell = quality_cell(
            Request(preset="quick", training="adam[steps=500,evaluate_every=500]"),
            resolve(variant),
            DefaultTask(task="chains[facts=1]", backbone="memn2n[width=32,hops=1]"),
            0,
        ).cell
        with torch.random.fork_rng():
            rows = train_cell(replace(cell, seed=1)).rows
        (value,) = [
            r.value
            for r in rows
            if r.metric == "label_accuracy" and r.split == "test" and not (r.axis or r.baseline)
        ]
        return value

    assert accuracy("dot") > accuracy("uniform") + 0.3
