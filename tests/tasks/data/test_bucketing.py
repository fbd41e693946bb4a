"""An epoch of buckets holds every example once, and padding hides nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.data.bucketing import bucketed_batches, pad_rows


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 40), max_size=300),
    batch_size=st.integers(1, 40),
    pool_batches=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_every_example_occurs_once(lengths, batch_size, pool_batches, seed):
    batches = bucketed_batches(lengths, batch_size, seeded(seed), pool_batches=pool_batches)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    short = [batch for batch in batches if len(batch) < batch_size]
    assert len(short) <= 1
    assert all(batches)
    again = bucketed_batches(lengths, batch_size, seeded(seed), pool_batches=pool_batches)
    assert again == batches


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=12))
def test_padding_is_undone_by_its_mask(rows):
    tokens, real = pad_rows(rows, pad=0)
    assert tokens.dtype == torch.int64
    assert real.dtype == torch.bool
    assert tokens.shape == real.shape == (len(rows), max(map(len, rows), default=0))
    assert [row[mask].tolist() for row, mask in zip(tokens, real, strict=True)] == rows
    assert not tokens[~real].any()


def test_batches_have_similar_lengths():
    lengths = torch.randint(1, 50, (2000,), generator=seeded()).tolist()
    batches = bucketed_batches(lengths, 20, seeded(1), pool_batches=100)
    padded = sum(max(lengths[index] for index in batch) * len(batch) for batch in batches)
    assert padded / sum(lengths) < 1.05


def test_pairs_are_sorted_by_the_longer_of_two_then_by_each_in_turn():
    generator = seeded()
    pairs = [(int(n) % 5, int(n) // 5) for n in torch.randperm(100, generator=generator)]
    batches = bucketed_batches(pairs, 5, seeded(), pool_batches=20)
    for batch in batches:
        ranks = [(max(pairs[index]), *pairs[index]) for index in batch]
        assert ranks == sorted(ranks)
    longest = sorted([max(pairs[index]) for index in batch] for batch in batches)
    assert [one for batch in longest for one in batch] == sorted(map(max, pairs))


def test_of_pairs_both_sides_are_padded_little():
    generator = seeded()
    first = torch.randint(1, 50, (2000,), generator=generator)
    pairs = [
        (int(n), max(1, int(n + m)))
        for n, m in zip(first, torch.randint(-6, 7, (2000,), generator=generator), strict=True)
    ]
    padded = [0, 0]
    for batch in bucketed_batches(pairs, 20, seeded(1), pool_batches=100):
        for side in (0, 1):
            padded[side] += max(pairs[index][side] for index in batch) * len(batch)
    for side in (0, 1):
        assert padded[side] / sum(pair[side] for pair in pairs) < 1.15


def test_the_next_epoch_is_another_one():
    lengths = [n % 7 for n in range(100)]
    rng = seeded()
    first, second = bucketed_batches(lengths, 10, rng), bucketed_batches(lengths, 10, rng)
    assert first != second
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert [lengths[batch[0]] for batch in first] != sorted(lengths[batch[0]] for batch in first)


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="must be >= 1"):
        bucketed_batches([1], 0, seeded())
