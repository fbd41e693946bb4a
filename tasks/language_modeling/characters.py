"""Character-level language modeling: bits per character, and rare words that repeat."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bench.api.task import Split
from tasks.data.characters import Characters
from tasks.language_modeling.language_model import BITS, RARE_BITS, LanguageModeling

WORD = re.compile(r"[^\W\d]\w*")
"""A word of a play or a name of a program."""


class CharacterModeling(LanguageModeling):
    """Base: a subclass gives the texts of its parts.

    A rare repeat is every character after the first of a word that is not frequent in training
    and is whole earlier in the window: its first letter may identify it.
    """

    metrics = (BITS, RARE_BITS)
    unit = ""
    characters: Characters
    frequent: frozenset[str]

    def read(self, texts: Mapping[Split, str]) -> None:
        """Count characters and words of the training part and encode all parts."""
        train = texts["train"]
        self.characters = Characters(train)
        counted = Counter(WORD.findall(train))
        ranked = sorted(counted, key=lambda word: (-counted[word], word))
        self.frequent = frozenset(ranked[: self.config.common])
        parts = {split: self.characters.encode(text) for split, text in texts.items()}
        self.start(parts, len(self.characters))

    def rare_repeats(self, row: Sequence[int]) -> list[bool]:
        """Characters of rare words behind their first, where the word was there before."""
        text = "".join(self.characters.decode([max(3, number) for number in row]))
        found, seen = [False] * len(row), set()
        for match in WORD.finditer(text):
            word = match.group()
            if word in seen and word not in self.frequent:
                found[match.start() + 1 : match.end()] = [True] * (len(word) - 1)
            seen.add(word)
        return found

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        ids: list[int] = self.characters.encode(text).tolist()
        return ids

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Characters; a sign for the end of a line."""
        return ["⏎" if name == "\n" else name for name in self.characters.decode(ids)]
