"""The answers that the suite certified, on another device, in another format, at timed shapes.

The suite proves the mathematics in float64 on the processor. Here the same code runs where it is
used, and is compared with that float64. What a format may lose is taken from the same code in the
same format on the processor, so nothing depends on a guessed tolerance.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bench.api.call import Attended
from bench.api.errors import BenchError, Refused
from bench.api.impl import Impl
from bench.api.places import timed_place
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector
from bench.api.source import Source
from bench.api.variant import Variant
from bench.conformance.certificate import Certificate, CheckFailed, CheckSkipped
from bench.conformance.compare import expect, gap
from bench.conformance.place import KEYS, Placed, build_subject, gives, placements
from bench.conformance.question import (
    LENGTHS,
    Question,
    ReadMode,
    answer,
    ask,
    modes,
)
from bench.timing.reason import Reason, attempt
from bench.timing.shape import AttendShape
from bench.timing.timed_inputs import draw_inputs, fit_inputs
from bench.timing.workloads import answer as answer_all
from bench.timing.workloads import build, compile_attend, decode_step, plain_code

MARGIN = 8
"""How much more than the processor a device may lose, for it adds up in another order."""
FEW, PREFIX = 4, 64
"""Queries of a timed shape that are compared, where each sees all keys, or only earlier ones."""
CERTIFIED = ("float32", "float64")
"""Formats that the suite itself covers on the processor."""
LONGEST_WHOLE = 256
"""Vectors of a sequence that is compared whole, where every query sees the last key."""


@dataclass(frozen=True)
class RunsOn:
    """Where a certificate holds, beside the implementation."""

    device: str = "cpu"
    dtype: str = "float32"
    shapes: tuple[AttendShape, ...] = ()
    """Shapes that will be timed."""

    @property
    def format(self) -> torch.dtype:
        """The format, for torch."""
        found = getattr(torch, self.dtype)
        assert isinstance(found, torch.dtype), "checked where it was asked for"
        return found

    def named(self, check: str, impl: Impl) -> str:
        """A check in a certificate: what is compared, and on what.

        >>> RunsOn("cuda", "bfloat16").named("answers", "sdpa")
        'answers_on_cuda_bfloat16_sdpa'
        """
        code = () if impl == "auto" else (impl,)
        return "_".join((check, "on", self.device, self.dtype, *code))


def compared_on(
    device: str, dtype: str, shapes: Iterable[AttendShape], impl: str = "auto"
) -> RunsOn | None:
    """Where a certificate compares with float64; None where the suite in float64 says it all.

    Args:
        device: Kind of device.
        dtype: Name of the format.
        shapes: Shapes that were asked for.
        impl: Code to certify; the suite knows nothing of compiled code.
    """
    asked = tuple(shapes)
    if device == "cpu" and dtype in CERTIFIED and not asked and impl != "compiled":
        return None
    return RunsOn(device, dtype, asked)


def certify_on(selector: str | Selector, on: RunsOn, impl: Impl = "auto") -> Certificate:
    """Compare a variant with float64 where it can stand, and at the timed shapes.

    Args:
        selector: The variant, as on the command line.
        on: Device, format and shapes; the device is there.
        impl: Code to certify.

    Returns:
        The checks `answers`, `gradients` and, with shapes, `timed_shape`, named after `on`. What is
        compiled has gradients in one place and its timed shapes alone, because every other question
        would be compiled for itself, which takes a minute.

    Raises:
        UnknownName: No such variant.
        InvalidConfig: An option has a wrong value.
    """
    spec = resolve(selector)
    checks: dict[str, Callable[[VariantSpec, RunsOn, Impl], None]] = {
        "answers": _answers,
        "gradients": _gradients,
    }
    if impl == "compiled":
        del checks["answers"]
    if on.shapes:
        checks["timed_shape"] = _timed_shapes
    passed, skipped, failed = [], {}, {}
    for name, check in checks.items():
        written = on.named(name, impl)
        try:
            _guarded(check, spec, on, impl)
        except CheckSkipped as reason:
            skipped[written] = str(reason)
        except CheckFailed as reason:
            failed[written] = str(reason)
        else:
            passed.append(written)
    expected = tuple(name for name in (*passed, *failed))
    return Certificate(spec.canonical.show(), tuple(passed), skipped, failed, expected)


def _guarded(
    check: Callable[[VariantSpec, RunsOn, Impl], None], spec: VariantSpec, on: RunsOn, impl: Impl
) -> None:
    """Run a check; memory that ran out proves nothing, and any other crash is a failure."""

    def run() -> CheckSkipped | CheckFailed | None:
        try:
            check(spec, on, impl)
        except (CheckSkipped, CheckFailed) as verdict:
            return verdict.with_traceback(None)
        return None

    found = attempt(run)
    if isinstance(found, Reason):
        if found.status in ("out_of_memory", "refused"):
            raise CheckSkipped(found.detail)
        raise CheckFailed(found.detail)
    if found is not None:
        raise found


def _subjects(spec: VariantSpec, impl: Impl) -> list[Placed]:
    found = []
    for placement in placements(spec):
        try:
            found.append(build_subject(spec, placement, plain_code(impl)))
        except BenchError:
            continue
    if not found:
        raise CheckSkipped("no place to run it in")
    return found[:1] if impl == "compiled" else found


def _answers(spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """Padded rows, all queries at once and one by one, with weights and without."""
    for subject in _subjects(spec, impl):
        question = _rounded(ask(subject, seed=25, lengths=LENGTHS), on)
        for mode in modes(subject, "expected"):
            wanted, usual = _references(subject, question, on, mode)
            there, asked = _to(subject, on, impl), _moved(question, on.device)
            steps = (1,) * asked.query.shape[2]
            for split in (None, steps) if subject.regime in ("cross", "causal") else (None,):
                found = answer(there, asked, mode, split=split).output
                how = "at once" if split is None else "one by one"
                _compare(found, wanted, usual, spec, on, f"{subject.where}, {mode}, {how}")


def _gradients(spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """Gradients of queries, keys, values and parameters."""
    if "jumps" in gives(spec):
        raise CheckSkipped("its choices jump, so rounding may take another path")
    for subject in _subjects(spec, impl):
        question = _rounded(ask(subject, seed=27, lengths=(KEYS, 4, 2)), on)
        mode = modes(subject, "expected")[-1]
        double = _as(_as(subject, on.format), torch.float64)
        wanted = _gradient(double, question.to(torch.float64), mode)
        usual = attempt(lambda: _gradient(_as(subject, on.format), question, mode))  # noqa: B023
        found = _gradient(_to(subject, on, impl), _moved(question, on.device), mode)
        for at, (mine, exact) in enumerate(zip(found, wanted, strict=True)):
            near = exact if isinstance(usual, Reason) else usual[at]
            what = f"{subject.where}, gradient {at}"
            _compare(mine, exact, near.double(), spec, on, what)


def _gradient(subject: Placed, question: Question, mode: ReadMode) -> tuple[Tensor, ...]:
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


def _timed_shapes(spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """The first queries of the first row and of the last, and a decode step after all of them."""
    seen = False
    for shape in on.shapes:
        try:
            variant = build(spec, shape, plain_code(impl), seed=0).to(on.format)
        except Refused:
            continue
        seen = True
        _timed_shape(spec, on, shape, variant, impl)
    if not seen:
        raise CheckSkipped("no timed shape has a place for it")


def _timed_shape(
    spec: VariantSpec, on: RunsOn, shape: AttendShape, variant: Variant, impl: Impl
) -> None:
    drawn = draw_inputs(shape, torch.device(on.device), on.format, 0)
    inputs = fit_inputs(drawn, variant.dims)
    there = _there(variant, on, impl)
    with torch.no_grad():
        whole = answer_all(there, inputs.query, inputs.source).output
        expect(whole.isfinite().all(), f"{shape.show()}: the output is not finite")
        queries, keys = _seen(shape)
        for row in dict.fromkeys((0, shape.batch - 1)):
            query = inputs.query[row : row + 1, :, :queries].cpu()
            source = _first(inputs.source, row, keys)
            wanted = _double(variant, query, source)
            usual = answer_all(variant, query, source).output.double()
            mine = whole[row : row + 1, :, :queries]
            _compare(mine, wanted, usual, spec, on, f"{shape.show()}, row {row}")
        if shape.regime == "causal" and spec.refusal(timed_place("causal") | {"stepwise"}) is None:
            step = decode_step(there, inputs)()
            assert isinstance(step, Attended), "what a decode step gives"
            expect(step.output.isfinite().all(), f"{shape.show()}: a decode step is not finite")


def _seen(shape: AttendShape) -> tuple[int, int]:
    """Queries that are compared, and the keys that they see."""
    if shape.regime == "causal":
        return (min(PREFIX, shape.length),) * 2
    if shape.regime == "self":
        if shape.length > LONGEST_WHOLE:
            raise CheckSkipped(f"{shape.show()} is too long to be compared whole")
        return shape.length, shape.length
    return min(FEW, shape.queries), shape.length


def _double(variant: Variant, query: Tensor, source: Source) -> Tensor:
    double = copy.deepcopy(variant).double()
    exact = replace(source, key=source.key.double(), value=source.value.double())
    return answer_all(double, query.double(), exact).output


def _first(source: Source, row: int, keys: int) -> Source:
    rows = slice(row, row + 1)
    tokens = None if source.tokens is None else source.tokens[rows, :keys].cpu()
    key, value = (x[rows, :, :keys].cpu() for x in (source.key, source.value))
    return Source(key=key, value=value, tokens=tokens)


def _references(
    subject: Placed, question: Question, on: RunsOn, mode: ReadMode
) -> tuple[Tensor, Tensor]:
    """The answer in float64 from the rounded numbers, and the processor's in the format."""
    low = _as(subject, on.format)
    exact = answer(_as(low, torch.float64), question.to(torch.float64), mode).output
    return exact, answer(low, question, mode).output.double()


