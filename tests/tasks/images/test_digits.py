"""The digits as a task."""

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.selector import parse
from tasks.data.digits import load_digits


def made(options: str = "", seed: int = 0):
    return registry.make("task", parse(f"digits{options}"), seed)


def test_all_images_of_a_part_are_scored_and_none_of_another():
    task = made("[patch=4]")
    for split in ("validation", "test"):
        frames = torch.cat([batch.sources[0].frames for batch in task.evaluation(split)])
        ink = load_digits(split).images.sum((1, 2))
        assert torch.allclose(frames.sum((1, 2)), ink)


def test_an_epoch_shows_every_training_image_once():
    task = made("[patch=4]")
    stream = task.training(100, torch.Generator().manual_seed(0))
    seen = torch.cat([next(stream).sources[0].frames.sum((1, 2)) for _ in range(10)])
    ink = load_digits("train").images.sum((1, 2))
    assert torch.allclose(seen.sort().values, ink.sort().values)


def test_right_answers_score_one_and_one_digit_for_all_scores_its_share():
    task = made("[patch=4]")
    batches = task.evaluation("test")
    right = [Answer(batch, predicted=batch.targets) for batch in batches]
    assert {s.metric: s.value for s in task.score("test", right)}["label_accuracy"] == 1.0
    zeros = [Answer(batch, predicted=torch.full_like(batch.targets, 4)) for batch in batches]
    found = {s.metric: s.value for s in task.score("test", zeros)}
    share = float((load_digits("test").labels == 0).float().mean())
    assert found["label_accuracy"] == pytest.approx(share)
    assert task.baselines()["majority"] == pytest.approx(0.1, abs=0.02)


def test_neighbors_name_nearly_all_digits():
    assert made().baselines()["3 nearest neighbors"] == pytest.approx(0.962)


def test_the_picture_of_an_example_is_its_image():
    task = made("[patch=2]")
    shown = task.picture(task.examples(), 1)
    assert torch.allclose(torch.tensor(shown.gray), load_digits("test").images[1])
    assert shown.grid == (4, 4)
    assert task.tokens([4, 13], source=False) == ["zero", "nine"]


def test_a_patch_that_does_not_tile_the_image_is_refused():
    with pytest.raises(InvalidConfig, match="patch must divide 8"):
        made("[patch=3]")


def test_every_task_of_digits_says_which_images_are_in_which_part():
    told = {
        name: registry.make("task", parse(name), 3).notes["parts"]
        for name in ("digits", "digits_cluttered", "digit_scenes", "fewshot_digits")
    }
    assert set(told.values()) == {
        "train 1000 rows 1c63b103f9d6, validation 297 rows 1b4a8adb49fc, test 500 rows 26d122296fda"
    }, "the parts have changed"
