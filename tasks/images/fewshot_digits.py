"""Few-shot recall: label a new image by the few labeled images before it.

Santoro et al., 2016, "Meta-learning with memory-augmented neural networks",
http://proceedings.mlr.press/v48/santoro16.html, and Mishra et al., 2018, "A simple neural attentive
meta-learner", https://arxiv.org/abs/1707.03141, section 5.1: labels are drawn anew for every
episode, so that only the episode itself gives them; rotated images are further classes.

Deviations: ten digits of scikit-learn instead of 1623 characters of Omniglot, five for training and
five others for the test, each turned and mirrored in eight ways; several query images end an
episode, not one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.digits import (
    DIGITS_LICENSE,
    DIGITS_NOTE,
    PARTS,
    SIDE,
    Digits,
    digits_parts,
    load_digits,
)
from tasks.images.digit_episodes import draw_episodes, refuse_too_many
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.labels import LABEL_ACCURACY, label_scores

ASK, FIRST = 3, 4
"""Replaces a label that is queried; the first label."""
KNOWN = (0, 2, 5, 6, 9)
"""Digits of training and validation; 6 and 9 are one shape, turned."""
NEW = (1, 3, 4, 7, 8)
"""Digits of the test."""
SHOWN = 20160619
"""Seed of the episode that is shown, whatever the seed of a cell."""
SNAIL = "snail[width=32,filters=16,layers=1]"


@dataclass(frozen=True, kw_only=True)
class FewshotDigitsConfig(Config):
    """Options of the episodes."""

    ways: Annotated[int, IntRange(2, 5)] = 5
    """Classes of an episode."""
    shots: Annotated[int, IntRange(1, 10)] = 5
    """Labeled images of each class, at most; the plain score has as many."""
    asked: Annotated[int, IntRange(1, 20)] = 5
    """Query images of an episode."""
    evaluate: int = 200
    """Episodes of validation, and of the test with each number of shots."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 2 <= self.ways <= len(NEW) or min(self.shots, self.asked, self.evaluate) < 1:
            raise InvalidConfig(
                f"fewshot_digits: 2 <= ways <= {len(NEW)}, and shots, asked and evaluate at least "
                f"1, got {self.ways}, {self.shots}, {self.asked} and {self.evaluate}."
            )


