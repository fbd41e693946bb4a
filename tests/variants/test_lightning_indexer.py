import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.api.call import Call
from bench.api.source import Memory, Source
from variants.lightning_indexer import (
    QUERY,
    WEIGHT,
    best_keys,
    divergence,
    index_scores,
    listed,
    oracle_best,
    oracle_divergence,
    oracle_index,
)


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def scored(query, weight, key):
    """Scores of one sequence; queries `L J w`, weights `L J`, keys `S w`."""
    blank = torch.zeros(1, 1, len(query), 1, dtype=torch.float64)
    extras = {QUERY: query.flatten(1)[None, :, None], WEIGHT: weight[None, :, None]}
    call = Call(blank, Memory(Source(blank, blank)), 0, causal=True, extras=extras)
    return index_scores(call, key[None])[0]


def test_golden_scores():
    """2 * (1, 0 twice, 1/2) - (0, 2, 0, 0), over the root of two heads times two numbers."""
    key = torch.tensor([[1.0, 0.0], [-2.0, 0.0], [0.0, 5.0], [0.5, -1.0]]).double()
    query = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]]).double()
    found = scored(query, torch.tensor([[2.0, -1.0]]).double(), key)
    assert found.tolist() == [[1.0, -1.0, 0.0, 0.5]]


def test_scores_are_those_of_loops():
    query, weight, key = drawn(5, 3, 4), drawn(5, 3, seed=2), drawn(6, 4, seed=3)
    found = scored(query, weight, key)
    for t in range(5):
        wanted = oracle_index(query[t].flatten(), weight[t], list(key))
        torch.testing.assert_close(found[t], torch.stack(wanted))


def test_no_sequence_at_all_has_no_scores():
    empty = torch.zeros(0, 4, 1, 6)
    blank = torch.zeros(0, 1, 4, 1)
    extras = {QUERY: empty, WEIGHT: torch.zeros(0, 4, 1, 2)}
    call = Call(blank, Memory(Source(blank, blank)), 0, causal=True, extras=extras)
    assert index_scores(call, torch.zeros(0, 4, 3)).shape == (0, 4, 4)


def test_of_a_tie_the_later_keys_are_read():
    index = torch.tensor([[[0.0, 1.0, 0.0, 0.0, -1.0]]])
    allowed = torch.tensor([True, True, True, True, True])[None, None, None]
    assert best_keys(index, allowed, 2).tolist() == [[[[False, True, False, True, False]]]]
    assert best_keys(index, allowed, 3).tolist() == [[[[False, True, True, True, False]]]]
    hidden = torch.tensor([True, False, True, False, True])[None, None, None]
    assert best_keys(index, hidden, 1).tolist() == [[[[False, False, True, False, False]]]]
    assert best_keys(index, hidden, 4).tolist() == [[[[True, False, True, False, True]]]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 10), st.integers(0, 10**6))
def test_the_choice_is_that_of_loops(keys, count, seed):
    rng = torch.Generator().manual_seed(seed)
    index = torch.randint(-1, 2, (1, 1, keys), generator=rng).double()
    allowed = torch.rand(1, 1, 1, keys, generator=rng) < 0.7
    wanted = oracle_best(list(index[0, 0]), allowed[0, 0, 0].tolist(), count)
    best = best_keys(index, allowed, count)
    assert best[0, 0, 0].tolist() == wanted
    assert sum(wanted) == min(count, int(allowed.sum()))
    windows = listed(best, count)
    assert torch.equal(torch.zeros_like(best).scatter(-1, windows.keys, windows.allowed), best)


def test_golden_divergence():
    """Heads (1, 0, 0) and (1/2, 1/2, 0), so p = (3/4, 1/4); q = (1/2, 1/2) over what is read."""
    weights = torch.tensor([[[[1.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]]]]).double()
    index = torch.tensor([[[0.3, 0.3, 9.0]]]).double()
    read = torch.tensor([True, True, False])[None, None, None]
    wanted = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert divergence(index, weights, read).item() == pytest.approx(wanted)
    heads = weights[0, :, 0].tolist()
    assert oracle_divergence(list(index[0, 0]), heads, [True, True, False]).item() == (
        pytest.approx(wanted)
    )


def test_where_nothing_is_read_the_divergence_is_zero_and_so_is_its_gradient():
    index = drawn(1, 2, 3).requires_grad_()
    read = torch.tensor([[False] * 3, [True] * 3])[None, None]
    weights = torch.where(read, 1 / 3, 0.0).double()
    found = divergence(index, weights, read)
    assert found[0, 0] == 0
    found.sum().backward()
    assert index.grad.isfinite().all()
    assert not index.grad[0, 0].any()
    assert oracle_divergence([*drawn(3)], [[0.0] * 3], [False] * 3) == 0


def test_its_gradient_is_the_difference_of_both_distributions():
    index, read = drawn(1, 1, 4).requires_grad_(), torch.ones(1, 1, 1, 4, dtype=torch.bool)
    weights = torch.softmax(drawn(1, 2, 1, 4, seed=2), -1).requires_grad_()
    divergence(index, weights, read).sum().backward()
    wanted = torch.softmax(index, -1) - weights.mean(1)
    torch.testing.assert_close(index.grad, wanted.detach())
    assert weights.grad is None
