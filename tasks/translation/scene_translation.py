"""Translation of a German description of a scene; some words need the picture.

A sentence and an image are both attended to, as in Huang et al., 2016, "Attention-based multimodal
neural machine translation", https://aclanthology.org/W16-2360: a vector of the whole image and one
of each region are further source tokens. The scenes are those of `digit_scenes`; the German
sentence says "Ziffer" (digit) instead of some digits, of one at least, and the English caption
names them all. `shuffle` gives every sentence the picture of another scene, which must hurt if, and
only if, pictures are used (Elliott, 2018, "Adversarial evaluation of multimodal machine
translation", https://aclanthology.org/D18-1329): in the test alone, or in training too.

Deviations: digits of scikit-learn, not photographs, and their regions are given, not detected. The
whole picture and the regions are scaled to one size, as detectors scale their regions, and their
standardized pixels are the vectors, instead of the 4096 units of a network pretrained on images.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.answer import Answer, Sample
from bench.api.batch import NOT_A_WORD, Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.bucketing import pad_rows
from tasks.data.digits import DIGITS_LICENSE, DIGITS_NOTE, SIDE, load_digits
from tasks.data.samples import decoded_samples
from tasks.images.image_task import FIRST, NAMES, nearest
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
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, alignment_scores
from tasks.metrics.text_scores import BLEU, bleu
from tasks.translation.ambiguous_words import (
    AMBIGUOUS_WORDS,
    REGION_POINTING,
    ambiguous_accuracy,
    region_pointing,
    share_alike,
)
from tasks.translation.scene_descriptions import (
    SOURCE_IDS,
    SOURCE_WORDS,
    ambiguous_places,
    descriptions,
)

TEXT_ONLY = "rnn_seq2seq[hidden=128,embedding=64]"
SHOWN = 20160811
"""Seed of the scenes that are shown, whatever the seed of a cell."""


@dataclass(frozen=True, kw_only=True)
class SceneTranslationConfig(Config):
    """Options of translation with a picture."""

    cells: Annotated[int, IntRange(2, 5)] = 3
    """Cells on each side of a scene; a cell is as large as a digit."""
    most: Annotated[int, IntRange(2, 4)] = 3
    """Largest number of digits in a scene; the smallest is two."""
    ambiguous: Annotated[float, FloatRange(0.0, 1.0)] = 0.5
    """Share of digits that a sentence does not name, besides one that it never names."""
    side: Annotated[int, IntRange(4, 64, log=True)] = SIDE
    """Pixels on each side that pictures and regions are scaled to; a vector has their square."""
    shuffle: Literal["never", "test", "always"] = "never"
    """When sentences have the pictures of other scenes: only in the test, or in training too."""
    evaluate: Annotated[int, IntRange(2, 10000, log=True)] = 250
    """Scenes of validation and of the test with each number of digits."""

    def __post_init__(self) -> None:
        """Check that digits fit into the cells and that there is a scene to exchange with."""
        if not 2 <= self.most <= self.cells**2 or self.cells < 2:
            raise InvalidConfig(
                f"scene_translation: 2 <= most <= cells^2, got {self.most} and {self.cells}."
            )
        if not 0 <= self.ambiguous <= 1:
            raise InvalidConfig(
                f"scene_translation: ambiguous is a share from 0 to 1, got {self.ambiguous}."
            )
        if self.side < 2 or self.evaluate < 1 or (self.shuffle != "never" and self.evaluate < 2):
            raise InvalidConfig(
                "scene_translation: side must be at least 2, evaluate 1, or 2 where "
                f"pictures are exchanged, got {self.side} and {self.evaluate}."
            )


@register(
    "task",
    "scene_translation",
    config=SceneTranslationConfig,
    citation=Citation(text="Huang et al., 2016", url="https://aclanthology.org/W16-2360"),
)
class SceneTranslation(Task):
    """Two or three digits; features are the whole picture, then the digits in reading order.

    Gold of a word is its counterpart, word by word; that of an ambiguous one is its region.

    >>> task = SceneTranslation(SceneTranslationConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> print(batch.names[0], "|", batch.references[0])
    eine Sieben über einer Ziffer | a seven above a nine
    """

    family = "multimodal translation"
    metrics = (
        AMBIGUOUS_WORDS,
        SEQUENCE_ACCURACY,
        BLEU,
        TOKEN_ACCURACY,
        REGION_POINTING,
        ALIGNMENT_ENTROPY,
    )
    capabilities = frozenset({"features", "gold_alignment"})
    data_license = DIGITS_LICENSE
    decodes = True
    ceiling = 1.0
    chance = 0.1
    comparison = (
        Entry(variant="multimodal_tokens"),
        Entry(variant="multimodal_tokens[place=behind]"),
        Entry(variant="multimodal_tokens", task="scene_translation[shuffle=test]"),
        Entry(variant="multimodal_tokens", task="scene_translation[shuffle=always]"),
        Entry(variant="luong_global", backbone=TEXT_ONLY),
        Entry(variant="bahdanau"),
        Entry(variant="hard_gumbel_st"),
        Entry(variant="none_state"),
    )
    pipeline_check = (
        "At the quick size the nearest picture region is better than every network in every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="scene_translation[evaluate=16]",
            backbone="rnn_seq2seq[hidden=32,embedding=16,encoder=multimodal]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="scene_translation",
            backbone="rnn_seq2seq[hidden=128,embedding=64,encoder=multimodal]",
            protocol="adam[lr=0.005,steps=600,batch=32,evaluate_every=200]",
            seconds=12.0,
        ),
        "standard": TaskPreset(
            options="scene_translation[cells=4,most=4]",
            backbone="rnn_seq2seq[hidden=128,embedding=64,encoder=multimodal]",
            protocol="adam[lr=0.002,steps=4000,batch=64,evaluate_every=400]",
            seconds=180.0,
        ),
    }

    def __init__(
        self, config: SceneTranslationConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.notes["data"] = DIGITS_NOTE
        # the longest German sentence, its EOS, and the features beside it
        longest = 5 * config.most
        self.sizes = Sizes((len(SOURCE_WORDS),), len(WORDS), longest, features=config.side**2)
        self._evaluation: dict[Split, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh scenes of training digits."""
        while True:
            count = int(torch.randint(2, self.config.most + 1, (), generator=generator))
            batch = self._batch("train", batch_size, count, generator)
            yield exchanged(batch) if self.config.shuffle == "always" else batch

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Scenes of the digits of a part, those with equally many digits together."""
        if split not in self._evaluation:
            generator = self.seeded(split)
            drawn = [
                self._batch(split, self.config.evaluate, count, generator)
                for count in range(2, self.config.most + 1)
            ]
            shuffle = self.config.shuffle
            if shuffle == "always" or (shuffle == "test" and split == "test"):
                drawn = [exchanged(batch) for batch in drawn]
            self._evaluation[split] = drawn
        return self._evaluation[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Ambiguous words, exact match and BLEU of the output; where the weights point."""
        found = [ambiguous_accuracy(answers)]
        for answer in answers:
            count = float(named(answer.batch.targets[0]).sum())
            found.append(replace(ambiguous_accuracy([answer]), axis="digits", x=count))
        found += scores_by_length(answers, self.sizes.max_length, curve=False)
        said = [said_words(row) for answer in answers for row in answer.generated or ()]
        references = [text.split() for answer in answers for text in answer.batch.references]
        value, signature = bleu(said, references)
        found.append(Scored(metric=BLEU.name, value=value))
        self.notes[BLEU.name] = signature
        found += region_pointing(answers)
        about = alignment_scores(answers, self.sizes.max_length)
        return found + [scored for scored in about if scored.metric == ALIGNMENT_ENTROPY.name]

    def baselines(self) -> Mapping[str, float]:
        """The most frequent digit, and that of the training picture nearest to the region."""
        digits = load_digits("train")
        ((most, _),) = Counter(digits.labels.tolist()).most_common(1)
        asked, shown = [], []
        for batch in self.evaluation("test"):
            assert batch.features is not None, "scenes have pictures"
            hidden = ambiguous_places(batch)
            shown.append(batch.features[:, 1:][hidden])
            asked += batch.targets[named(batch.targets)].view(hidden.shape)[hidden].tolist()
        near = nearest(as_vectors(digits.images, self.config.side), torch.cat(shown))
        right = [FIRST + label for label in digits.labels[torch.tensor(near)].tolist()]
        return {
            "text alone, most frequent digit": asked.count(FIRST + most) / len(asked),
            "nearest picture of the region": share_alike(right, asked),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First sentences with each number of digits."""
        return decoded_samples(answers, count, lambda ids: " ".join(said_words(ids)))

    def examples(self) -> Batch | None:
        """Three scenes of test digits with their own pictures, the same for every seed."""
        generator = torch.Generator().manual_seed(SHOWN)
        return self._batch("test", 3, self.config.most, generator)

    def feature_names(self, batch: Batch, row: int) -> list[str]:
        """The whole picture, and which digit each region shows, unless pictures are exchanged."""
        count = int(named(batch.targets[row]).sum())
        digits = [word for word in batch.references[row].split() if word in NAMES]
        if self.config.shuffle != "never":
            digits = ["digit"] * count
        return [f"{NOT_A_WORD} scene", *(f"{NOT_A_WORD} {digit}" for digit in digits)]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words."""
        words = SOURCE_WORDS if source else WORDS
        return ["</s>" if number == EOS else words[number] for number in ids]

    def _batch(self, part: Split, rows: int, count: int, generator: torch.Generator) -> Batch:
        config = self.config
        scene, images = draw_scenes(part, rows, count, config.cells, generator)
        hidden = torch.rand(rows, count, generator=generator) < config.ambiguous
        never = torch.randint(count, (rows,), generator=generator)
        hidden |= functional.one_hot(never, count).bool()
        texts, sentences = captions(scene, config.cells), descriptions(scene, hidden, config.cells)
        inputs, targets, mask = captioned(texts)
        tokens, real = pad_rows(
            [[*(SOURCE_IDS[word] for word in said.split()), EOS] for said in sentences]
        )
        pictures = as_vectors(scene_pictures(scene, images, config.cells), config.side)
        regions = as_vectors(images.flatten(0, 1), config.side).view(rows, count, -1)
        assert tokens.shape == targets.shape, "sentences go word by word"
        gold, pictured = _gold(targets, mask, hidden)
        return Batch(
            sources=(Text(tokens, None if bool(real.all()) else real),),
            inputs=inputs,
            targets=targets,
            mask=mask,
            gold=gold,
            references=tuple(texts),
            names=tuple(sentences),
            features=torch.cat((pictures[:, None], regions), 1),
            features_gold=pictured,
        )


def as_vectors(pictures: Float[Tensor, "N H W"], side: int) -> Float[Tensor, "N F"]:
    """Pixels of pictures that were scaled to one size, F = side^2; mean 0 and deviation 1 each."""
    size = (side, side)
    scaled = functional.interpolate(pictures[:, None], size, mode="bilinear", antialias=True)
    return functional.layer_norm(scaled.flatten(1), (side * side,))


def exchanged(batch: Batch) -> Batch:
    """Give every example the picture of the one before, which has as many digits."""
    assert batch.features is not None, "there are pictures to exchange"
    return replace(batch, features=batch.features.roll(1, 0))


def _gold(
    targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], hidden: Bool[Tensor, "B N"]
) -> tuple[Float[Tensor, "B T T"], Float[Tensor, "B T R"]]:
    """Links to words and to features: sentences go word by word, ambiguous ones by the region."""
    count = hidden.shape[1]
    regions = functional.pad(torch.diag_embed(hidden.float()), (1, 0))
    pictured = gold_of_named(targets, regions)
    assert pictured.shape[2] == count + 1, "the whole picture comes first"
    words = mask & (pictured.sum(-1) == 0)
    return torch.diag_embed(words.float()), pictured
