"""Heads: a slot is its projections, then its variant head by head, then its merge."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api.heads import Heads
from bench.api.inputs import maps_of
from bench.api.source import Source, State, leaf
from bench.conformance.below import Handed, draw_below
from bench.conformance.compare import LOOPS, expect, expect_near, gradients
from bench.conformance.place import VOCAB, WORD_WIDTH, Placed
from bench.conformance.question import cut, extras, padding

KEYS, QUERIES = 4, 5
LENGTHS = (4, 1, 3, 2, 4)
"""Keys of each row, and queries where they are the same sequence."""


class Given(NamedTuple):
    """What a slot is given: vectors that ask, a source, and what comes with both."""

    x: Tensor
    y: Tensor
    """`x` itself where a sequence asks itself."""
    mask: Tensor
    tokens: Tensor
    words: Tensor
    below: Source | None


def heads(subject: Placed) -> None:
    """Every row of a padded batch, asked in uneven calls, equals the loops over one example."""
    slot = subject.slot
    _declares_gates(slot.heads)
    rng = torch.Generator().manual_seed(61)

    def normal(*shape: int) -> Tensor:
        return torch.randn(len(LENGTHS), *shape, generator=rng, dtype=torch.float64)

    queries = KEYS if subject.own else 1 if subject.regime == "pool" else QUERIES
    x = (subject.variant.spread * normal(queries, slot.heads.dims.model_width)).requires_grad_()
    y = x if subject.own else normal(KEYS, subject.source_width).requires_grad_()
    tokens = torch.randint(1, VOCAB, (len(LENGTHS), KEYS), generator=rng)
    mask = padding(LENGTHS, KEYS)
    below = draw_below(subject, mask, tokens)
    given = Given(x, y, mask, tokens, normal(queries, WORD_WIDTH), below)
    found = slot_answers(subject, given, weights=subject.weights, split=(2, queries))
    with torch.no_grad(), subject.scored():
        # what decoding runs: nothing but the output is wanted, and only one query is there
        bare = [slot_answers(subject, given, split=(first, queries)) for first in (1, 3)]
    mine, looped = [], []
    for row in range(len(LENGTHS)):
        wanted = _by_loops(subject, given, row)
        same = found[row, : wanted.shape[0]]
        sentence = f"through the heads, row {row} differs from the loops"
        expect_near(same, wanted, LOOPS, sentence)
        for plain in bare:
            without = f"{sentence} where no weights are wanted"
            expect_near(plain[row, : wanted.shape[0]], wanted, LOOPS, without)
        mine.append(same.flatten())
        looped.append(wanted.flatten())
    maps = (*slot.key_maps.named_parameters(), *slot.query_maps.named_parameters())
    leaves = {"the queries": x, "the source": y}
    if below is not None:
        leaves |= {"the keys below": below.key, "the values below": below.value}
        leaves |= {f"{name} of the keys below": leaf(below.extras, name) for name in below.extras}
    leaves |= {**dict(slot.heads.named_parameters()), **dict(maps)}
    one, two = (gradients(torch.cat(part), tuple(leaves.values())) for part in (mine, looped))
    for name, gradient, loops in zip(leaves, one, two, strict=True):
        sentence = f"through the heads, the gradient of {name} differs from that of the loops"
        expect_near(gradient, loops, LOOPS, sentence)


def _declares_gates(heads: Heads) -> None:
    """What stands between reading and merging is declared, for probes that need a linear map."""
    rng = torch.Generator().manual_seed(67)
    dims = heads.dims
    x = torch.randn(1, QUERIES, dims.model_width, generator=rng, dtype=torch.float64)
    shape = (1, dims.heads, QUERIES, dims.value_width)
    output = torch.randn(shape, generator=rng, dtype=torch.float64)
    changed = not torch.equal(heads.gate(output, x), output)
    what = "changes" if changed else "does not change"
    sentence = f"`gate` {what} what was read, and the heads declare gates={heads.gates}"
    expect(heads.gates == changed, sentence)


def slot_answers(
    subject: Placed, given: Given, *, split: Sequence[int], weights: bool = False
) -> Tensor:
    """The slot's answers, some queries after others; a part ends where there are no more."""
    slot, (x, y, mask, tokens, words, below) = subject.slot, given
    causal = subject.regime == "causal"
    memory = None if causal else slot.prepare(y, mask, tokens)
    state: State = slot.start(memory, x)
    handed = Handed(subject, below)
    found = []
    for chunk in parts(x.shape[1], split):
        own = (x[:, chunk], mask[:, chunk], tokens[:, chunk]) if causal else None
        output, attended = slot.attend(
            x[:, chunk],
            memory,
            state,
            own=own,
            below=handed.next(chunk),
            read="expected",
            extras=extras(subject, words[:, chunk], tokens, chunk.start),
            want_weights=weights,
        )
        state = attended.state
        found.append(output)
    return torch.cat(found, 1)


def parts(count: int, split: Sequence[int]) -> list[slice]:
    """Neighboring parts of these sizes; none reaches beyond the end."""
    ends = [min(end, count) for end in accumulate(split)]
    return [slice(at, end) for at, end in pairwise((0, *ends)) if at < end]


def _by_loops(subject: Placed, given: Given, row: int) -> Tensor:
    """One example without padding: project each vector, attend head by head, merge each query."""
    slot, length = subject.slot, LENGTHS[row]
    x, y, _, tokens, words, below = given
    asked = length if subject.own else x.shape[1]
    under = None if below is None else cut(below, rows=slice(row, row + 1), keys=slice(length))
    if under is not None:
        query, key, value = slot.heads.oracle_above(x[row, :length], under)
    elif subject.own:
        query, key, value = slot.heads.oracle_own(x[row, :length])
    else:
        query = torch.stack([slot.heads.oracle_query(vector) for vector in x[row, :asked]], 1)
        states = [slot.heads.oracle_source(vector) for vector in y[row, :length]]
        key, value = (torch.stack([made[i] for made in states], 1) for i in range(2))
    source = Source(
        key=key[None],
        value=value[None],
        tokens=tokens[row : row + 1, :length],
        extras={
            name: torch.stack([one.oracle(state) for state in y[row, :length]], 1)[None]
            for name, one in maps_of(slot.key_maps).items()
        },
    )
    if under is not None and slot.keeps_nothing:
        source = replace(source, extras=under.extras)
    told = extras(subject, words[row : row + 1, :asked], source.tokens)
    one = {name: given[0] for name, given in told.items()}
    for name, projected in maps_of(slot.query_maps).items():
        one[name] = torch.stack([projected.oracle(state) for state in x[row, :asked]])
    output, _ = subject.variant.answer_by_loops(query, source, "expected", row=row, extras=one)
    gated = [slot.heads.oracle_gate(output[:, t], x[row, t]) for t in range(asked)]
    return torch.stack([slot.heads.oracle_merge(head) for head in gated])
