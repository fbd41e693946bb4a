"""Vocabularies: how many words are kept."""

import pytest

from tasks.data.words import SPECIAL_WORDS, Vocabulary


@pytest.mark.parametrize(
    ("size", "kept"), [(0, 5), (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 2), (9, 5), (12, 5)]
)
def test_a_vocabulary_has_no_more_entries_than_are_asked_for(size, kept):
    words = Vocabulary.count([["a", "b", "c", "d", "e"], ["a"]], size)
    assert words.words == (*SPECIAL_WORDS, *"abcde"[:kept])
