"""Texts with labels that are drawn by a generator."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from bench.api.batch import Batch
from bench.api.task import Split
from tasks.classification.bags_of_words import accuracy_baselines
from tasks.classification.labeled_texts import Labeled, TextTask, evaluation_batches, label_batch
from tasks.data.drawing import shown_to_networks


class DrawnTextTask(TextTask):
    """Texts that are drawn: training never ends, the other parts are fixed by the seed."""

    seed: int
    evaluate: int
    """Texts of validation, and of the test."""

    def draw(self, count: int, generator: torch.Generator) -> list[Labeled]:
        """New texts."""
        raise NotImplementedError

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh texts."""
        while True:
            yield label_batch(self.draw(batch_size, generator), self.labels)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Texts of a stream of their own."""
        return evaluation_batches(self._fixed(split), self.labels)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent label, and naive Bayes over bags of words."""
        return accuracy_baselines(*self.counted())

    def counted(self) -> tuple[list[Labeled], list[Labeled], int]:
        """As many training texts as a network sees, the test, and the size of the vocabulary.

        For non-neural baselines, which count words.
        """
        count = shown_to_networks(type(self))
        train = self.draw(count, torch.Generator().manual_seed(self.seed))
        return train, self._fixed("test"), self.sizes.source_vocabs[0]

    def examples(self) -> Batch:
        """The first texts of the test."""
        return label_batch(self._fixed("test")[:3], self.labels)

    def _fixed(self, split: Split) -> list[Labeled]:
        return self.draw(self.evaluate, self.seeded(split))
