"""No future reaches a query: gradients are exactly zero, and nothing changes bit for bit."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from bench.api.source import tree_map
from bench.conformance.below import Handed, draw_below
from bench.conformance.compare import expect, gradients
from bench.conformance.place import KEYS, ROWS, VOCAB, WORD_WIDTH, Placed
from bench.conformance.question import LENGTHS, WORDS, Question, ReadMode, ask, extras, modes
from bench.conformance.walkthrough import answer

CACHED = (4, KEYS - 4)
"""A first call that fills the cache, then fewer queries than keys."""
AT = range(KEYS - 1)
"""Queries that are looked at: every one that has a future, so that none is always the last of its
block, however long blocks are."""
DRAWS = 20
"""Questions in one of which a query must see its own value; sparse weights pass it by in some."""


def causality(subject: Placed) -> None:
    """Keys, values and queries after t do not reach query t; the value at t does.

    Where queries read earlier keys alone, key and value at t do not either, and those before do.
    """
    for lengths in (None, LENGTHS):
        question = ask(subject, lengths=lengths)
        for mode in modes(subject):
            for split in (None, CACHED):
                place = _place(mode, lengths, split)
                _no_gradient(subject, question, mode, split, place)
                _no_change(subject, question, mode, split, place)
    _through_heads(subject)


def _last_read(subject: Placed, t: int) -> int:
    """The last key that query t reads; -1 where there is none."""
    return t - 1 if "strictly_past" in subject.gives else t


def _place(mode: ReadMode, lengths: Sequence[int] | None, split: Sequence[int] | None) -> str:
    padded = ", with padded keys" if lengths else ""
    cached = f", queries in calls of {CACHED}" if split else ""
    return f"{mode}{padded}{cached}"


def _no_gradient(
    subject: Placed, question: Question, mode: ReadMode, split: Sequence[int] | None, place: str
) -> None:
    fresh = question.fresh()
    output = answer(subject, fresh, mode, split=split).output
    for t in AT:
        leaves = fresh.leaves()
        found = dict(zip(leaves, gradients(output[:, :, t], tuple(leaves.values())), strict=True))
        last = _last_read(subject, t)
        for name, gradient in found.items():
            first = last + 1 if name in ("key", "value") else t + 1
            late = _by_place(name, gradient)[:, :, first:].abs().amax((0, 1, 3))
            if bool((late != 0).any()):
                s = first + int(late.argmax())
                worst = f"gradient {float(late.max()):.2g}"
                expect(False, f"query {t} depends on the {name} at {s} ({worst}; {place})")
        if mode.read == "expected" and last >= 0:
            near = bool(found["value"][:, :, last].any()) or _sees_last(
                subject, question, mode, split, t
            )
            which = "its own value" if last == t else "the value before it"
            expect(near, f"query {t} does not see {which} ({place})")


def _by_place(name: str, gradient: torch.Tensor) -> torch.Tensor:
    """A gradient with its places third, where inputs of queries have heads and words have none."""
    if name == WORDS:
        return gradient[:, None]
    return gradient.transpose(1, 2) if name.endswith("of the queries") else gradient


def _sees_last(
    subject: Placed, question: Question, mode: ReadMode, split: Sequence[int] | None, t: int
) -> bool:
    """Whether the last value that query t reads reaches it in some other draw."""
    lengths = None if question.source.mask is None else LENGTHS
    for seed in range(1, DRAWS):
        fresh = ask(subject, seed=seed, lengths=lengths).fresh()
        output = answer(subject, fresh, mode, split=split).output
        (found,) = gradients(output[:, :, t], (fresh.source.value,))
        if bool(found[:, :, _last_read(subject, t)].any()):
            return True
    return False


def _no_change(
    subject: Placed, question: Question, mode: ReadMode, split: Sequence[int] | None, place: str
) -> None:
    before = answer(subject, question, mode, split=split).output
    for t in AT:
        source = question.source
        assert source.tokens is not None
        key, value, tokens = source.key.clone(), source.value.clone(), source.tokens.clone()
        first = _last_read(subject, t) + 1
        key[:, :, first:] += 3.0
        value[:, :, first:] -= 2.0
        tokens[:, first:] = (tokens[:, first:] + 1) % VOCAB
        # a gate at t may act on what is read at t, whether or not its own key is
        extras = tree_map(partial(_later, t), source.extras)
        other = replace(source, key=key, value=value, tokens=tokens, extras=extras)
        after = answer(subject, question.but(question.query, other), mode, split=split).output
        same = torch.equal(after[:, :, : t + 1], before[:, :, : t + 1])
        expect(same, f"changing keys after {first - 1} changes the queries up to {t} ({place})")


def _later(t: int, one: torch.Tensor) -> torch.Tensor:
    """Something of each key, changed after t."""
    changed = one.clone()
    changed[:, :, t + 1 :] += 1.0
    return changed


def _through_heads(subject: Placed) -> None:
    # a query that reads one earlier key alone has nothing to choose, so its own place is lost
    unseen = {t for t in AT if (last := _last_read(subject, t)) == t or last > 0}
    for seed in range(5, 5 + DRAWS):
        unseen -= _own_places(subject, seed)
        if not unseen:
            return
    t = min(unseen)
    expect(False, f"through the heads, output {t} does not depend on place {t}")


def _own_places(subject: Placed, seed: int) -> set[int]:
    """Places that reach their own outputs in one draw; none reaches an earlier one."""
    rng = torch.Generator().manual_seed(seed)
    width = subject.slot.heads.dims.model_width
    x = torch.randn(ROWS, KEYS, width, generator=rng, dtype=torch.float64)
    x = (subject.variant.spread * x).requires_grad_()
    tokens = torch.randint(1, VOCAB, (ROWS, KEYS), generator=rng)
    words = torch.randn(ROWS, KEYS, WORD_WIDTH, generator=rng, dtype=torch.float64)
    state = subject.slot.start(None, x)
    below = draw_below(subject, None, tokens)
    output, _ = subject.slot.attend(
        x,
        None,
        state,
        own=(x, None, tokens),
        below=Handed(subject, below).next(slice(None)),
        extras=extras(subject, words, tokens),
        read="expected",
        want_weights=subject.weights,
    )
    # a place is what stands there here and in the layer below
    leaves = (x,) if below is None else (x, below.key, below.value)
    found = set()
    for t in AT:
        ours, *theirs = gradients(output[:, t], leaves)
        places = [ours, *(one.transpose(1, 2) for one in theirs)]
        late = any(bool(one[:, t + 1 :].any()) for one in places)
        expect(not late, f"through the heads, output {t} depends on its future")
        if any(bool(one[:, t].any()) for one in places):
            found.add(t)
    return found
