"""Batches whose source states stand for several tokens each."""

import torch

from bench.api.batch import Batch, Text


def batch(gold):
    ids = torch.zeros(gold.shape[0], gold.shape[2], dtype=torch.long)
    targets = torch.zeros(gold.shape[:2], dtype=torch.long)
    mask = targets == 0
    return Batch((), inputs=targets, targets=targets, mask=mask, gold=gold, extended=ids)


def test_a_state_has_the_gold_of_all_its_tokens():
    gold = torch.tensor([[[0.1, 0.2, 0.3, 0.4, 0.0], [0.0, 0.0, 0.5, 0.0, 0.5]]])
    found = batch(gold).folded(2)
    expected = torch.tensor([[[0.3, 0.7, 0.0], [0.0, 0.5, 0.5]]])
    torch.testing.assert_close(found.gold, expected)
    assert found.extended is None
    assert found.stride == 2
    assert found.folded(3).stride == 6


def test_ids_of_a_row_leave_out_its_padding():
    tokens = torch.tensor([[5, 6, 7], [8, 0, 0]])
    real = torch.tensor([[True, True, True], [True, False, False]])
    assert [Text(tokens, real).ids(row) for row in (0, 1)] == [[5, 6, 7], [8]]
    assert Text(tokens, None).ids(1) == [8, 0, 0]