def _compare(
    found: Tensor, wanted: Tensor, usual: Tensor, spec: VariantSpec, on: RunsOn, where: str
) -> None:
    """Fail unless an output is of its kind, finite, and as near as the processor comes to it."""
    expect(found.device.type == torch.device(on.device).type, f"{where}: {found.device} answers")
    expect(found.dtype == on.format, f"{where}: {on.dtype} in, {found.dtype} out")
    mine = found.detach().cpu().double()
    expect(mine.isfinite().all(), f"{where}: not finite")
    allowed = MARGIN * max(torch.finfo(on.format).eps, gap(usual, wanted))
    off = gap(mine, wanted)
    # where a choice jumps, rounding may take another key, which is as good
    near = off <= allowed or "jumps" in gives(spec)
    expect(near, f"{where}: off by {off:.2g}, more than {allowed:.2g}")


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


def _there(variant: Variant, on: RunsOn, impl: Impl) -> Variant:
    there = copy.deepcopy(variant).to(on.device)
    if impl == "compiled":
        compile_attend(there)
    return there


def _to(subject: Placed, on: RunsOn, impl: Impl) -> Placed:
    slot = copy.deepcopy(subject.slot).to(on.device, on.format)
    if impl == "compiled":
        compile_attend(slot.variant)
    return replace(subject, slot=slot)
