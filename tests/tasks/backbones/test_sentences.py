"""Texts are cut where the segment changes, and what sentences know goes back to their tokens."""

import torch

from bench.api.batch import Batch, Text
from tasks.backbones.sentences import split_sentences

TOKENS = torch.tensor([[5, 6, 7, 8, 9, 3], [3, 4, 1, 0, 0, 0], [9, 9, 9, 9, 9, 9]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]).bool()
# numbers may skip (an empty sentence) and padding may hold anything
SEGMENTS = torch.tensor([[0, 0, 3, 3, 3, 7], [2, 4, 5, 9, 8, 7], [0, 1, 2, 3, 4, 5]])
FOLDED = [
    [[5, 6, 0], [7, 8, 9], [0, 0, 0]],
    [[3, 0, 0], [4, 0, 0], [1, 0, 0]],
    [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
]


def test_sentences_are_rows_without_holes_and_padding_leaves_nothing():
    folded = split_sentences(Text(TOKENS, MASK, SEGMENTS))
    assert folded.tokens.tolist() == FOLDED
    assert torch.equal(folded.mask, torch.tensor(FOLDED) > 0)
    assert torch.equal(folded.fold(10 * TOKENS), 10 * folded.tokens)


def test_a_text_without_segments_is_one_sentence():
    folded = split_sentences(Text(TOKENS, None))
    assert torch.equal(folded.tokens, TOKENS.unsqueeze(1))
    assert folded.mask.all()
    padded = split_sentences(Text(TOKENS, MASK))
    assert padded.tokens.shape == (3, 1, 5)
    assert padded.mask.sum().item() == 8


def test_numbers_of_words_come_back_to_their_tokens():
    folded = split_sentences(Text(TOKENS, MASK, SEGMENTS))
    back = folded.unfold(folded.tokens.double())
    assert torch.equal(back, torch.where(MASK, TOKENS, 0).double())


def test_numbers_of_sentences_are_shared_evenly_among_their_words():
    folded = split_sentences(Text(TOKENS, MASK, SEGMENTS))
    given = torch.tensor([[[0.4, 0.6, 9.0]], [[0.1, 0.2, 0.7]], [[9.0, 9.0, 9.0]]])
    expected = [[0.2, 0.2, 0.2, 0.2, 0.2, 0], [0.1, 0.2, 0.7, 0, 0, 0], [0] * 6]
    torch.testing.assert_close(folded.spread(given), torch.tensor(expected)[:, None])


def test_a_batch_takes_its_segments_along():
    text = Text(TOKENS, MASK, SEGMENTS)
    batch = Batch((text,), TOKENS, TOKENS, MASK).to(torch.device("meta"))
    assert batch.sources[0].segments.device.type == "meta"
