"""Scores of words that only the picture makes clear."""

from collections.abc import Sequence

import torch

from bench.api.answer import Answer
from bench.api.metric import Metric, Scored
from tasks.images.image_task import NAMES
from tasks.images.scene_drawing import (
    named,
    said_words,
)
from tasks.translation.scene_descriptions import ambiguous_places

AMBIGUOUS_WORDS = Metric(
    name="ambiguous_word_accuracy",
    title="Ambiguous words translated right",
    unit="fraction of ambiguous words",
    low=0.0,
    high=1.0,
    better="higher",
)
REGION_POINTING = Metric(
    name="region_pointing_accuracy",
    title="Strongest weight of an ambiguous word on its region",
    unit="fraction of ambiguous words",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)


def ambiguous_accuracy(answers: Sequence[Answer]) -> Scored:
    """Share of ambiguous words whose digit is right: the n-th digit of the scene as the n-th."""
    said, asked = [], []
    for answer in answers:
        rows = zip(
            ambiguous_places(answer.batch).tolist(),
            answer.batch.references,
            answer.generated or (),
            strict=True,
        )
        for hidden, text, ids in rows:
            told = [word for word in said_words(ids) if word in NAMES]
            told += [""] * (len(hidden) - len(told))
            right = [word for word in text.split() if word in NAMES]
            said += [word for word, unnamed in zip(told, hidden, strict=False) if unnamed]
            asked += [word for word, unnamed in zip(right, hidden, strict=True) if unnamed]
    return Scored(metric=AMBIGUOUS_WORDS.name, value=share_alike(said, asked))


def region_pointing(answers: Sequence[Answer]) -> list[Scored]:
    """Share of ambiguous words with the strongest weight on their region, if there are regions."""
    hits = total = 0
    for answer in answers:
        weights, gold = answer.weights, answer.batch.gold
        if weights is None or gold is None or answer.batch.beside == (0, 0):
            continue
        asked = torch.zeros_like(answer.batch.mask)
        asked[named(answer.batch.targets)] = ambiguous_places(answer.batch).flatten()
        strongest = weights.argmax(-1, keepdim=True)
        hits += int((gold.gather(-1, strongest).squeeze(-1) > 0)[asked].sum())
        total += int(asked.sum())
    return [Scored(metric=REGION_POINTING.name, value=hits / total)] if total else []


def share_alike(said: Sequence[object], asked: Sequence[object]) -> float:
    """Share of places at which both sequences have the same."""
    return sum(one == other for one, other in zip(said, asked, strict=True)) / len(asked)
