"""What outputs and losses see of a run: the mean of heads, the share of the furthest slot."""

import pytest
import torch

from bench.api.call import Attended
from bench.api.errors import Refused
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace

ROWS, STEPS, KEYS = 2, 3, 5
BLANK = torch.zeros(ROWS, STEPS, 0)


def trace_of(*attended):
    keys = torch.zeros(ROWS, 1, KEYS, 2)
    mask = torch.tensor([[True] * 5, [True] * 4 + [False]])
    memories = (Memory(Source(keys, keys, mask)),) * len(attended)
    return Trace(BLANK, BLANK, BLANK, attended, memories)


def answered(weights=None, touched=None):
    terms = {} if touched is None else {"touched": torch.tensor(touched)}
    return Attended(torch.zeros(ROWS, 2, STEPS, 2), weights, State(), terms)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_weights_are_the_mean_of_the_heads(heads):
    rng = torch.Generator().manual_seed(heads)
    weights = torch.rand(ROWS, heads, STEPS, KEYS, generator=rng)
    found = trace_of(answered(weights)).weights
    torch.testing.assert_close(found, sum(weights.unbind(1)) / heads)


def test_without_weights_they_are_refused():
    with pytest.raises(Refused, match="needs weights"):
        _ = trace_of(answered()).weights


def test_the_share_is_that_of_the_slot_that_read_most():
    near = answered(touched=[[1.0, 2.0, 5.0], [1.0, 1.0, 1.0]])
    far = answered(touched=[[2.0, 2.0, 4.0], [4.0, 2.0, 3.0]])
    found = trace_of(near, far, answered()).read_share
    torch.testing.assert_close(found, torch.tensor([[0.4, 0.4, 1.0], [1.0, 0.5, 0.75]]))


def test_no_share_where_no_slot_says_how_far_it_has_read():
    assert trace_of(answered()).read_share is None
