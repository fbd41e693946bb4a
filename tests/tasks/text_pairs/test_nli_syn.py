"""Generated inference: even labels, minimal pairs, and attention that learns it."""

from dataclasses import replace

import pytest
import torch

from bench.api.answer import Answer
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.drawing import shown_to_networks
from tasks.text_pairs import nli_syn
from tasks.text_pairs.nli_syn import NliSyn, NliSynConfig


def plain(found) -> dict[str, float]:
    return {s.metric: s.value for s in found if not s.axis}


def answers(task, split, shift=0):
    return [Answer(b, predicted=(b.targets + shift) % 3) for b in task.evaluation(split)]


def test_labels_are_even_and_a_minimal_pair_keeps_its_premise_but_not_its_label():
    task = NliSyn(NliSynConfig(test=300), 0)
    counts = torch.bincount(torch.tensor([row.label for row in task.rows("test")]))
    assert counts.min() > 75
    labels = {}
    for row in task.rows("test"):
        labels.setdefault(tuple(row.premise), set()).add(row.label)
    assert len(task.changed("test")) > 200
    for row in task.changed("test"):
        assert labels[tuple(row.premise)] - {row.label}


def test_words_alone_do_not_tell_colors_that_change_places():
    rows = NliSyn(NliSynConfig(test=1000), 0).rows("test")
    same = [row for row in rows if sorted(row.premise) == sorted(row.hypothesis)]
    assert len({row.label for row in same}) > 1


def test_minimal_pairs_are_scored_apart():
    task = NliSyn(NliSynConfig(test=300), 0)
    right, wrong = answers(task, "test"), answers(task, "test", shift=1)
    assert set(plain(task.score("test", right)).values()) == {1.0}
    mixed = plain(task.score("test", [*right[:2], *wrong[2:]]))
    assert (mixed["label_accuracy"], mixed["counterfactual_accuracy"]) == (1.0, 0.0)


@pytest.mark.parametrize("pairs", [4000, pytest.param(nli_syn.COUNTED, marks=pytest.mark.slow)])
def test_the_hypothesis_alone_gives_little_away(pairs, monkeypatch):
    monkeypatch.setattr(nli_syn, "COUNTED", pairs)
    task = NliSyn(NliSynConfig(), 0)
    found = task.baselines()
    assert found["hypothesis alone (naive Bayes)"] < 0.45
    assert len(task.rows("train")) == pairs


def test_pairs_that_take_long_to_draw_are_bounded():
    assert nli_syn.COUNTED == 20_000 < shown_to_networks(NliSyn)


@pytest.mark.slow
def test_attention_beats_the_hypothesis_alone_by_far():
    cell = quality_cell(
        Request(preset="quick", training="adam[steps=400,evaluate_every=400]"),
        resolve("scaled_dot"),
        DefaultTask(task="nli_syn[test=300,validate=64]"),
        0,
    ).cell
    with torch.random.fork_rng():
        rows = train_cell(replace(cell, seed=1)).rows
    (value,) = [
        r.value
        for r in rows
        if r.metric == "label_accuracy" and r.split == "test" and not (r.axis or r.baseline)
    ]
    assert value > 0.5
