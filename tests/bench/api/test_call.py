"""Which keys a call may see."""

import torch

from bench.api.call import Call
from bench.api.source import Memory, Source


def call(queries, keys, offset, *, mask=None, **memory):
    key = torch.zeros(2, 1, keys, 3)
    source = Source(key=key, value=key, mask=mask)
    return Call(torch.zeros(2, 1, queries, 3), Memory(source, **memory), offset, causal=True)


def seen(one):
    return None if one.allowed is None else one.allowed[0, 0].tolist()


def test_a_query_behind_all_keys_has_no_mask():
    assert call(1, 4, 3).allowed is None
    assert call(1, 4, 5).allowed is None
    assert call(1, 3, 5, sinks=1, forgotten=3).allowed is None


def test_a_single_query_before_later_keys_does_not_see_them():
    assert seen(call(1, 4, 1)) == [[True, True, False, False]]
    # keys 0, 4 and 5 are left
    assert seen(call(1, 3, 4, sinks=1, forgotten=3)) == [[True, True, False]]


def test_several_queries_have_a_mask():
    assert seen(call(2, 3, 1)) == [[True, True, False], [True, True, True]]


def test_padding_stays_hidden_and_a_mask_can_be_written_out():
    mask = torch.tensor([[True, False], [True, True]])
    padded = call(1, 2, 1, mask=mask)
    assert torch.equal(padded.allowed, mask[:, None, None])
    assert torch.equal(padded.written_allowed, mask[:, None, None])
    assert call(1, 2, 1).written_allowed.shape == (2, 1, 1, 2)
    assert call(1, 2, 1).written_allowed.all()
