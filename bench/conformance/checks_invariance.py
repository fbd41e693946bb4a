"""What must not matter: other rows, how queries are split, the order of keys."""

from dataclasses import replace

import torch

from bench.api.source import tree_map
from bench.conformance.certificate import CheckSkipped
from bench.conformance.compare import (
    EXACT,
    LOOPS,
    expect,
    expect_near,
    expect_same,
    expect_same_tree,
    first_in_parts,
)
from bench.conformance.place import KEYS, ROWS, Placed
from bench.conformance.question import (
    DRAWN,
    LENGTHS,
    Question,
    ReadMode,
    ask,
    every_mode,
    modes,
    padding,
)
from bench.conformance.walkthrough import Walkthrough, answer


def batch_invariance(subject: Placed) -> None:
    """Rows do not see each other, and nothing is remembered outside of the state."""
    question = ask(subject, lengths=LENGTHS)
    order = torch.tensor([2, 0, 1])
    for mode in modes(subject):
        whole = answer(subject, question, mode)
        again = answer(subject, question, mode)
        sentence = "asking twice from a fresh state gives two answers"
        expect_same(whole.output, again.output, mode, sentence)
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
        sentence = "two sequences answered in turns disturb each other"
        expect_same(path.joined().output, output, mode, sentence)


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
