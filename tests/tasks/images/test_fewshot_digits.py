"""Episodes: labels mean nothing outside of one, and no image asks for itself."""

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
from tasks.images.digit_episodes import all_turned, draw_episodes
from tasks.images.fewshot_digits import KNOWN, NEW


def made(options: str = "", seed: int = 0):
    return registry.make("task", parse(f"fewshot_digits{options}"), seed)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_digits_of_the_test_never_occur_in_training():
    assert not set(KNOWN) & set(NEW)
    task = made("[evaluate=20]")
    turned = all_turned(load_digits("test").of(*NEW).images).flatten(0, 1).flatten(1)
    known = {tuple(image.tolist()) for image in turned}
    for batch in task.evaluation("test"):
        assert all(tuple(image.tolist()) in known for image in batch.frames.flatten(0, 1)[:200])


def test_eight_ways_to_turn_an_image_are_eight():
    image = load_digits("train").images[5:6]
    assert len(all_turned(image).flatten(1).unique(dim=0)) == 8


def test_every_class_is_shown_as_often_and_no_image_stands_twice():
    images, labels = draw_episodes(load_digits("train").of(*KNOWN), 6, (5, 3, 4), rng())
    assert images.shape == (6, 19, 64)
    for row in range(6):
        assert torch.bincount(labels[row, :15]).tolist() == [3] * 5
        assert len(images[row].unique(dim=0)) == 19


def test_images_of_one_label_are_of_one_digit_turned_alike():
    digits = load_digits("train").of(*KNOWN)
    images, labels = draw_episodes(digits, 5, (5, 2, 3), rng(1))
    bank = all_turned(digits.images).flatten(2)
    for row in range(5):
        found = {}
        for image, label in zip(images[row], labels[row].tolist(), strict=True):
            turn, index = (bank - image).abs().amax(-1).eq(0).nonzero()[0].tolist()
            found.setdefault(label, set()).add((turn, int(digits.labels[index])))
        # an image that is its own directory image may be found under another turn
        assert all(len({digit for _, digit in kinds}) == 1 for kinds in found.values())
        assert len({next(iter(kinds))[1] for kinds in found.values()}) == len(found)


def test_the_label_of_a_digit_changes_from_episode_to_episode():
    digits = load_digits("train").of(0)
    both = digits._replace(
        images=torch.cat((digits.images, load_digits("train").of(2).images)),
        labels=torch.cat((digits.labels, load_digits("train").of(2).labels)),
    )
    _, labels = draw_episodes(both, 50, (2, 1, 1), rng(2))
    assert 0.3 < labels[:, 0].float().mean() < 0.7


def test_a_label_that_is_asked_for_is_hidden_and_gold_are_the_images_of_its_class():
    task = made("[shots=2,asked=3,evaluate=4]")
    batch = task.evaluation("validation")[0]
    assert batch.mask.sum(1).tolist() == [3] * 4
    assert (batch.inputs[batch.mask] == 3).all()
    assert torch.equal(batch.inputs[~batch.mask], batch.targets[~batch.mask])
    for row in range(4):
        for place in range(10, 13):
            linked = batch.gold[row, place].nonzero().flatten()
            assert (batch.targets[row, linked] == batch.targets[row, place]).all()
            assert batch.gold[row, place].sum() == pytest.approx(1.0)
            assert linked.max() < 10


def test_accuracy_is_that_of_the_labels_asked_for_at_each_number_of_shots():
    task = made("[shots=3,evaluate=8]")
    batches = task.evaluation("test")
    answers = [Answer(b, predicted=b.targets, weights=b.gold) for b in batches]
    scored = task.score("test", answers)
    assert {s.x for s in scored if s.axis == "shots"} == {1.0, 2.0, 3.0}
    plain = {s.metric: s.value for s in scored if not s.axis}
    assert plain["label_accuracy"] == plain["alignment_match"] == 1.0
    wrong = [Answer(b, predicted=torch.where(b.mask, 0, b.targets)) for b in batches]
    assert {s.value for s in task.score("test", wrong)} == {0.0}


def test_pixels_alone_tell_more_with_five_images_than_with_one():
    one, five = (made(f"[shots={shots}]").baselines()["nearest pixels"] for shots in (1, 5))
    assert 0.5 < one < five < 1.0


def test_an_episode_that_needs_more_images_than_there_are_is_refused():
    few = load_digits("validation").of(*KNOWN)
    with pytest.raises(InvalidConfig, match="may need 1000 of one class, and one here has"):
        draw_episodes(few, 1, (5, 500, 500), rng())


def test_episodes_that_the_smallest_part_has_no_images_for_are_refused_before_training():
    assert made("[shots=10,asked=18,evaluate=1]").evaluation("validation")
    with pytest.raises(InvalidConfig, match="fewshot_digits: an episode of 10 labeled and 20 quer"):
        made("[shots=10,asked=20]")


@pytest.mark.parametrize("options", ["[ways=6]", "[shots=0]", "[asked=0]"])
def test_impossible_episodes_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"fewshot_digits|ways|shots|asked"):
        made(options)


@pytest.mark.slow
def test_attention_learns_to_compare_images_of_digits_it_has_never_seen():
    request = Request(preset="quick", training="adam[steps=300,evaluate_every=300]")
    cell = quality_cell(request, resolve("scaled_dot"), DefaultTask(task="fewshot_digits"), 0).cell
    rows = [r for r in train_cell(cell).rows if r.split == "test" and not r.baseline]
    found = {(r.metric, r.axis, r.x): r.value for r in rows}
    assert found["label_accuracy", "", None] > 0.2 + 0.25, "chance is one in five"
    assert found["label_accuracy", "shots", 5.0] > found["label_accuracy", "shots", 1.0]