@register(
    "task",
    "fewshot_digits",
    config=FewshotDigitsConfig,
    citation=Citation(
        text="Mishra et al., 2018", url="https://arxiv.org/abs/1707.03141", where="section 5.1"
    ),
)
class FewshotDigits(Task):
    """Images with their labels, then images with a question mark.

    >>> task = FewshotDigits(FewshotDigitsConfig(shots=1, asked=2, evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> task.tokens(batch.inputs[0].tolist(), source=True)
    ['c', 'e', 'b', 'd', 'a', '?', '?']
    """

    family = "few-shot recall"
    metrics = (LABEL_ACCURACY, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    data_license = DIGITS_LICENSE
    ranks_tokens = True
    ceiling = 1.0
    comparison = (
        Entry(variant="cosine"),
        Entry(variant="gaussian_kernel"),
        Entry(variant="linear_attention"),
        Entry(variant="last_state"),
        Entry(variant="snail", backbone=SNAIL),
        Entry(variant="uniform", backbone=SNAIL),
    )
    pipeline_check = (
        "At the quick size the nearest pixels of the support set are better than every "
        "network in every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="fewshot_digits[ways=2,shots=1,evaluate=16]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=10,batch=8,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="fewshot_digits",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=700,batch=32,evaluate_every=350]",
            seconds=10.3,
        ),
        "standard": TaskPreset(
            options="fewshot_digits[evaluate=500]",
            backbone="transformer_decoder[width=128,layers=2]",
            protocol="adam[lr=0.001,steps=4000,batch=64,evaluate_every=400]",
            seconds=400.0,
        ),
    }

    def __init__(
        self, config: FewshotDigitsConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        for part in PARTS:
            refuse_too_many(_digits(part), config.shots, config.asked)
        self.notes["data"] = DIGITS_NOTE
        self.notes["parts"] = digits_parts()
        longest = config.ways * config.shots + config.asked
        self.sizes = Sizes((), FIRST + config.ways, longest, input_frames=SIDE * SIDE)
        self.counts = sorted({1, (1 + config.shots) // 2, config.shots})

    @classmethod
    def chance_of(cls, config: FewshotDigitsConfig) -> float:
        """Any one class."""
        return 1 / config.ways

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh episodes of training digits with every number of shots."""
        while True:
            which = int(torch.randint(len(self.counts), (), generator=generator))
            yield self._batch("train", batch_size, self.counts[which], generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation: known digits, new images. Test: new digits, with few and with more shots."""
        generator = self.seeded(split)
        counts = self.counts if split == "test" else [self.config.shots]
        return [self._batch(split, self.config.evaluate, count, generator) for count in counts]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy of the queries with all shots, and with each number of shots."""
        found: list[Scored] = []
        for answer in answers:
            shots = self._shots(answer.batch)
            accuracy = [one for one in label_scores([answer]) if one.metric == LABEL_ACCURACY.name]
            if shots == self.config.shots:
                found += accuracy + alignment_scores([answer], self.sizes.max_length)
            if len(answers) > 1:
                found += [
                    Scored(metric=one.metric, value=one.value, axis="shots", x=float(shots))
                    for one in accuracy
                ]
        return found

    def baselines(self) -> Mapping[str, float]:
        """The label of the labeled image with the nearest pixels, with all shots."""
        batch = self.evaluation("test")[-1]
        assert batch.frames is not None, "episodes have images"
        given = batch.frames.shape[1] - self.config.asked
        far = torch.cdist(batch.frames[:, given:], batch.frames[:, :given])
        said = batch.inputs.gather(1, far.argmin(-1))
        return {"nearest pixels": float((said == batch.targets[:, given:]).float().mean())}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First episodes: labels given, labels queried, predictions."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None, "labels are predicted under teacher forcing"
        found = []
        for row in range(min(count, len(predicted))):
            mask = batch.mask[row]
            shown = (batch.inputs[row], batch.targets[row][mask], predicted[row][mask])
            found.append(Sample(*(" ".join(self.tokens(x.tolist(), source=True)) for x in shown)))
        return found

    def examples(self) -> Batch | None:
        """An episode of one shot, the same for every seed."""
        batch = self._batch("test", 1, 1, torch.Generator().manual_seed(SHOWN))
        words = " ".join(self.tokens(batch.targets[0][batch.mask[0]].tolist(), source=False))
        return replace(
            batch, names=("one image of each class, then the query images",), references=(words,)
        )

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Letters for labels; a question mark for a query."""
        return ["?" if number < FIRST else chr(ord("a") + number - FIRST) for number in ids]

    def _shots(self, batch: Batch) -> int:
        return (batch.inputs.shape[1] - self.config.asked) // self.config.ways

    def _batch(self, part: Split, rows: int, shots: int, generator: torch.Generator) -> Batch:
        config = self.config
        given = config.ways * shots
        size = (config.ways, shots, config.asked)
        images, labels = draw_episodes(_digits(part), rows, size, generator)
        asked = torch.zeros(rows, given + config.asked, dtype=torch.bool)
        asked[:, given:] = True
        targets = labels + FIRST
        alike = (labels[:, :, None] == labels[:, None, :]) & ~asked[:, None, :]
        gold = alike.float() / shots * asked[:, :, None]
        return Batch(
            sources=(),
            inputs=targets.masked_fill(asked, ASK),
            targets=targets,
            mask=asked,
            gold=gold,
            frames=images,
        )


def _digits(part: Split) -> Digits:
    """Images of the digits that episodes of a part are drawn from."""
    return load_digits(part).of(*(NEW if part == "test" else KNOWN))
