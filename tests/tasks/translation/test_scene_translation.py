"""Sentences and pictures: what only the picture tells, links, exchange, scores, and learning."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import default_task_of, quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.digits import load_digits
from tasks.images.image_task import NAMES
from tasks.images.scene_drawing import IDS, DigitScene, draw_scenes, scene_pictures
from tasks.translation.scene_descriptions import AMBIGUOUS, GERMAN, ambiguous_places, descriptions
from tasks.translation.scene_translation import TEXT_ONLY, SceneTranslationConfig, as_vectors

ENGLISH = {
    **dict(zip(GERMAN, NAMES, strict=True)),
    **{"links": "left", "von": "of", "über": "above"},
}


def made(options: str = "", seed: int = 0):
    return registry.make("task", parse(f"scene_translation{options}"), seed)


def digits_of(text: str) -> list[str]:
    return [word for word in text.split() if word in NAMES]


def said(batch) -> tuple[tuple[int, ...], ...]:
    rows = zip(batch.targets.tolist(), batch.mask.tolist(), strict=True)
    return tuple(tuple(x for x, kept in zip(*row, strict=True) if kept)[:-1] for row in rows)


def coded(texts) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(IDS[word] for word in text.split()) for text in texts)


def values(task, answers) -> dict[str, float]:
    return {s.metric: s.value for s in task.score("test", answers) if not s.axis}


def in_front(batch):
    """As a network arranges it whose features stand in front of the words."""
    count = batch.features.shape[1]
    gold = torch.cat((batch.features_gold, batch.gold), 2)
    return replace(batch.with_beside(count, 0), gold=gold)


@pytest.mark.parametrize(
    ("labels", "cells", "hidden", "text"),
    [
        ([3, 7], [0, 1], [0, 0], "eine Drei links von einer Sieben"),
        ([3, 7], [0, 8], [1, 0], "eine Ziffer über einer Sieben"),
        ([8, 8], [2, 3], [1, 1], "eine Ziffer über einer Ziffer"),
        ([1, 0, 5], [3, 5, 6], [0, 1, 0], "eine Eins links von einer Ziffer über einer Fünf"),
    ],
)
def test_a_sentence_names_digits_in_reading_order_or_calls_them_digits(labels, cells, hidden, text):
    scene = DigitScene(torch.tensor([labels]), torch.tensor([cells]))
    assert descriptions(scene, torch.tensor([hidden]).bool(), 3) == [text]


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 1.0, 1.0), (0.5, 1.6, 2.0)])
def test_sentences_go_word_by_word_and_leave_one_digit_open_at_least(share, low, high):
    task, opened, rows = made(f"[ambiguous={share},evaluate=100]"), 0, 0
    for batch in task.evaluation("test"):
        for source, target in zip(batch.names, batch.references, strict=True):
            assert AMBIGUOUS in source.split()
            for word, other in zip(source.split(), target.split(), strict=True):
                if word == AMBIGUOUS:
                    assert other in NAMES
                elif word in ("eine", "einer"):
                    assert other in ("a", "an")
                else:
                    assert ENGLISH[word] == other
            opened += source.split().count(AMBIGUOUS)
            rows += 1
    assert low <= opened / rows <= high


def test_what_a_network_reads_is_the_sentence():
    for batch in made("[evaluate=20]").evaluation("test"):
        text = batch.sources[0]
        real = torch.ones_like(text.tokens) > 0 if text.mask is None else text.mask
        for row, name in enumerate(batch.names):
            words = made().tokens(text.tokens[row][real[row]].tolist(), source=True)
            assert words == [*name.split(), "</s>"]


def test_no_text_tells_an_ambiguous_word():
    """The best guess from whole sentences of training, counted, is no better than chance."""
    task = made("[evaluate=1000]")
    seen = defaultdict(Counter)
    stream = task.training(2000, torch.Generator().manual_seed(5))
    right = asked = 0
    for batch in [next(stream) for _ in range(5)]:
        for sentence, place, word in opened(batch):
            # what stands before and behind the word too, and the sentence without its digits
            for clue in (sentence, *neighbors(sentence, place), ()):
                seen[clue, place][word] += 1
    for batch in task.evaluation("test"):
        for sentence, place, word in opened(batch):
            clues = (sentence, *neighbors(sentence, place), ())
            known = [seen[clue, place] for clue in clues if seen[clue, place].total() >= 50]
            best = max(known, key=lambda counts: max(counts.values()) / counts.total())
            right += best.most_common(1)[0][0] == word
            asked += 1
    assert asked > 3000
    assert right / asked < 0.13


def opened(batch):
    for name, text, hidden in zip(
        batch.names, batch.references, ambiguous_places(batch).tolist(), strict=True
    ):
        for place, (word, unnamed) in enumerate(zip(digits_of(text), hidden, strict=True)):
            if unnamed:
                yield tuple(name.split()), place, word


def neighbors(sentence, place):
    nouns = [word for word in sentence if word == AMBIGUOUS or word in GERMAN]
    yield ("before", *nouns[max(0, place - 1) : place])
    yield ("behind", *nouns[place + 1 : place + 2])
    yield tuple("Wort" if word in nouns else word for word in sentence)


def test_regions_are_digits_of_the_part_in_the_order_of_the_caption():
    task = made("[evaluate=30]")
    train = as_vectors(load_digits("train").images, 8)
    for split in ("validation", "test"):
        digits = load_digits(split)
        known = as_vectors(digits.images, 8)
        for batch in task.evaluation(split):
            for row, text in enumerate(batch.references):
                regions = batch.features[row, 1:]
                distance, which = torch.cdist(regions, known).min(1)
                assert distance.max() < 1e-2
                assert [NAMES[label] for label in digits.labels[which]] == digits_of(text)
                assert torch.cdist(regions, train).min() > 0.1


def test_training_pictures_are_of_the_training_part():
    known = as_vectors(load_digits("train").images, 8)
    batch = next(made().training(64, torch.Generator().manual_seed(0)))
    assert torch.cdist(batch.features[:, 1:].flatten(0, 1), known).min(1).values.max() < 1e-2


@pytest.mark.parametrize("side", [8, 24])
def test_the_whole_picture_stands_in_front_at_the_size_of_the_regions(side):
    task = made(f"[side={side},evaluate=4]")
    generator = task.seeded("test")
    for count, batch in zip((2, 3), task.evaluation("test"), strict=True):
        scene, images = draw_scenes("test", 4, count, 3, generator)
        torch.rand(4, count, generator=generator)
        torch.randint(count, (4,), generator=generator)
        whole = scene_pictures(scene, images, 3)
        assert batch.features.shape == (4, 1 + count, side * side)
        assert torch.equal(batch.features[:, 0], as_vectors(whole, side))
        if side == 24:  # nothing is lost
            flat = whole.flatten(1)
            expected = (flat - flat.mean(1, keepdim=True)) / flat.std(1, correction=0)[:, None]
            assert (batch.features[:, 0] - expected).abs().max() < 1e-3
        assert task.sizes.features == side * side


def test_gold_is_the_counterpart_or_the_region_of_an_ambiguous_word():
    for batch in made("[evaluate=20]").evaluation("test"):
        both = batch.gold.sum(-1) + batch.features_gold.sum(-1)
        assert torch.equal(both, batch.mask.float())
        for row, (source, text) in enumerate(zip(batch.names, batch.references, strict=True)):
            region = 0
            for step, word in enumerate([*source.split(), "</s>"]):
                region += word == AMBIGUOUS or word in GERMAN
                if word == AMBIGUOUS:
                    assert batch.features_gold[row, step, region] == 1
                else:
                    assert batch.gold[row, step, step] == 1
            assert region == len(digits_of(text))


def test_pictures_are_exchanged_when_that_was_asked_for_and_nothing_else_changes():
    own, test, always = (made(f"[evaluate=12,shuffle={s}]") for s in ("never", "test", "always"))
    for split, changed in (
        ("validation", {"never": False, "test": False, "always": True}),
        ("test", {"never": False, "test": True, "always": True}),
    ):
        for task in (own, test, always):
            for batch, plain in zip(task.evaluation(split), own.evaluation(split), strict=True):
                assert batch.names == plain.names
                assert torch.equal(batch.targets, plain.targets)
                same = (batch.features == plain.features).flatten(1).all(1)
                assert not same.any() if changed[task.config.shuffle] else same.all()
                assert sorted(batch.features.sum((1, 2)).tolist()) == pytest.approx(
                    sorted(plain.features.sum((1, 2)).tolist()), abs=1e-3
                )
    one, two, three = (
        next(task.training(8, torch.Generator().manual_seed(3))) for task in (own, test, always)
    )
    assert torch.equal(one.features, two.features)
    assert torch.equal(one.features.roll(1, 0), three.features)


def test_the_reference_scores_full_marks_and_weights_on_regions_point():
    task = made("[evaluate=10]")
    answers = []
    for batch in task.evaluation("test"):
        here = in_front(batch)
        answers.append(
            Answer(here, predicted=here.targets, generated=said(here), weights=here.gold)
        )
    found = values(task, answers)
    assert found["ambiguous_word_accuracy"] == found["sequence_accuracy"] == 1.0
    assert found["bleu"] == pytest.approx(100.0)
    assert found["region_pointing_accuracy"] == 1.0
    assert "tok:none" in task.notes["bleu"]
    off = [replace(a, weights=a.weights.roll(1, 2)) for a in answers]
    assert values(task, off)["region_pointing_accuracy"] == 0.0
    named = [
        replace(
            a, weights=torch.where(a.batch.features_gold.sum(-1, keepdim=True) > 0, a.weights, 0)
        )
        for a in answers
    ]
    assert values(task, named)["region_pointing_accuracy"] == 1.0, "only ambiguous words count"
    curve = [s.x for s in task.score("test", answers) if s.axis == "digits"]
    assert sorted(set(curve)) == [2.0, 3.0]


def test_where_there_are_no_regions_nothing_points():
    task = made("[evaluate=10]")
    (batch, _) = task.evaluation("test")
    answer = Answer(batch, predicted=batch.targets, generated=said(batch), weights=batch.gold)
    found = values(task, [answer])
    assert "region_pointing_accuracy" not in found
    assert found["ambiguous_word_accuracy"] == 1.0


def test_only_ambiguous_words_count_and_only_as_they_are_said():
    """The article tells an eight, but only who is given it; what is said counts."""
    task = made("[evaluate=10]")
    batch, _ = task.evaluation("test")
    wrong, others = [], []
    for text, hidden in zip(batch.references, ambiguous_places(batch).tolist(), strict=True):
        places = iter(hidden)
        words = [
            (w, NAMES[NAMES.index(w) - 1], next(places)) if w in NAMES else (w, w, False)
            for w in text.split()
        ]
        wrong.append(" ".join(other if unnamed else word for word, other, unnamed in words))
        others.append(" ".join(word if unnamed else other for word, other, unnamed in words))
    right = Answer(batch, predicted=batch.targets, generated=said(batch))
    assert values(task, [replace(right, generated=coded(wrong))])["ambiguous_word_accuracy"] == 0
    found = values(task, [replace(right, generated=coded(others))])
    assert found["ambiguous_word_accuracy"] == 1
    assert found["sequence_accuracy"] < 1
    silent = values(task, [replace(right, generated=tuple(() for _ in batch.references))])
    assert silent["ambiguous_word_accuracy"] == 0


def test_who_always_says_one_digit_has_what_the_baseline_has():
    task = made()
    most = Counter(load_digits("train").labels.tolist()).most_common(1)[0][0]
    answers = []
    for batch in task.evaluation("test"):
        told = []
        for source, text in zip(batch.names, batch.references, strict=True):
            pairs = zip(source.split(), text.split(), strict=True)
            told.append(" ".join(NAMES[most] if s == AMBIGUOUS else word for s, word in pairs))
        answers.append(Answer(batch, predicted=batch.targets, generated=coded(told)))
    baseline = task.baselines()["text alone, most frequent digit"]
    assert values(task, answers)["ambiguous_word_accuracy"] == pytest.approx(baseline)
    assert 0.07 < baseline < 0.13


def test_pictures_tell_most_words_and_those_of_other_scenes_tell_none():
    name = "nearest picture of the region"
    assert made().baselines()[name] > 0.9
    assert made("[shuffle=test]").baselines()[name] < 0.15


def test_scenes_that_are_shown_are_the_same_for_every_seed_and_have_their_own_pictures():
    one, other = made(seed=1).examples(), made("[shuffle=always]", seed=2).examples()
    assert one.names == other.names
    assert torch.equal(one.features, other.features)
    assert made(seed=1).evaluation("test")[0].names != made(seed=2).evaluation("test")[0].names


def test_features_are_named_by_what_they_show_unless_they_are_of_other_scenes():
    batch = made().examples()
    expected = ["▣ scene", *(f"▣ {digit}" for digit in digits_of(batch.references[1]))]
    assert made().feature_names(batch, 1) == expected
    assert made("[shuffle=test]").feature_names(batch, 1) == ["▣ scene", *["▣ digit"] * 3]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"most": 10}, "most <= cells"),
        ({"cells": 1}, "most <= cells"),
        ({"ambiguous": 1.5}, "a share from 0 to 1, got 1.5"),
        ({"side": 1}, "side must be at least 2"),
        ({"evaluate": 1, "shuffle": "test"}, "or 2 where pictures are exchanged"),
    ],
)
def test_impossible_options_are_refused(options, says):
    with pytest.raises(InvalidConfig, match=says):
        SceneTranslationConfig(**options)


def test_this_is_the_default_task_of_the_mechanism_of_the_paper():
    default_task = default_task_of(resolve("multimodal_tokens"))
    assert default_task == DefaultTask(task="scene_translation")


@pytest.mark.slow
def test_a_network_learns_what_only_pictures_tell_and_is_misled_by_those_of_other_scenes():
    found = {}
    for name, variant, options, backbone in (
        ("own", "bahdanau", "", ""),
        ("other", "bahdanau", "[shuffle=test]", ""),
        ("text", "bahdanau", "", TEXT_ONLY),
    ):
        request = Request(preset="quick", training="adam[steps=250,evaluate_every=250]")
        default_task = DefaultTask(task=f"scene_translation{options}", backbone=backbone)
        rows = train_cell(quality_cell(request, resolve(variant), default_task, 11).cell).rows
        found[name] = {
            row.metric: row.value
            for row in rows
            if row.split == "test" and not (row.axis or row.baseline)
        }
    accuracy = {name: one["ambiguous_word_accuracy"] for name, one in found.items()}
    assert accuracy["own"] > 0.7
    assert found["own"]["region_pointing_accuracy"] > 0.8
    assert accuracy["other"] < 0.2
    assert accuracy["text"] < 0.2
    assert "region_pointing_accuracy" not in found["text"]
