"""The contents and the length of padding must not matter."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.source import Memory, Source, tree_map
from bench.conformance.checks_heads_padding import behind_padding
from bench.conformance.compare import EXACT, LOOPS, expect, expect_near, gradients
from bench.conformance.place import KEYS, ROWS, VOCAB, Placed
from bench.conformance.question import DRAWN, LENGTHS, Question, ReadMode, ask, cut, modes, one_row
from bench.conformance.walkthrough import Walkthrough, answer

HUGE = 1e30
"""Finite, so that an exact weight of zero hides it; its square still fits float64."""
POISON = 1e3
"""The same for gates and rates, whose exponentials are to be finite."""
EXTRA = 3


def padding_invariance(subject: Placed) -> None:
    """A padded batch equals its rows one by one, whatever its padding contains."""
    question = ask(subject, lengths=LENGTHS)
    for mode in modes(subject):
        whole = answer(subject, question, mode).output
        _hides_content(subject, question, mode, whole)
        _hides_length(subject, question, mode, whole)
        if mode.read not in DRAWN:  # noise is addressed by the row
            _equals_rows(subject, question, mode, whole)
            if subject.regime == "causal":
                leaves_the_state(subject, question, mode, LENGTHS)
    if subject.regime == "causal":
        behind_padding(subject)


def leaves_the_state(
    subject: Placed, question: Question, mode: ReadMode, lengths: Sequence[int]
) -> None:
    """Ask one more token behind the padding of each row, where what is carried has met it.

    Where keys are kept, padding takes places too. An answer may then depend on how much padding
    there is, but not on what it holds. The same holds where places are counted. Elsewhere the row
    without its padding answers alike, whether its token stands where it stood or moves up; where
    positions turn queries and keys, only where it stood.

    Args:
        subject: Who is asked, under causality.
        question: A padded batch.
        mode: How it is read, without draws.
        lengths: Keys of each row.
    """
    mask = question.source.key_mask().clone()
    mask[:, -1] = True
    padded = replace(question, source=replace(question.source, mask=mask))
    last = question.source.num_keys - 1
    whole = _answer_behind(subject, padded, mode, last, place=last)
    poisoned = _answer_behind(subject, _poisoned(padded), mode, last, place=last)
    for row in range(len(lengths)):
        sentence = f"{mode}: padding changes what row {row} answers to a token behind it"
        expect_near(poisoned[row], whole[row], EXACT, sentence)
    if subject.variant.counts_places or subject.variant.remembers_keys:
        return
    turned = any(position.turns for position in subject.variant.positions)
    for row, length in enumerate(lengths):
        count = min(length, last)
        tokens = _tokens_of(question, row, [*range(count), last])
        for place in (last,) if turned else sorted({count, last}):
            alone = _answer_behind(subject, tokens, mode, count, place=place)
            sentence = (
                f"{mode}: row {row} answers to a token behind its padding otherwise than alone, "
                f"where {count} tokens stand before it and its place is {place}"
            )
            expect_near(whole[row], alone[0], LOOPS, sentence)


def _answer_behind(
    subject: Placed, question: Question, mode: ReadMode, count: int, *, place: int
) -> Float[Tensor, "B Hq 1 Ev"]:
    """The answer to the token behind some others, at a place that may leave a gap."""
    walk = Walkthrough(subject, question, mode)
    if count:
        walk.step(count)
    walk.state = replace(walk.state, offset=place)
    return walk.step(1).output


def _tokens_of(question: Question, row: int, places: list[int]) -> Question:
    """Some tokens of one row, as a question without padding."""
    one = question.rows(slice(row, row + 1))
    source = one.source
    assert source.tokens is not None
    kept = replace(
        source,
        key=source.key[:, :, places],
        value=source.value[:, :, places],
        mask=None,
        tokens=source.tokens[:, places],
        extras=tree_map(lambda leaf: leaf[:, :, places], source.extras),
    )
    inputs = {name: found[:, places] for name, found in one.inputs.items()}
    words = one.words[:, places]
    return replace(one, query=one.query[:, :, places], words=words, inputs=inputs, source=kept)


def _real(subject: Placed, row: int) -> int:
    """Queries of a row that are not padding themselves."""
    return LENGTHS[row] if subject.own else 10**9


def _of_keys(name: str) -> bool:
    """Whether a leaf of a question belongs to its keys."""
    return name in ("key", "value") or name.endswith("of the keys")


def _hides_content(
    subject: Placed, question: Question, mode: ReadMode, whole: torch.Tensor
) -> None:
    hidden = ~question.source.key_mask()
    if subject.own:  # the queries of padding are padding, too
        other = _poisoned(question)
    else:
        other = replace(question, source=_with_poison(question.source))
    fresh = other.fresh()
    of_keys = {name: one for name, one in fresh.leaves().items() if _of_keys(name)}
    output = answer(subject, fresh, mode).output
    for row in range(ROWS):
        real = _real(subject, row)
        sentence = f"{mode}: padded keys of 1e30 change row {row}"
        expect_near(output[row, :, :real], whole[row, :, :real], EXACT, sentence)
        found = gradients(output[row, :, :real], tuple(of_keys.values()))
        for name, gradient in zip(of_keys, found, strict=True):
            reached = gradient.transpose(1, 2)[hidden]
            sentence = f"{mode}: a gradient reaches a padded {name} from row {row}"
            expect(not reached.any(), sentence)


def _poisoned(question: Question) -> Question:
    """The same with other content in the padding of a sequence that asks itself."""
    hidden = ~question.source.key_mask()

    def other(one: Tensor) -> Tensor:
        """Numbers of queries, `B L ...`."""
        return torch.where(hidden.view(*hidden.shape, *[1] * (one.dim() - 2)), POISON, one)

    return replace(
        question,
        query=other(question.query.transpose(1, 2)).transpose(1, 2),
        words=other(question.words),
        inputs={name: other(one) for name, one in question.inputs.items()},
        source=_with_poison(question.source),
    )


def _with_poison(source: Source) -> Source:
    """The same with other content in its padding."""
    hidden = ~source.key_mask()
    assert source.tokens is not None
    return replace(
        source,
        key=torch.where(hidden[:, None, :, None], HUGE, source.key),
        value=torch.where(hidden[:, None, :, None], -HUGE, source.value),
        extras=tree_map(
            lambda one: torch.where(hidden[:, None, :, None], POISON, one), source.extras
        ),
        tokens=torch.where(hidden, (source.tokens + 1) % VOCAB, source.tokens),
    )


def _hides_length(subject: Placed, question: Question, mode: ReadMode, whole: torch.Tensor) -> None:
    wider = ask(subject, seed=9, keys=KEYS + EXTRA, lengths=LENGTHS)
    assert wider.source.tokens is not None
    assert question.source.tokens is not None
    beyond = cut(wider.source, keys=slice(KEYS, None))
    source = replace(
        Memory(question.source).extend(Memory(beyond)).source,
        mask=wider.source.mask,
    )
    query, words, inputs = question.query, question.words, question.inputs
    if subject.own:
        query = torch.cat((query, wider.query[:, :, KEYS:]), 2)
        words = torch.cat((words, wider.words[:, KEYS:]), 1)
        inputs = {n: torch.cat((one, wider.inputs[n][:, KEYS:]), 1) for n, one in inputs.items()}
    output = answer(
        subject, replace(question, query=query, source=source, words=words, inputs=inputs), mode
    ).output
    for row in range(ROWS):
        real = min(_real(subject, row), whole.shape[2])
        sentence = f"{mode}: {EXTRA} more padded keys change row {row}"
        expect_near(output[row, :, :real], whole[row, :, :real], EXACT, sentence)


def _equals_rows(subject: Placed, question: Question, mode: ReadMode, whole: torch.Tensor) -> None:
    for row, length in enumerate(LENGTHS):
        alone = one_row(subject, question, row, length)
        output = answer(subject, alone, mode).output[0]
        real = output.shape[1]
        sentence = f"{mode}: row {row} of a padded batch differs from the same row alone"
        expect_near(whole[row, :, :real], output, EXACT, sentence)
