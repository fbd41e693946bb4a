"""Bytes that are counted are those that a state keeps alive."""

import torch

import variants
from bench.api.errors import Refused
from bench.api.heads import HEADS
from bench.api.kept_bytes import state_bytes
from bench.api.mask import MASKS
from bench.api.registry import registrations
from bench.api.room import LEAST, tensors_of
from bench.api.variant import MECHANISMS

variants.load_all()
DIM, PROMPT = 16, 160
SELECTORS = [
    *registrations(MECHANISMS),
    "path[convolution=3]",
    *(f"scaled_dot[mask={name}]" for name in registrations(MASKS)),
    *(
        f"{name}[head={head}]"
        for name in ("scaled_dot", "mamba2_ssd")
        for head in registrations(HEADS)
    ),
]
QUERIES = 3 / 2
"""Keys and values of the first call may stand beside its queries in one tensor, until the next call
writes them to a room, which is larger by less."""


def after_prompt(selector):
    torch.manual_seed(0)
    slot = variants.build(selector, dim=DIM, regime="causal", attention_only=True).eval()
    x = torch.randn(1, PROMPT, DIM)
    with torch.no_grad():
        return slot.answer_all(x, x, want_weights=False)[1].state


def kept_alive(state):
    """Storages of a state: the bytes of each, those of its tensors, and of a place in them."""
    source = None if state.cache is None else state.cache.source
    cached = {} if source is None else {"key": source.key, "value": source.value, **source.extras}
    parts = {} if state.cache is None else state.cache.parts
    trees = {"carried": state.carried, "heads": state.heads, "cached": cached, "parts": parts}
    found = {}
    for one in tensors_of(trees):
        storage = one.untyped_storage()
        _, counted, place = found.get(storage.data_ptr(), (0, 0, 0))
        places = one.shape[1 if one.dim() == 2 else -2] if one.dim() > 1 else 0
        of_place = one.nbytes // places if places else 0
        found[storage.data_ptr()] = storage.nbytes(), counted + one.nbytes, place + of_place
    return found.values()


def test_a_state_keeps_no_more_of_a_prompt_alive_than_is_counted_and_a_room():
    heavy, seen = [], 0
    for selector in SELECTORS:
        try:
            state = after_prompt(selector)
        except Refused:  # reads what comes later, or another layer
            continue
        seen += 1
        assert state_bytes([state]) > 0
        for whole, counted, place in kept_alive(state):
            if whole > QUERIES * counted + LEAST * place:
                heavy.append((selector, whole, counted))
    assert seen > 60
    assert not heavy
