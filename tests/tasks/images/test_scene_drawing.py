"""Scenes and their captions: words, gold, scores, and that attention helps to write them."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.digits import load_digits
from tasks.images.scene_drawing import DigitScene, captions


def made(options: str = "", seed: int = 0):
    return registry.make("task", parse(f"digit_scenes{options}"), seed)


def values(task, answers) -> dict[str, float]:
    return {s.metric: s.value for s in task.score("test", answers) if not s.axis}


def said(batch) -> tuple[tuple[int, ...], ...]:
    rows = zip(batch.targets.tolist(), batch.mask.tolist(), strict=True)
    return tuple(tuple(x for x, kept in zip(*row, strict=True) if kept)[:-1] for row in rows)


@pytest.mark.parametrize(
    ("labels", "cells", "text"),
    [
        ([3, 7], [0, 1], "a three left of a seven"),
        ([3, 7], [0, 8], "a three above a seven"),
        ([8, 8], [2, 3], "an eight above an eight"),
        ([1, 0, 5], [3, 5, 6], "a one left of a zero above a five"),
    ],
)
def test_a_caption_names_digits_in_reading_order(labels, cells, text):
    assert captions(DigitScene(torch.tensor([labels]), torch.tensor([cells])), 3) == [text]


def test_gold_of_a_digits_word_is_the_cell_of_that_digit():
    task = made("[evaluate=20]")
    for batch in task.evaluation("test"):
        pixels = batch.sources[0].frames.sum(-1)
        for row, text in enumerate(batch.references):
            words = text.split()
            for place, word in enumerate([*words, "</s>"]):
                gold = batch.gold[row, place]
                if word in ("a", "an", "left", "of", "above", "</s>"):
                    assert gold.sum() == 0
                else:
                    assert gold.sum() == pytest.approx(1.0)
                    assert (gold > 0).sum() == 4
                    cells = gold.view(3, 2, 3, 2).sum((1, 3)).flatten()
                    ink = pixels[row].view(3, 2, 3, 2).sum((1, 3)).flatten()
                    assert cells.max() == pytest.approx(1.0)
                    assert ink[cells.argmax()] > 0


def test_scenes_of_a_part_are_made_of_digits_of_that_part_alone():
    task = made("[evaluate=30]")
    for split in ("validation", "test"):
        known = {tuple(image.flatten().tolist()) for image in load_digits(split).images}
        for batch in task.evaluation(split):
            for row in range(5):
                gray = torch.tensor(task.picture(batch, row).gray)
                cells = gray.view(3, 8, 3, 8).transpose(1, 2).reshape(9, 64)
                assert all(tuple(c.tolist()) in known for c in cells if c.sum() > 0)


def test_the_reference_scores_full_marks_and_half_of_it_less():
    task = made("[evaluate=10]")
    answers = [
        Answer(batch, predicted=batch.targets, generated=said(batch), weights=batch.gold)
        for batch in task.evaluation("test")
    ]
    found = values(task, answers)
    assert found["sequence_accuracy"] == found["pointing_accuracy"] == 1.0
    assert found["bleu"] == pytest.approx(100.0)
    half = [replace(a, generated=tuple(row[:2] for row in a.generated)) for a in answers]
    found = values(task, half)
    assert found["sequence_accuracy"] == 0.0
    assert found["bleu"] < 50
    curve = [s.x for s in task.score("test", half) if s.axis == "digits"]
    assert sorted(set(curve)) == [2.0, 3.0]


def test_a_weight_beside_the_digit_points_at_nothing():
    task = made("[evaluate=10]")
    (batch,) = task.evaluation("test")[:1]
    off = (batch.gold == 0).float()
    answer = Answer(batch, predicted=batch.targets, generated=said(batch), weights=off)
    assert values(task, [answer])["pointing_accuracy"] == 0.0


def test_scenes_that_are_shown_are_the_same_for_every_seed():
    one, other = (made(seed=seed).examples() for seed in (1, 2))
    assert one.references == other.references
    assert torch.equal(one.sources[0].frames, other.sources[0].frames)
    assert not same_test(made(seed=1), made(seed=2))


def same_test(one, other) -> bool:
    return one.evaluation("test")[0].references == other.evaluation("test")[0].references


@pytest.mark.parametrize("options", ["[most=10]", "[cells=1]", "[patch=3]", "[evaluate=0]"])
def test_impossible_scenes_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"digit_scenes|most"):
        made(options)


@pytest.mark.slow
def test_attention_learns_to_name_digits_and_to_point_at_them_and_the_mean_state_does_not():
    found = {}
    for name in ("bahdanau", "uniform"):
        request = Request(preset="quick", training="adam[steps=250,evaluate_every=250]")
        cell = quality_cell(request, resolve(name), DefaultTask(task="digit_scenes"), 0).cell
        rows = train_cell(cell).rows
        found[name] = {
            row.metric: row.value
            for row in rows
            if row.split == "test" and not (row.axis or row.baseline)
        }
    nearest = made().baselines()["nearest scene"]
    assert found["bahdanau"]["sequence_accuracy"] > nearest + 0.2
    assert found["bahdanau"]["sequence_accuracy"] > found["uniform"]["sequence_accuracy"] + 0.1
    assert found["bahdanau"]["pointing_accuracy"] > 0.6
