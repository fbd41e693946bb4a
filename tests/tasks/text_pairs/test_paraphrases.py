"""Graded paraphrases: points, correlations, and attention that learns them."""

import random
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from bench.api.answer import Answer
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.scenes import Scene
from tasks.text_pairs.paraphrases import Paraphrases, ParaphrasesConfig, graded
from tasks.text_pairs.sentence_similarity import correlation
from tasks.text_pairs.stsb import Stsb, StsbConfig

ONE = Scene(
    quantifier="a",
    agent="dog",
    agent_color="",
    verb="hides",
    thing="violin",
    thing_color="red",
    place="street",
)


def test_points_are_whole_for_the_same_meaning_and_half_for_the_same_class():
    same = replace(ONE, agent="hound", verb="conceals", thing="fiddle", place="road")
    assert graded(ONE, same) == 5.0
    assert graded(ONE, replace(ONE, agent="animal", thing="drum")) == 4.0
    assert graded(ONE, replace(ONE, agent="nurse", verb="sells", thing_color="blue")) == 2.0


def test_scores_cover_the_range_and_are_reported_by_correlations():
    task = Paraphrases(ParaphrasesConfig(test=300), 0)
    scores = [row.score for row in task.rows("test")]
    assert (min(scores), max(scores)) == (0.0, 5.0)
    batches = task.evaluation("test")
    perfect = task.score("test", [Answer(b, values=b.values) for b in batches])
    assert [s.value for s in perfect] == pytest.approx([1.0, 1.0, 0.0])
    turned = task.score("test", [Answer(b, values=5 - b.values) for b in batches])
    assert [s.value for s in turned][:2] == pytest.approx([-1.0, -1.0])
    bent = {
        s.metric: s.value
        for s in task.score("test", [Answer(b, values=b.values**3) for b in batches])
    }
    true = np.concatenate([b.values.flatten().numpy() for b in batches])
    assert bent["spearman_correlation"] == pytest.approx(1.0)
    assert bent["pearson_correlation"] == pytest.approx(stats.pearsonr(true, true**3).statistic)
    assert bent["pearson_correlation"] < 0.97
    assert bent["squared_error_points"] == pytest.approx(((true - true**3) ** 2).mean())


def test_an_answer_that_never_changes_correlates_with_nothing():
    assert correlation([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == 0.0


def test_the_example_that_pages_show_without_the_data_is_that_of_the_examples(tmp_path):
    small = Path(__file__).parents[1] / "small_data" / "stsb.py"
    runpy.run_path(str(small))["write"](tmp_path, random.Random(0))
    batch = Stsb(StsbConfig(), 0, tmp_path).examples()
    assert Stsb.written_example == (batch.names[0], batch.references[0])


@pytest.mark.slow
def test_attention_beats_shared_words():
    cell = quality_cell(
        Request(preset="quick", training="adam[steps=400,evaluate_every=400]"),
        resolve("scaled_dot"),
        DefaultTask(task="paraphrases[test=300,validate=64]"),
        0,
    ).cell
    with torch.random.fork_rng():
        rows = train_cell(replace(cell, seed=1)).rows
    found = [r for r in rows if r.metric == "pearson_correlation" and r.split == "test"]
    (value,) = [r.value for r in found if not (r.axis or r.baseline)]
    assert value > 0.85
