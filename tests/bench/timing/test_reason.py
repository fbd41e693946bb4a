import gc
import weakref

import pytest
import torch

from bench.api.errors import Refused
from bench.timing import reason
from bench.timing.reason import Reason, attempt


def test_a_call_that_works_gives_what_it_gives():
    assert attempt(lambda: 3) == 3


def test_a_refusal_is_a_reason_and_an_interrupt_is_none():
    def refuses():
        raise Refused("a bridge too far")

    def interrupted():
        raise KeyboardInterrupt

    assert attempt(refuses) == Reason("refused", "a bridge too far")
    with pytest.raises(KeyboardInterrupt):
        attempt(interrupted)


def test_what_filled_the_memory_is_gone_when_the_memory_is_handed_back(monkeypatch):
    held = []

    def fills_the_memory():
        large = torch.zeros(1000)
        held.append(weakref.ref(large))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    seen = []
    monkeypatch.setattr(reason, "release_memory", lambda: seen.append(held[0]()))
    gc.disable()
    try:
        found = attempt(fills_the_memory)
    finally:
        gc.enable()
    assert found.status == "out_of_memory"
    assert seen == [None]
