"""Laws of the weight matrix, and rows with no key or a single one."""

import torch
from torch import Tensor

from bench.api.call import Attended, Call
from bench.api.chain import Chain
from bench.api.heads import expand_heads
from bench.conformance.compare import EXACT, LOOPS, expect, expect_near, gradients
from bench.conformance.place import ROWS, WEIGHTED, Placed
from bench.conformance.question import LENGTHS, Question, ReadMode, ask, every_mode, modes
from bench.conformance.walkthrough import Walkthrough, answer


def weight_law(subject: Placed) -> None:
    """Weights are zero on hidden keys, and keep the range and the sum that their parts declare.

    `weights` are not negative and sum to at most one, with `simplex` to one. `unit_weights` lie
    between zero and one. Weights that are `signed` sum to `Variant.row_sums`.
    """
    for lengths in (None, LENGTHS):
        question = ask(subject, lengths=lengths)
        for mode in modes(subject):
            if not mode.weights:
                continue
            weights = answer(subject, question, mode).weights
            expect(weights is not None, f"{mode}: no weights, though the variant gives them")
            assert weights is not None
            expect(weights.isfinite().all(), f"{mode}: a weight is not finite")
            _range(subject, mode, weights)
            visible = _visible(subject, question)
            hidden = weights.masked_select(~visible.expand_as(weights))
            expect(not hidden.any(), f"{mode}: a hidden key has a weight that is not zero")
            _sums(subject, question, mode, weights)
            _sums_values(subject, question, mode, weights)
            if subject.variant.editable:
                _is_edited(subject, question, mode)
    if subject.variant.editable and _sums_alone(subject):
        for mode in modes(subject):
            _reads_edited(subject, ask(subject), mode)


def _is_edited(subject: Placed, question: Question, mode: ReadMode) -> None:
    """What a probe does to the weights changes what is read."""
    path = Walkthrough(subject, question, mode)
    path.edit = lambda weights, call: 0 * weights
    path.step(question.query.shape[2])
    output = path.joined().output
    plain = answer(subject, question, mode).output
    same = torch.equal(output, plain) and bool(plain.any())  # a hard walk may read nothing
    expect(not same, f"{mode}: weights that a probe sets to zero change nothing")
    if "weighted_sum" in subject.gives:
        expect(not output.any(), f"{mode}: weights that a probe sets to zero are read")


def _reads_edited(subject: Placed, question: Question, mode: ReadMode) -> None:
    """Weights that a probe puts into another order are those that values are read by."""
    edited: list[Tensor] = []

    def turned(weights: Tensor, call: Call) -> Tensor:
        edited.append(weights.flip(-1))
        return edited[-1]

    path = Walkthrough(subject, question, mode)
    path.edit = turned
    path.step(question.query.shape[2])
    weights = torch.cat(edited, 2)
    value = expand_heads(question.source.value, weights.shape[1])
    sentence = f"{mode}: the output is not the weights that a probe turns round times values"
    expect_near(path.joined().output, weights @ value, LOOPS, sentence)


def _visible(subject: Placed, question: Question) -> Tensor:
    call = _call(subject, question)
    everything = torch.ones((), dtype=torch.bool)
    visible = everything if call.allowed is None else call.allowed
    variant = subject.variant
    if isinstance(variant, Chain):
        window, _ = variant.window(call)
        visible = visible if window is None else visible & window
    if "strictly_past" in subject.gives:
        visible = visible & (call.key_position < call.position[:, None])
    return visible


def _call(subject: Placed, question: Question) -> Call:
    memory = subject.variant.receive(question.source)
    query = subject.variant.turn(question.query, 0)
    return Call(query, memory, 0, subject.regime == "causal", extras=question.extras())


def _range(subject: Placed, mode: ReadMode, weights: Tensor) -> None:
    least, most = float(weights.detach().min()), float(weights.detach().max())
    if "signed" in subject.gives:
        return
    expect(least >= -EXACT, f"{mode}: a weight is negative ({least:.2g})")
    expect(most <= 1 + LOOPS, f"{mode}: a weight is {most:.6g}, more than one")


