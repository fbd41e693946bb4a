"""What must not matter: padding, other rows, how queries are split, the order of keys."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.source import Memory, Source, tree_map
from bench.conformance.certificate import CheckSkipped
from bench.conformance.compare import (
    EXACT,
    LOOPS,
    expect,
    expect_near,
    expect_same_tree,
    first_in_parts,
    gradients,
)
from bench.conformance.place import KEYS, ROWS, VOCAB, Placed
from bench.conformance.question import (
    DRAWN,
    LENGTHS,
    Question,
    ReadMode,
    Walkthrough,
    answer,
    ask,
    cut,
    every_mode,
    modes,
    padding,
)

HUGE = 1e30
"""Finite, so that an exact weight of zero hides it; its square still fits float64."""
POISON = 1e3
"""The same for gates and rates, whose exponentials are to be finite."""
EXTRA = 3


def padding_invariance(subject: Placed) -> None:
    """A padded batch equals its rows one by one; what stands in padding does not matter."""
    question = ask(subject, lengths=LENGTHS)
    for mode in modes(subject):
        whole = answer(subject, question, mode).output
        _hides_content(subject, question, mode, whole)
        _hides_length(subject, question, mode, whole)
        if mode.read not in DRAWN:  # noise is addressed by the row
            _equals_rows(subject, question, mode, whole)
            if subject.regime == "causal" and not subject.variant.remembers_keys:
                _leaves_the_state(subject, question, mode)


def _leaves_the_state(subject: Placed, question: Question, mode: ReadMode) -> None:
    """Ask one more token behind the padding of each row, where a recurrence has read it."""
    mask = question.source.key_mask().clone()
    mask[:, -1] = True
    source = replace(question.source, mask=mask)
    last = KEYS - 1
    whole = _answer_behind(subject, replace(question, source=source), mode, last)
    poisoned = _answer_behind(subject, replace(question, source=_poisoned(source)), mode, last)
    for row in range(ROWS):
        sentence = f"{mode}: padding changes what row {row} answers to a token behind it"
        expect_near(poisoned[row], whole[row], EXACT, sentence)
    if subject.variant.counts_places:
        return
    for row, length in enumerate(LENGTHS):
        places = [*range(min(length, last)), last]
        alone = _answer_behind(subject, _tokens_of(question, row, places), mode, len(places) - 1)
        sentence = f"{mode}: row {row} answers to a token behind its padding otherwise than alone"
        expect_near(whole[row], alone[0], LOOPS, sentence)


def _answer_behind(
    subject: Placed, question: Question, mode: ReadMode, count: int
) -> Float[Tensor, "B Hq 1 Ev"]:
    """The answer to the last token; its place is the last one, however many came before."""
    walk = Walkthrough(subject, question, mode)
    if count:
        walk.step(count)
    walk.state = replace(walk.state, offset=KEYS - 1)
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
    fresh = question.but(question.query, _poisoned(question.source)).fresh()
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


def _poisoned(source: Source) -> Source:
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


def one_row(subject: Placed, question: Question, row: int, length: int) -> Question:
    """One example of a batch without its padding."""
    source = cut(question.source, rows=slice(row, row + 1), keys=slice(0, length))
    query = question.query[row : row + 1]
    if subject.own:
        query = query[:, :, :length]
    return question.rows(slice(row, row + 1)).but(query, replace(source, mask=None))


def batch_invariance(subject: Placed) -> None:
    """Rows do not see each other, and nothing is remembered outside of the state."""
    question = ask(subject, lengths=LENGTHS)
    order = torch.tensor([2, 0, 1])
    for mode in modes(subject):
        whole = answer(subject, question, mode)
        again = answer(subject, question, mode)
        same = torch.equal(whole.output, again.output)
        expect(same, f"{mode}: asking twice from a fresh state gives two answers")
        _interleaved(subject, question, mode)
        if mode.read not in DRAWN:  # noise is addressed by the row
            turned = answer(subject, question.rows(order), mode)
            sentence = f"{mode}: the order of rows in the batch matters"
            expect_near(turned.output, whole.output[order], EXACT, sentence)
            _reordered(subject, question, mode, order)


def _interleaved(subject: Placed, question: Question, mode: ReadMode) -> None:
    other = ask(subject, seed=11, lengths=LENGTHS)
    length = question.query.shape[2]
    half = (length + 1) // 2
    split = [half, length - half] if length > 1 else [1]
    wanted = [answer(subject, q, mode, split=split).output for q in (question, other)]
    paths = [Walkthrough(subject, q, mode) for q in (question, other)]
    for count in split:
        for path in paths:
            path.step(count)
    for path, output in zip(paths, wanted, strict=True):
        same = torch.equal(path.joined().output, output)
        expect(same, f"{mode}: two sequences answered in turns disturb each other")


def _reordered(subject: Placed, question: Question, mode: ReadMode, order: torch.Tensor) -> None:
    length = question.query.shape[2]
    if length == 1:
        return
    straight = Walkthrough(subject, question, mode)
    turned = Walkthrough(subject, question, mode)
    for path in (straight, turned):
        path.step(length // 2)
    turned.reorder(order)
    for path in (straight, turned):
        path.step(length - length // 2)
    wanted = straight.found[-1].output[order]
    sentence = f"{mode}: rows put into another order between two calls, as a beam search does"
    expect_near(turned.found[-1].output, wanted, EXACT, sentence)


def splits(subject: Placed) -> None:
    """All queries at once, one by one, and in uneven parts give the same answers."""
    if subject.regime == "pool":
        raise CheckSkipped("pooling asks one query, which cannot be split")
    for lengths in (None, LENGTHS):
        question = ask(subject, lengths=lengths)
        length = question.query.shape[2]
        uneven, one_by_one = [2, 1, length - 3], [1] * length
        for mode in every_mode(subject):
            whole = answer(subject, question, mode)
            # where nothing is padded, one by one is what the padded batch shows already
            for split in (uneven,) if lengths is None else (uneven, one_by_one):
                with torch.no_grad():  # caches are written in place where no gradient is wanted
                    parts = answer(subject, question, mode, split=split)
                sentence = f"{mode}: queries in parts of {split} differ from all at once"
                at = first_in_parts(split)
                expect_near(parts.output, whole.output, LOOPS, sentence, at)
                if whole.weights is not None and parts.weights is not None:
                    weighed = f"{sentence}, in the weights"
                    expect_near(parts.weights, whole.weights, LOOPS, weighed, at)
                expect_same_tree(parts.terms, whole.terms, LOOPS, f"{sentence}, in the terms")
                carried = (parts.state.carried, whole.state.carried)
                expect_same_tree(*carried, LOOPS, f"{sentence}, in the state")
                expect(parts.state.offset == length, f"{mode}: queries are counted wrongly")
            if subject.regime == "causal":
                _continued_twice(subject, question, mode, whole.output)
    _embeds_in_parts(subject)


def _continued_twice(
    subject: Placed, question: Question, mode: ReadMode, whole: torch.Tensor
) -> None:
    """A state stays what it was when somebody else continues from it, as in a search."""
    path = Walkthrough(subject, question, mode)
    other = Walkthrough(subject, ask(subject, seed=19), mode)
    with torch.no_grad():
        path.step(1)
        path.step(1)
        other.continue_from(path)
        path.step(1)
        other.step(1)
        path.step(whole.shape[2] - path.at)
    sentence = f"{mode}: another path that continues from the same state disturbs this one"
    expect_near(path.joined().output, whole, LOOPS, sentence)


def _embeds_in_parts(subject: Placed) -> None:
    rng = torch.Generator().manual_seed(13)
    width = subject.slot.heads.dims.model_width
    x = torch.randn(ROWS, KEYS, width, generator=rng, dtype=torch.float64)
    whole = subject.variant.embed(x, 0)
    for at in (1, 3):
        late = subject.variant.embed(x[:, at:], at)
        expect_near(late, whole[:, at:], LOOPS, f"embedding from place {at} on differs")


def permutation_law(subject: Placed) -> None:
    """Keys in another order, with their values and mask, give the same output."""
    if subject.regime == "causal":
        raise CheckSkipped("under causality the order of keys is their place in time")
    rng = torch.Generator().manual_seed(15)
    order = torch.randperm(KEYS, generator=rng)
    for lengths in (None, LENGTHS):
        mask = None if lengths is None else padding(lengths, KEYS)
        question = ask(subject)
        source = replace(question.source, mask=mask)
        assert source.tokens is not None
        turned = replace(
            source,
            key=source.key[:, :, order],
            value=source.value[:, :, order],
            mask=None if mask is None else mask[:, order],
            tokens=source.tokens[:, order],
            extras=tree_map(lambda one: one[:, :, order], source.extras),
        )
        for mode in modes(subject, "expected", "hard"):
            one = answer(subject, question.but(question.query, source), mode)
            two = answer(subject, question.but(question.query, turned), mode)
            sentence = f"{mode}: the order of keys matters"
            expect_near(two.output, one.output, LOOPS, sentence)
            if one.weights is not None and two.weights is not None:
                wanted = one.weights[..., order]
                expect_near(two.weights, wanted, LOOPS, f"{sentence}, in the weights")
