"""Characters of a text as ids."""

from collections.abc import Sequence

import numpy as np

from tasks.language_modeling.ngrams import Ids


class Characters:
    """Characters of the training part to ids and back; others are unknown.

    >>> known = Characters("hello")
    >>> known.encode("hole!").tolist(), known.decode([7, 4])
    ([5, 7, 6, 4, 3], ['o', 'e'])
    """

    def __init__(self, text: str) -> None:
        self.names = ["<pad>", "<s>", "</s>", "�", *sorted(set(text))]
        points = [ord(character) for character in self.names[4:]]
        self._table = np.full(max(points) + 2, 3, dtype=np.int64)
        self._table[points] = np.arange(4, len(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, text: str) -> Ids:
        """Turn characters into ids, unknown ones into UNK."""
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        found: Ids = self._table[points.clip(max=len(self._table) - 1)]
        return found

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Turn ids into characters."""
        return [self.names[number] for number in ids]
