import pytest
import torch

from bench.timing.largest import _search, largest_length
from bench.timing.reason import Reason
from bench.timing.shape import AttendShape

SPENT = Reason("out_of_memory", "64 GiB more.")


def searched(holds, *, limit=10**6, seconds=1e9, took=1.0):
    seen = []

    def call(length):
        seen.append(length)
        return took if length <= holds else SPENT

    return _search("dot", "forward", 16, call, limit, seconds), seen


@pytest.mark.parametrize(("holds", "length"), [(16, 16), (24, 24), (100, 96), (130, 128), (8, 0)])
def test_lengths_double_until_memory_ends_and_half_a_step_is_tried(holds, length):
    found, _ = searched(holds)
    assert (found.length, found.ended, found.detail) == (length, *SPENT[:2])


def test_the_search_ends_at_its_limit_and_before_a_call_that_takes_too_long():
    found, seen = searched(10**9, limit=100)
    assert (found.length, found.ended, seen) == (64, "limit", [16, 32, 64])
    found, seen = searched(10**9, seconds=5.5, took=1.0)
    assert (found.length, found.ended, seen) == (32, "time", [16, 32])


def test_what_fails_otherwise_says_why():
    def call(length):
        return Reason("refused", "it looks ahead") if length > 16 else 1.0

    found = _search("dot", "forward", 16, call, 10**6, 1e9)
    assert (found.length, found.ended, found.detail) == (16, "refused", "it looks ahead")


@pytest.mark.parametrize("workload", ["forward", "forward_backward"])
def test_a_variant_is_called_at_every_length(workload):
    shape = AttendShape(batch=1, heads=1, length=4, width=4)
    found = largest_length(
        "scaled_dot", workload, shape, torch.device("cpu"), torch.float32, limit=16, seconds=1e9
    )
    assert (found.length, found.ended) == (16, "limit")
