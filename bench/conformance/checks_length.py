"""Real lengths: longer than every block, chunk and window that the code has.

The other checks ask a few queries, which fit into one block of the fast code. Here a sequence is
long enough that chunks are carried over, windows are copied out and blocks have a remainder.
"""

import torch

from bench.api.chain import Chain
from bench.conformance.checks_numeric import copied
from bench.conformance.checks_oracle import loops
from bench.conformance.checks_padding import leaves_the_state
from bench.conformance.compare import (
    LOOPS,
    expect,
    expect_near,
    first_in_parts,
    gradients,
    greatest_of,
    leaves_of,
)
from bench.conformance.place import Placed
from bench.conformance.question import DRAWN, Question, ReadMode, ask, modes, one_row
from bench.conformance.walkthrough import answer

LENGTH = 150
"""Keys, and queries where they are the same sequence: two chunks of 64 and a rest."""
PART = 37
"""Queries that are answered at a time where a call is divided by the code."""
SPLITS = ((64, 1, 85), (37, 113))
"""Uneven calls, one of which ends where a chunk does."""
PLACES = (0, 23, 63, 64, 127, 128, 149)
"""Queries that are compared with the loops, where none depends on earlier ones: the first and the
last, both sides of each border between chunks, and one within a chunk."""
PADDED = (LENGTH, 97, 40)
"""Keys of the rows of a padded batch: padding begins within a chunk, before and behind its end."""
WALKED, STEPS = 68, 6
"""Keys, one chunk and a rest, and queries of another sequence, where each query depends on the one
before and the loops have to walk along all of them."""
MANY_ROWS = 65
"""Rows of a batch of few keys."""
FINITE = 260
"""Keys of a sequence that is asked in float32."""
ROWS = 5
LARGE = {260: (90, 90, 80), 100: (50, 50)}
"""Keys of five rows -> calls in which one of them is asked alone. Five rows are more pairs than fit
into a block of `pair_blocks`; the first count goes unit by unit there, the second does not."""


def long(subject: Placed) -> None:
    """A long sequence equals the loops, and the same sequence asked in uneven calls."""
    question = ask(subject, seed=31, rows=1, queries=LENGTH, keys=LENGTH)
    _equals_the_loops(subject, question)
    if subject.regime != "pool":
        _equals_its_parts(subject, question)
        _gradients_equal_those_of_parts(subject, question)
        _equals_parts_of_the_code(subject, question)
    _rows_of_a_padded_batch_stand_alone(subject)
    _rows_of_a_large_batch_stand_alone(subject)
    _stays_finite_in_float32(subject)


def _equals_the_loops(subject: Placed, question: Question) -> None:
    places: tuple[int, ...] | None = PLACES
    if subject.regime == "pool":
        places = None
    elif not isinstance(subject.variant, Chain) or _carries(subject, question):
        places, question = None, ask(subject, seed=31, rows=1, queries=STEPS, keys=WALKED)
    seen = slice(None) if places is None else list(places)
    sentence = f"{question.source.num_keys} keys differ from the loops"
    with torch.no_grad():
        for read in subject.variant.reads:
            output, weights = loops(subject, question, ReadMode(read), 0, places=places)
            for mode in modes(subject, read):
                found = answer(subject, question, mode)
                at = greatest_of(places)
                expect_near(found.output[0][:, seen], output, LOOPS, f"{mode}: {sentence}", at)
                if weights is not None and found.weights is not None:
                    mine = found.weights[0][:, seen]
                    expect_near(mine, weights, LOOPS, f"{mode}: {sentence}, in the weights", at)


def _carries(subject: Placed, question: Question) -> bool:
    """Whether something is carried from one query to the next."""
    after = answer(subject, question, modes(subject)[0]).state
    return bool(leaves_of(after.carried))


def _equals_its_parts(subject: Placed, question: Question) -> None:
    with torch.no_grad():
        for mode in modes(subject):
            whole = answer(subject, question, mode)
            for split in SPLITS:
                parts = answer(subject, question, mode, split=split)
                sentence = f"{mode}: {LENGTH} queries in calls of {list(split)} differ"
                at = first_in_parts(split)
                expect_near(parts.output, whole.output, LOOPS, sentence, at)
                if whole.weights is not None and parts.weights is not None:
                    weighed = f"{sentence}, in the weights"
                    expect_near(parts.weights, whole.weights, LOOPS, weighed, at)


