"""Whole words: a tokenizer of plain text, and vocabularies counted in the training part alone."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_WORDS = ("<pad>", "<s>", "</s>", "<unk>")

# clitics of the Penn Treebank, then words, numbers with their points, and single marks
_TOKEN = re.compile(r"n't|'(?:s|re|ve|ll|d|m)\b|\w+?(?=n't\b)|\d+(?:[.,]\d+)*|\w+|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Split lower-cased text into words and marks, clitics apart as in the Penn Treebank.

    >>> tokenize("It isn't John's, is it?")
    ['it', 'is', "n't", 'john', "'s", ',', 'is', 'it', '?']
    """
    return _TOKEN.findall(text.lower())


class Extended(NamedTuple):
    """A source and what it adds to the vocabulary."""

    ids: list[int]
    """Unknown words as UNK."""
    extended: list[int]
    """Unknown words as V, V + 1, ... in the order in which they appear first."""
    extra: list[str]
    """The words of those ids."""


class Vocabulary:
    """Words to ids and back; special words come first, then words by falling frequency.

    >>> words = Vocabulary.count([["b", "a", "b"], ["c"]], size=6)
    >>> words.encode(["a", "b", "c"]), words.decode([4, 3])
    ([5, 4, 3], ['b', '<unk>'])
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL_WORDS, *words)
        self._ids = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def count(
        cls, sentences: Iterable[Sequence[str]], size: int = 0, *, least: int = 1
    ) -> "Vocabulary":
        """Take the words of the training part.

        Args:
            sentences: Of the training part, as words.
            size: Entries at most, special words included; 0 for no limit.
            least: Occurrences that a word needs.
        """
        counted = Counter(word for sentence in sentences for word in sentence)
        for special in SPECIAL_WORDS:
            counted.pop(special, None)
        ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
        kept = [word for word, times in ranked if times >= least]
        return cls(kept[: max(0, size - len(SPECIAL_WORDS))] if size else kept)

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Turn words into ids, unknown ones into UNK."""
        return [self._ids.get(word, UNK) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Turn ids into words."""
        return [self.words[number] for number in ids]

    def extend(self, words: Sequence[str]) -> Extended:
        """Encode a source so that its unknown words can be copied.

        >>> Vocabulary(["a"]).extend(["x", "a", "y", "x"])
        Extended(ids=[3, 4, 3, 3], extended=[5, 4, 6, 5], extra=['x', 'y'])
        """
        extra = list(dict.fromkeys(word for word in words if word not in self._ids))
        places = {word: len(self) + place for place, word in enumerate(extra)}
        ids = self.encode(words)
        extended = [places.get(word, self._ids.get(word, UNK)) for word in words]
        return Extended(ids, extended, extra)

    def encode_extended(self, words: Iterable[str], extra: Sequence[str]) -> list[int]:
        """Encode a target with the words that its source adds; the others become UNK."""
        places = {word: len(self) + place for place, word in enumerate(extra)}
        return [self._ids.get(word, places.get(word, UNK)) for word in words]