def _sums(subject: Placed, question: Question, mode: ReadMode, weights: Tensor) -> None:
    total = weights.detach().sum(-1)
    some = _visible(subject, question).expand_as(weights).any(-1)
    if "signed" in subject.gives:
        _declared_sums(subject, mode, total, some)
        return
    if "unit_weights" in subject.gives:
        return
    most = float(total.max())
    expect(most <= 1 + LOOPS, f"{mode}: a row of weights sums to {most:.6g}, more than one")
    if "simplex" not in subject.gives or not some.any():
        return
    least = float(total[some].min())
    expect(least >= 1 - LOOPS, f"{mode}: a row of weights sums to {least:.6g}, less than one")


def _declared_sums(subject: Placed, mode: ReadMode, total: Tensor, some: Tensor) -> None:
    declared = subject.variant.row_sums()
    if declared is None:
        return
    wanted = torch.where(some, declared.detach()[:, None], 0.0)
    expect_near(total, wanted, LOOPS, f"{mode}: a row of weights does not sum to what is declared")


def _sums_values(subject: Placed, question: Question, mode: ReadMode, weights: Tensor) -> None:
    if not _sums_alone(subject):
        return  # what positions add to the output is certified against the loops
    value = expand_heads(question.source.value, weights.shape[1])
    output = answer(subject, question, mode).output
    expect_near(output, weights @ value, LOOPS, f"{mode}: the output is not weights times values")


def _sums_alone(subject: Placed) -> bool:
    """Whether the output is the sum of weighted values and nothing else."""
    variant = subject.variant
    adds = isinstance(variant, Chain) and any(p.changes_output for p in variant.positions)
    return "weighted_sum" in subject.gives and not adds


def dead_rows(subject: Placed) -> None:
    """A row whose keys are all hidden answers zero, with finite gradients, in every mode."""
    question = ask(subject, lengths=(0, *LENGTHS[1:]))
    for mode in every_mode(subject):
        fresh = question.fresh()
        attended = answer(subject, fresh, mode)
        _is_zero(attended, (slice(0, 1),), f"{mode}: a row without any key")
        _finite(subject, fresh, attended, mode)
    if subject.regime != "causal":
        return
    question = ask(subject, lengths=LENGTHS)
    assert question.source.mask is not None
    question.source.mask[:, 0] = False
    for mode in every_mode(subject):
        fresh = question.fresh()
        attended = answer(subject, fresh, mode)
        place = (slice(None), slice(None), slice(0, 1))
        _is_zero(attended, place, f"{mode}: a first query whose only key is hidden")
        _finite(subject, fresh, attended, mode)


def _is_zero(attended: Attended, place: tuple[slice, ...], what: str) -> None:
    output = attended.output[place]
    expect(not output.isnan().any(), f"{what} gives NaN")
    largest = float(output.detach().abs().max())
    expect(largest == 0, f"{what} gives {largest:.2g} instead of zero")
    if attended.weights is not None:
        expect(not attended.weights[place].any(), f"{what} has weights that are not zero")


def _finite(subject: Placed, question: Question, attended: Attended, mode: ReadMode) -> None:
    expect(attended.output.isfinite().all(), f"{mode}: beside a row without keys, not finite")
    for name, term in attended.terms.items():
        expect(term.isfinite().all(), f"{mode}: the term {name!r} is not finite")
    parameters = dict(subject.variant.named_parameters())
    leaves = {**question.leaves(), **parameters}
    found = gradients(attended.output, tuple(leaves.values()))
    for name, gradient in zip(leaves, found, strict=True):
        sentence = f"{mode}: with a row without keys the gradient of {name} is not finite"
        expect(gradient.isfinite().all(), sentence)


def one_key(subject: Placed) -> None:
    """A source of one key gives its value, or a share of it."""
    question = ask(subject, keys=1)
    for mode in every_mode(subject):
        attended = answer(subject, question, mode)
        expect(attended.output.isfinite().all(), f"{mode}: one key gives no finite output")
        weights = attended.weights
        if weights is None or not subject.gives & WEIGHTED:
            continue
        expect(weights.shape[0] == ROWS and weights.shape[3] == 1, f"{mode}: wrong weights")
        _range(subject, mode, weights)
        _sums(subject, question, mode, weights)
        _sums_values(subject, question, mode, weights)