def _equals_parts_of_the_code(subject: Placed, question: Question) -> None:
    """Calls that the code divides by itself, and windows that it copies out, at any length."""
    variant = subject.variant
    mode = ReadMode("expected", weights=False)
    at = first_in_parts((*[PART] * (LENGTH // PART), LENGTH % PART))
    usual = variant.part_numbers, variant.gather_from
    with torch.no_grad():
        whole = answer(subject, question, mode)
        variant.part_numbers, variant.gather_from = PART * question.query.shape[1] * LENGTH, 0
        try:
            parts = answer(subject, question, mode)
        finally:
            variant.part_numbers, variant.gather_from = usual
    sentence = f"{mode}: {LENGTH} queries that the code reads {PART} at a time differ"
    expect_near(parts.output, whole.output, LOOPS, sentence, at)


def _gradients_equal_those_of_parts(subject: Placed, question: Question) -> None:
    parameters = dict(subject.variant.named_parameters())
    names = (*question.leaves(), *parameters)
    for mode in modes(subject, "train", "expected"):
        found = []
        for split in (None, SPLITS[0]):
            fresh = question.fresh()
            output = answer(subject, fresh, mode, split=split).output
            found.append(gradients(output, (*fresh.leaves().values(), *parameters.values())))
        for name, whole, parts in zip(names, *found, strict=True):
            sentence = f"{mode}: the gradient of {name} in calls of {list(SPLITS[0])} differs"
            expect_near(parts, whole, LOOPS, sentence)


def _rows_of_a_padded_batch_stand_alone(subject: Placed) -> None:
    """Padding lies behind chunks and in blocks that hold nothing else."""
    question = ask(subject, seed=33, queries=LENGTH, keys=LENGTH, lengths=PADDED)
    for mode in modes(subject, "expected"):
        if subject.regime == "causal":  # what comes before padding cannot see it
            with torch.no_grad():
                leaves_the_state(subject, question, mode, PADDED)
            continue
        whole = answer(subject, question, mode).output  # training asks so, with gradients
        with torch.no_grad():
            for row, length in enumerate(PADDED):
                alone = answer(subject, one_row(subject, question, row, length), mode).output[0]
                sentence = f"{mode}: row {row} of a batch padded to {LENGTH} keys differs alone"
                expect_near(whole[row, :, : alone.shape[1]], alone, LOOPS, sentence)


def _rows_of_a_large_batch_stand_alone(subject: Placed) -> None:
    for keys, small in LARGE.items():
        question = ask(subject, seed=37, rows=ROWS, queries=keys, keys=keys)
        with torch.no_grad():
            for mode in modes(subject, "expected"):
                assert mode.read not in DRAWN, "noise is addressed by the row"
                whole = answer(subject, question, mode)
                for row in (0, ROWS - 1):
                    # in calls that each fit into a block
                    split = None if subject.regime == "pool" else small
                    one = question.rows(slice(row, row + 1))
                    alone = answer(subject, one, mode, split=split)
                    sentence = f"{mode}: row {row} of a batch of {ROWS} x {keys} keys differs alone"
                    expect_near(whole.output[row], alone.output[0], LOOPS, sentence)

    _rows_of_many_stand_alone(subject)


def _rows_of_many_stand_alone(subject: Placed) -> None:
    """More rows than a training batch of the presets has."""
    question = ask(subject, seed=38, rows=MANY_ROWS)
    with torch.no_grad():
        for mode in modes(subject, "expected"):
            whole = answer(subject, question, mode)
            for row in (MANY_ROWS // 2, MANY_ROWS - 1):
                alone = answer(subject, question.rows(slice(row, row + 1)), mode)
                sentence = f"{mode}: row {row} of {MANY_ROWS} differs alone"
                expect_near(whole.output[row], alone.output[0], LOOPS, sentence)


def _stays_finite_in_float32(subject: Placed) -> None:
    """Products of decays along a sequence leave the range of float32 where one divides by them."""
    question = ask(subject, seed=39, rows=1, queries=FINITE, keys=FINITE).to(torch.float32)
    low = copied(subject, torch.float32)
    with torch.no_grad():
        for mode in modes(subject, "expected"):
            found = answer(low, question, mode).output
            sentence = f"{mode}: float32 gives no finite output with {FINITE} keys"
            expect(found.isfinite().all(), sentence)


def copies_windows(subject: Placed) -> bool:
    """Whether windows of this place are copied out where a sequence is so much longer."""
    variant = subject.variant
    return isinstance(variant, Chain) and variant.window_width is not None
