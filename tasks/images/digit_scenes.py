"""Captions of small scenes: which handwritten digits are where.

The setting is that of Xu et al., 2015, "Show, attend and tell: neural image caption generation with
visual attention", https://arxiv.org/abs/1502.03044, at a size that a laptop can train: two or three
digits in nine cells, named in reading order. Whether the strongest weight of a digit's word lies
on that digit is the pointing game of Zhang et al., 2016, "Top-down neural attention by excitation
backprop", https://arxiv.org/abs/1608.00507.

Deviations: digits of scikit-learn, not photographs; one caption a scene, made by a rule, so that
exact match has a meaning; the encoder is trained with the decoder.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer, Picture, Sample
from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.digits import DIGITS_LICENSE, DIGITS_NOTE, SIDE, digits_parts
from tasks.data.samples import decoded_samples
from tasks.images.image_task import cover, flat_pixels, nearest, picture_text, whole_picture
from tasks.images.scene_drawing import (
    EOS,
    WORDS,
    captioned,
    captions,
    draw_scenes,
    gold_of_named,
    named,
    said_words,
    scene_pictures,
)
from tasks.metrics.accuracy import SEQUENCE_ACCURACY, TOKEN_ACCURACY, scores_by_length
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.text_scores import BLEU

POINTING = Metric(
    name="pointing_accuracy",
    title="Strongest weight on the digit that is named",
    unit="fraction of digit words",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)
LUONG = "rnn_seq2seq[hidden=64,embedding=32,encoder=grid_cnn[layers=2],decoder=luong]"
GATED = "rnn_seq2seq[hidden=64,embedding=32,encoder=grid_cnn[layers=2],decoder=gated]"
SHOWN = 20150212
"""Seed of the scenes that are shown, whatever the seed of a cell."""


@dataclass(frozen=True, kw_only=True)
class DigitScenesConfig(Config):
    """Options of the scenes."""

    cells: Annotated[int, IntRange(2, 5)] = 3
    """Cells on each side of a scene; a cell is as large as a digit."""
    most: Annotated[int, IntRange(2, 4)] = 3
    """Largest number of digits in a scene; the smallest is two."""
    patch: Annotated[int, Choices((2, 4))] = 4
    """Pixels on each side of a position."""
    evaluate: int = 250
    """Scenes of validation and of the test with each number of digits."""

    def __post_init__(self) -> None:
        """Check that digits fit into the cells and patches into a cell."""
        if not 2 <= self.most <= self.cells**2 or self.cells < 2:
            raise InvalidConfig(
                f"digit_scenes: 2 <= most <= cells^2, got {self.most} and {self.cells}."
            )
        if self.patch < 1 or SIDE % self.patch or self.evaluate < 1:
            raise InvalidConfig(
                f"digit_scenes: patch must divide {SIDE} and evaluate be at least 1, "
                f"got {self.patch} and {self.evaluate}."
            )


@register(
    "task",
    "digit_scenes",
    config=DigitScenesConfig,
    citation=Citation(text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044"),
)
class DigitScenes(Task):
    """Pictures of two or three digits; gold of a digit's word are the positions of its cell.

    >>> task = DigitScenes(DigitScenesConfig(evaluate=1), seed=0)
    >>> task.evaluation("validation")[0].references
    ('a seven above a nine',)
    """

    family = "image captioning"
    metrics = (
        SEQUENCE_ACCURACY,
        BLEU,
        TOKEN_ACCURACY,
        POINTING,
        ALIGNMENT_ENTROPY,
    )
    capabilities = frozenset({"grid", "gold_alignment"})
    data_license = DIGITS_LICENSE
    decodes = True
    ceiling = 1.0
    chance = 0.0
    comparison = (
        Entry(variant="bahdanau"),
        Entry(variant="image_attention"),
        # the same decoder without the loss that wants total weight one for every position: captions
        # have ten words and scenes 36 positions, which that loss draws towards equal weights
        Entry(variant="additive", backbone=GATED),
        Entry(variant="hard_reinforce"),
        Entry(variant="hard_gumbel_st"),
        Entry(variant="hard_exact", backbone=LUONG),
        Entry(variant="none_state"),
    )
    presets = {
        "smoke": TaskPreset(
            options="digit_scenes[evaluate=16]",
            backbone=(
                "rnn_seq2seq[hidden=32,embedding=16,encoder=grid_cnn[layers=1],decoder=bahdanau]"
            ),
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="digit_scenes",
            backbone=(
                "rnn_seq2seq[hidden=64,embedding=32,encoder=grid_cnn[layers=2],decoder=bahdanau]"
            ),
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=250]",
            seconds=8.3,
        ),
        "standard": TaskPreset(
            options="digit_scenes[patch=2]",
            backbone=(
                "rnn_seq2seq[hidden=128,embedding=64,encoder=grid_cnn[layers=3],decoder=bahdanau]"
            ),
            protocol="adam[lr=0.002,steps=4000,batch=64,evaluate_every=400]",
            seconds=600.0,
        ),
    }

    def __init__(self, config: DigitScenesConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.notes["data"] = DIGITS_NOTE
        self.notes["parts"] = digits_parts()
        self.canvas = config.cells * SIDE
        self.places = (self.canvas // config.patch) ** 2
        self.sizes = Sizes(
            (1,), len(WORDS), max(self.places, 5 * config.most), source_frames=(config.patch**2,)
        )
        self._evaluation: dict[Split, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh scenes of training digits."""
        while True:
            count = int(torch.randint(2, self.config.most + 1, (), generator=generator))
            yield self._batch("train", batch_size, count, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Scenes of the digits of a part, those with equally many digits together."""
        if split not in self._evaluation:
            generator = self.seeded(split)
            self._evaluation[split] = [
                self._batch(split, self.config.evaluate, count, generator)
                for count in range(2, self.config.most + 1)
            ]
        return self._evaluation[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Exact match, also by the number of digits; BLEU; where the weights point."""
        from sacrebleu.metrics import bleu  # noqa: PLC0415 - slow to import

        found = scores_by_length(answers, self.places, curve=False)
        for answer in answers:
            count = float(named(answer.batch.targets[0]).sum())
            found += [
                Scored(metric=one.metric, value=one.value, axis="digits", x=count)
                for one in scores_by_length([answer], self.places, curve=False)
            ]
        said = [self._text(row) for answer in answers for row in answer.generated or ()]
        references = [text for answer in answers for text in answer.batch.references]
        scorer = bleu.BLEU()
        value = scorer.corpus_score(said, [references]).score
        found.append(Scored(metric=BLEU.name, value=value))
        self.notes[BLEU.name] = str(scorer.get_signature())
        for one in alignment_scores(answers, self.places):
            name = POINTING.name if one.metric == ALIGNMENT_MATCH.name else one.metric
            found.append(Scored(metric=name, value=one.value))
        return found

    def baselines(self) -> Mapping[str, float]:
        """The most frequent caption, and that of the nearest of 2000 training scenes."""
        generator = torch.Generator().manual_seed(self.seed)
        given = [
            self._batch("train", 1000, count, generator) for count in range(2, self.config.most + 1)
        ]
        asked = self.evaluation("test")
        train, test = ((flat_pixels(part), _captions(part)) for part in (given, asked))
        ((most, _),) = Counter(train[1]).most_common(1)
        near = nearest(train[0], test[0])
        hits = [train[1][index] == text for index, text in zip(near, test[1], strict=True)]
        return {
            "most frequent caption": test[1].count(most) / len(test[1]),
            "nearest scene": sum(hits) / len(hits),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First scenes with each number of digits."""
        return decoded_samples(answers, count, self._text)

    def examples(self) -> Batch | None:
        """Three scenes of test digits, the same for every seed."""
        generator = torch.Generator().manual_seed(SHOWN)
        return self._batch("test", 3, self.config.most, generator)

    def picture(self, batch: Batch, row: int) -> Picture | None:
        """The scene."""
        return whole_picture(batch, row)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words; positions have no names."""
        return ["·" if source else "</s>" if number == EOS else WORDS[number] for number in ids]

    def _text(self, ids: Sequence[int]) -> str:
        return " ".join(said_words(ids))

    def _batch(self, part: Split, rows: int, count: int, generator: torch.Generator) -> Batch:
        config = self.config
        scene, images = draw_scenes(part, rows, count, config.cells, generator)
        covers = [
            cover(scene.corners(place, config.cells), SIDE, self.canvas, config.patch)
            for place in range(count)
        ]
        texts = captions(scene, config.cells)
        inputs, targets, mask = captioned(texts)
        return Batch(
            sources=(picture_text(scene_pictures(scene, images, config.cells), config.patch),),
            inputs=inputs,
            targets=targets,
            mask=mask,
            gold=gold_of_named(targets, torch.stack(covers, 1)),
            references=tuple(texts),
            names=tuple(f"scene {row + 1}" for row in range(rows)),
        )


def _captions(batches: Sequence[Batch]) -> list[str]:
    return [text for batch in batches for text in batch.references]
