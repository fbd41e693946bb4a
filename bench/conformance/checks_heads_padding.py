"""Heads: what they remember of earlier states is not that of padding."""

from dataclasses import replace
from operator import itemgetter

import torch
from torch import Tensor

from bench.api.source import Source, Tree, tree_map
from bench.conformance.below import draw_below
from bench.conformance.checks_heads import KEYS, LENGTHS, Given, parts, slot_answers
from bench.conformance.compare import EXACT, LOOPS, expect_near
from bench.conformance.place import VOCAB, WORD_WIDTH, Placed
from bench.conformance.question import padding

CALLS = (2, 2, 1)
"""Queries of each call: in the second one some rows are padding alone, the last is behind it."""


def behind_padding(subject: Placed) -> None:
    """Ask a slot one more token behind the padding of a prompt, whatever the padding holds.

    Heads that remember earlier states go on as if it were not there.
    """
    given = _prompt(subject)
    with torch.no_grad():
        whole = slot_answers(subject, given, split=CALLS)
        poisoned = slot_answers(subject, _with_other_padding(given), split=CALLS)
        for row, real in enumerate(given.mask):
            sentence = f"through the heads, what padding holds changes what row {row} answers"
            expect_near(poisoned[row, real], whole[row, real], EXACT, sentence)
        past = subject.slot.start(None, given.x).heads
        if past and subject.slot.link is None:
            _goes_on_without_padding(subject, given, past)


def _prompt(subject: Placed) -> Given:
    """Prompts with padding behind them, and one more token of each row."""
    rng = torch.Generator().manual_seed(67)
    rows = len(LENGTHS)

    def normal(width: int) -> Tensor:
        return torch.randn(rows, KEYS + 1, width, generator=rng, dtype=torch.float64)

    x = subject.variant.spread * normal(subject.slot.heads.dims.model_width)
    mask = torch.cat((padding(LENGTHS, KEYS), torch.ones(rows, 1, dtype=torch.bool)), 1)
    tokens = torch.randint(1, VOCAB, mask.shape, generator=rng)
    return Given(x, x, mask, tokens, normal(WORD_WIDTH), draw_below(subject, mask, tokens))


def _with_other_padding(given: Given) -> Given:
    hidden = ~given.mask
    x = _other(given.x, hidden[..., None])
    return given._replace(
        x=x,
        y=x,
        tokens=torch.where(hidden, (given.tokens + 1) % VOCAB, given.tokens),
        words=_other(given.words, hidden[..., None]),
        below=None if given.below is None else _below(given.below, hidden[:, None, :, None]),
    )


def _below(below: Source, hidden: Tensor) -> Source:
    """What a layer below hands on, with other padding."""
    key, value = _other(below.key, hidden), _other(below.value, hidden)
    extras = tree_map(lambda leaf: _other(leaf, hidden), below.extras)
    return replace(below, key=key, value=value, extras=extras)


def _other(x: Tensor, hidden: Tensor) -> Tensor:
    """Other numbers where it is padding, none of them large: gates are exponentials of them."""
    return torch.where(hidden, 3 * x + 1, x)


def _goes_on_without_padding(subject: Placed, given: Given, past: Tree) -> None:
    """Query, key and value behind the padding are those of the row without it."""
    heads, start = subject.slot.heads, past
    x, tokens = given.x, given.tokens
    for part in parts(KEYS + 1, CALLS):
        query, source, past = heads.own(x[:, part], given.mask[:, part], tokens[:, part], past)
    for row, real in enumerate(given.mask):
        one = slice(row, row + 1)
        before = tree_map(itemgetter(one), start)
        wanted, alone, _ = heads.own(x[one, real], None, tokens[one, real], before)
        made = {"query": (query, wanted), "key": (source.key, alone.key)}
        made["value"] = (source.value, alone.value)
        for name, (found, same) in made.items():
            sentence = f"the {name} behind the padding of row {row} differs from that without it"
            expect_near(found[row, :, -1], same[0, :, -1], LOOPS, sentence)
