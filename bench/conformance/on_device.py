"""The answers that the suite certified, on another device, in another format, at timed shapes.

The suite proves the mathematics in float64 on the processor. Here the same code runs where it is
used, and is compared with that float64. What a format may lose is taken from the same code in the
same format on the processor, up to a number of roundings for each format.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from bench.api.errors import BenchError
from bench.api.impl import Impl
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector
from bench.conformance.certificate import Certificate, CheckFailed, CheckSkipped
from bench.conformance.checks_timed_shape import timed_shape
from bench.conformance.compare import gap
from bench.conformance.place import KEYS, Placed, build_subject, gives, placements
from bench.conformance.question import LENGTHS, Question, ReadMode, ask, modes
from bench.conformance.runs_on import MOST, RunsOn, expect_as_near, most_lost
from bench.conformance.walkthrough import answer
from bench.timing.reason import Reason, attempt
from bench.timing.workloads import compile_attend, plain_code

Gradients = tuple[Tensor, ...]
"""Of queries, keys, values, further inputs and parameters."""
Check = Callable[[VariantSpec, RunsOn, Impl], None]
"""Compares a variant, where it runs and with the code that is asked for, with float64."""
DOING = "certifying"
"""What was being done when something was raised."""
OF_GRADIENTS = {**MOST, torch.float32: 4096}
"""Roundings that may add up in a gradient. That of a parameter is a sum whose parts cancel, and
half formats are added up in float32, too, where this hardly shows."""
QUESTIONS = (27, 28, 29, 30)
"""Seeds of questions about gradients. Where a key just gets no weight, rounding may step over the
kink, behind which the gradient is another one. The first question counts at which the processor
does not."""


def certify_on(selector: str | Selector, on: RunsOn, impl: Impl = "auto") -> Certificate:
    """Compare a variant with float64 where it can stand, and at the timed shapes.

    Args:
        selector: The variant, as on the command line.
        on: Device, format and shapes; the device is there.
        impl: Code to certify.

    Returns:
        The checks `answers` and `gradients`, and `timed_shape` for each shape, named after `on`.
        What is compiled has gradients in one place and its timed shapes alone, because every other
        question would be compiled for itself, which takes a minute.

    Raises:
        UnknownName: No such variant.
        InvalidConfig: An option has a wrong value.
    """
    spec = resolve(selector)
    checks: dict[str, Check] = {on.named("gradients", impl): _gradients}
    if impl != "compiled":
        checks = {on.named("answers", impl): _answers, **checks}
    checks |= {on.at(shape, impl): partial(timed_shape, shape) for shape in on.shapes}
    passed, skipped, failed, machine = [], {}, {}, False
    for written, check in checks.items():
        try:
            _guarded(check, spec, on, impl)
        except CheckSkipped as reason:
            skipped[written] = str(reason)
            machine |= reason.environmental
        except CheckFailed as reason:
            failed[written] = str(reason)
            machine |= reason.environmental
        else:
            passed.append(written)
    expected = tuple(name for name in (*passed, *failed))
    shown = spec.canonical.show()
    return Certificate(shown, tuple(passed), skipped, failed, expected, environmental=machine)


def _guarded(check: Check, spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """Run a check; memory that ran out proves nothing, and any other crash is a failure."""

    def run() -> CheckSkipped | CheckFailed | None:
        try:
            check(spec, on, impl)
        except (CheckSkipped, CheckFailed) as verdict:
            return verdict.with_traceback(None)
        return None

    found = attempt(run, DOING)
    if isinstance(found, Reason):
        if found.status in ("out_of_memory", "refused"):
            raise CheckSkipped(found.detail, environmental=found.status == "out_of_memory")
        raise CheckFailed(found.detail, environmental=found.environmental)
    if found is not None:
        raise found


def _subjects(spec: VariantSpec, impl: Impl) -> list[Placed]:
    found = []
    for placement in placements(spec):
        if placement.again:
            continue
        try:
            found.append(build_subject(spec, placement, plain_code(impl)))
        except BenchError:
            continue
    if not found:
        raise CheckSkipped("no place to run it in")
    return found[:1] if impl == "compiled" else found


def _answers(spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """Padded rows, all queries at once and one by one, with weights and without."""
    most = most_lost(spec, on.format)
    for subject in _subjects(spec, impl):
        question = _rounded(ask(subject, seed=25, lengths=LENGTHS), on)
        for mode in modes(subject, "expected"):
            wanted, usual = _references(subject, question, on, mode)
            there, asked = _to(subject, on, impl), _moved(question, on.device)
            steps = (1,) * asked.query.shape[2]
            for split in (None, steps) if subject.regime in ("cross", "causal") else (None,):
                # decoding wants no gradients, and has code of its own there
                with torch.set_grad_enabled(split is None):
                    found = answer(there, asked, mode, split=split).output
                how = "at once" if split is None else "one by one"
                where = f"{subject.where}, {mode}, {how}"
                expect_as_near(found, wanted, usual, spec, on, where, most)


def _gradients(spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """Gradients of queries, keys, values and parameters."""
    if "jumps" in gives(spec):
        raise CheckSkipped("its choices jump, so rounding may take another path")
    most = most_lost(spec, on.format, OF_GRADIENTS)
    for subject in _subjects(spec, impl):
        mode = modes(subject, "expected")[-1]
        question, wanted, usual = _away_from_kinks(subject, on, mode, most)
        found = _gradient(_to(subject, on, impl), _moved(question, on.device), mode)
        for at, (mine, exact, near) in enumerate(zip(found, wanted, usual, strict=True)):
            where = f"{subject.where}, gradient {at}"
            expect_as_near(mine, exact, near, spec, on, where, most)


def _away_from_kinks(
    subject: Placed, on: RunsOn, mode: ReadMode, most: float
) -> tuple[Question, Gradients, Gradients]:
    """A question, its gradients in float64, and the processor's in the format.

    What the processor cannot compute in the format counts as exact.
    """
    low = _as(subject, on.format)
    double = _as(low, torch.float64)
    for seed in QUESTIONS:
        question = _rounded(ask(subject, seed=seed, lengths=(KEYS, 4, 2)), on)
        wanted = _gradient(double, question.to(torch.float64), mode)
        found = attempt(partial(_gradient, low, question, mode))
        usual = wanted if isinstance(found, Reason) else tuple(one.double() for one in found)
        if not most < max(map(gap, usual, wanted), default=0.0) < math.inf:
            break
    return question, wanted, usual


def _gradient(subject: Placed, question: Question, mode: ReadMode) -> Gradients:
    fresh = question.fresh()
    leaves = (*fresh.leaves().values(), *subject.variant.parameters())
    output = answer(subject, fresh, mode).output
    if not output.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    rng = torch.Generator().manual_seed(3)
    direction = torch.randn(output.shape, generator=rng).to(output)
    found = torch.autograd.grad(
        output, leaves, direction, allow_unused=True, materialize_grads=True
    )
    return tuple(found)


def _references(
    subject: Placed, question: Question, on: RunsOn, mode: ReadMode
) -> tuple[Tensor, Tensor]:
    """The answer in float64 from the rounded numbers, and the processor's in the format."""
    low = _as(subject, on.format)
    exact = answer(_as(low, torch.float64), question.to(torch.float64), mode).output
    return exact, answer(low, question, mode).output.double()


def _rounded(question: Question, on: RunsOn) -> Question:
    return question.to(on.format)


def _moved(question: Question, device: str) -> Question:
    moved = question.each(lambda leaf: leaf.to(device))
    source = moved.source
    mask = None if source.mask is None else source.mask.to(device)
    tokens = None if source.tokens is None else source.tokens.to(device)
    return replace(moved, source=replace(source, mask=mask, tokens=tokens))


def _as(subject: Placed, dtype: torch.dtype) -> Placed:
    return replace(subject, slot=copy.deepcopy(subject.slot).to(dtype))


def _to(subject: Placed, on: RunsOn, impl: Impl) -> Placed:
    slot = copy.deepcopy(subject.slot).to(on.device, on.format)
    if impl == "compiled":
        compile_attend(slot.variant)
    return replace(subject, slot=slot)
