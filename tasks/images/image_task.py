"""Pictures as sources: patches row by row, and tasks with one label a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.answer import Answer, Picture, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.data.digits import Digits, load_digits, patches
from tasks.metrics.attention_scores import (
    ALIGNMENT_ENTROPY,
    ALIGNMENT_MATCH,
    alignment_scores,
    selection_scores,
)
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1, label_scores

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FIRST = 4
"""Id of the word `zero`."""


def picture_text(images: Float[Tensor, "B H W"], patch: int) -> Text:
    """Square patches of `patch` pixels a side as the positions of a source."""
    frames = patches(images, patch)
    grid = (images.shape[1] // patch, images.shape[2] // patch)
    return Text(torch.ones(frames.shape[:2], dtype=torch.int64), None, frames=frames, grid=grid)


def whole_picture(batch: Batch, row: int) -> Picture | None:
    """The picture that the patches of one example make."""
    text = batch.sources[0]
    if text.grid is None or text.frames is None:
        return None
    side = round(text.frames.shape[2] ** 0.5)
    cut = text.frames[row].view(*text.grid, side, side)
    return Picture(cut.transpose(1, 2).flatten(2).flatten(0, 1).tolist(), text.grid)


def cover(corners: Int[Tensor, "B 2"], side: int, canvas: int, patch: int) -> Float[Tensor, "B S"]:
    """Share of a square's pixels in each position; rows sum to one."""
    marked = torch.zeros(len(corners), canvas, canvas)
    paste(marked, torch.ones(len(corners), side, side), corners)
    found = patches(marked, patch).sum(-1)
    return found / found.sum(-1, keepdim=True)


def paste(
    canvas: Float[Tensor, "B H W"], pieces: Float[Tensor, "B h w"], corners: Int[Tensor, "B 2"]
) -> None:
    """Lay one piece on each canvas, in position, with its upper left pixel at a corner.

    Where two pieces overlap, the darker pixel stays.
    """
    height, width = pieces.shape[1:]
    row = torch.arange(len(canvas))[:, None, None]
    down = corners[:, :1, None] + torch.arange(height)[:, None]
    across = corners[:, 1:, None] + torch.arange(width)
    canvas[row, down, across] = torch.maximum(canvas[row, down, across], pieces)


class LabeledPictures(Task):
    """Pictures with one label each; a subclass makes batches of a part of the digits."""

    capabilities = frozenset({"grid"})
    ranks_tokens = True
    ceiling = 1.0
    chance = 0.1
    reads = "a digit"
    """Name of a sample's source."""

    def prepare(self, places: int, patch: int) -> None:
        """Set the sizes; called at the end of a subclass's `__init__`."""
        self.places = places
        self.sizes = Sizes((1,), FIRST + len(NAMES), places, source_frames=(patch * patch,))

    def composed(self, part: Split, chosen: Int[Tensor, " B"], generator: torch.Generator) -> Batch:
        """Pictures of these images of a part."""
        raise NotImplementedError

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs over the training images in a new order."""
        count = len(load_digits("train").labels)
        while True:
            order = torch.randperm(count, generator=generator)
            for chosen in order.split(batch_size):
                if len(chosen) == min(batch_size, count):
                    yield self.composed("train", chosen, generator)

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy, and where the weights lie."""
        found = label_scores(answers)
        found += alignment_scores(answers, self.places)
        return found + selection_scores(answers, self.places)

    def shown(self, batch: Batch) -> Batch:
        """A batch with titles and true labels as text."""
        words = tuple(self.tokens(batch.targets.flatten().tolist(), source=False))
        names = tuple(f"{self.reads}, picture {row + 1}" for row in range(len(words)))
        return replace(batch, references=words, names=names)

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First pictures."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None, "labels are predicted under teacher forcing"
        said = [
            self.tokens(ids.flatten().tolist(), source=False) for ids in (batch.targets, predicted)
        ]
        return [
            Sample(f"{self.reads}, picture {row + 1} of the test", *words)
            for row, words in zip(range(count), zip(*said, strict=True), strict=False)
        ]

    def picture(self, batch: Batch, row: int) -> Picture | None:
        """The pixels."""
        return whole_picture(batch, row)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Numbers as words; positions have no names."""
        return ["·" if source else number_word(number) for number in ids]


def number_word(number: int) -> str:
    """Word of an id."""
    return NAMES[number - FIRST] if 0 <= number - FIRST < len(NAMES) else "·"


def labeled(
    text: Text, labels: Int[Tensor, " B"], gold: Float[Tensor, "B S"] | None = None
) -> Batch:
    """A batch with one answer a picture."""
    return Batch(
        sources=(text,),
        inputs=torch.ones(len(labels), 1, dtype=torch.int64),
        targets=labels[:, None] + FIRST,
        mask=torch.ones(len(labels), 1, dtype=torch.bool),
        gold=None if gold is None else gold[:, None],
    )


PICTURE_METRICS = (LABEL_ACCURACY, MACRO_F1, ALIGNMENT_ENTROPY)
POINTED_METRICS = (LABEL_ACCURACY, MACRO_F1, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)


def flat_pixels(batches: Sequence[Batch]) -> Float[Tensor, "N P"]:
    """The pictures of some batches, each as one row of numbers."""
    frames = [batch.sources[0].frames for batch in batches]
    return torch.cat([found.flatten(1) for found in frames if found is not None])


def nearest_neighbors(
    train: tuple[Float[Tensor, "N P"], Sequence[int]],
    test: tuple[Float[Tensor, "M P"], Sequence[int]],
    neighbors: int = 3,
) -> float:
    """Accuracy of scikit-learn's vote of the nearest training pictures, pixel by pixel."""
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - a second to import

    vote = KNeighborsClassifier(neighbors).fit(train[0].numpy(), train[1])
    return float(vote.score(test[0].numpy(), test[1]))


def of_part(part: Split, chosen: Int[Tensor, " B"]) -> Digits:
    """Some images of a part."""
    images, labels = load_digits(part)
    return Digits(images[chosen], labels[chosen])


def nearest(train: Float[Tensor, "N P"], test: Float[Tensor, "M P"]) -> list[int]:
    """Number of the training picture that each picture resembles most, pixel by pixel."""
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - a second to import

    found = NearestNeighbors(n_neighbors=1).fit(train.numpy())
    rows: list[int] = found.kneighbors(test.numpy(), return_distance=False)[:, 0].tolist()
    return rows
