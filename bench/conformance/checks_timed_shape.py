"""What is timed gives the answers of float64, at the shapes at which it is timed."""

import copy
from dataclasses import replace

import torch
from torch import Tensor

from bench.api.call import Attended
from bench.api.errors import Refused
from bench.api.impl import Impl
from bench.api.places import timed_place
from bench.api.resolve import VariantSpec
from bench.api.source import Source
from bench.api.variant import Variant
from bench.conformance.certificate import CheckSkipped
from bench.conformance.compare import expect
from bench.conformance.runs_on import RunsOn, expect_as_near
from bench.timing.affordable import too_large
from bench.timing.fitted_heads import with_heads_of
from bench.timing.shape import AttendShape
from bench.timing.timed_inputs import Inputs, draw_inputs, fit_inputs
from bench.timing.workloads import answer, build, compile_attend, decode_step, plain_code

FEW, PREFIX = 4, 320
"""Queries of a timed shape that are compared, where each sees all keys, or only earlier ones. The
latter fill five chunks of a recurrence, which a GPU takes at once."""
LONGEST_WHOLE = 256
"""Vectors of a sequence that is compared whole, where every query sees the last key."""
LONGEST_STEPPED = 1024
"""Vectors behind which a decode step is compared; behind more it has to be finite."""


def timed_shape(shape: AttendShape, spec: VariantSpec, on: RunsOn, impl: Impl) -> None:
    """The first queries of the first row and of the last, and a decode step after all of them."""
    spec = with_heads_of(spec, shape)
    variant = build(spec, shape, plain_code(impl), seed=0).to(on.format)
    _refuse_what_is_not_timed(spec, variant, shape, on)
    drawn = draw_inputs(shape, torch.device(on.device), on.format, 0)
    inputs = fit_inputs(drawn, variant.dims)
    there = _there(variant, on, impl)
    with torch.no_grad():
        whole = answer(there, inputs.query, inputs.source).output
        expect(whole.isfinite().all(), f"{shape.show()}: the output is not finite")
        queries, keys = _seen(shape)
        for row in dict.fromkeys((0, shape.batch - 1)):
            query = inputs.query[row : row + 1, :, :queries].cpu()
            source = _first(inputs.source, row, keys)
            wanted = _double(variant, query, source)
            usual = answer(variant, query, source).output.double()
            mine = whole[row : row + 1, :, :queries]
            expect_as_near(mine, wanted, usual, spec, on, f"{shape.show()}, row {row}")
        place = timed_place(shape.regime, with_heads=shape.place == "slot")
        if shape.regime == "causal" and spec.refusal(place | {"stepwise"}) is None:
            step = decode_step(there, inputs)()
            where = f"{shape.show()}, a decode step"
            expect(_output(step).isfinite().all(), f"{where} is not finite")
            if shape.length <= LONGEST_STEPPED:
                usual = _output(decode_step(variant, _on_processor(drawn))()).double()
                exact = _on_processor(drawn, double=True)
                wanted = _output(decode_step(_doubled(variant), exact)())
                expect_as_near(_output(step), wanted, usual, spec, on, where)


def _refuse_what_is_not_timed(
    spec: VariantSpec, variant: Variant, shape: AttendShape, on: RunsOn
) -> None:
    """Refuse what timing refuses for its size; the baseline is timed in any case.

    Raises:
        Refused: A forward call is too large.
    """
    rounds = on.rounds
    if rounds is None or on.device != "cpu" or shape.place == "slot":
        return
    if spec.canonical == rounds.beside:
        return
    found = too_large(variant, shape, rounds, on.format, among=("forward",))
    for reason in found.values():
        raise Refused(reason.detail)


def _seen(shape: AttendShape) -> tuple[int, int]:
    """Queries that are compared, and the keys that they see."""
    if shape.regime == "causal":
        return (min(PREFIX, shape.length),) * 2
    if shape.regime == "self":
        if shape.length > LONGEST_WHOLE:
            raise CheckSkipped(f"{shape.show()} is too long to be compared whole")
        return shape.length, shape.length
    return min(FEW, shape.queries), shape.length


def _output(step: object) -> Tensor:
    assert isinstance(step, Attended), "what a decode step gives"
    return step.output


def _on_processor(inputs: Inputs, *, double: bool = False) -> Inputs:
    """The same inputs on the processor, in float64 if wanted."""

    def moved(x: Tensor) -> Tensor:
        return x.cpu().double() if double else x.cpu()

    def of(source: Source) -> Source:
        tokens = None if source.tokens is None else source.tokens.cpu()
        return replace(source, key=moved(source.key), value=moved(source.value), tokens=tokens)

    return replace(
        inputs,
        query=moved(inputs.query),
        source=of(inputs.source),
        next_query=moved(inputs.next_query),
        next_source=of(inputs.next_source),
        gradient=moved(inputs.gradient),
    )


def _doubled(variant: Variant) -> Variant:
    return copy.deepcopy(variant).double()


def _double(variant: Variant, query: Tensor, source: Source) -> Tensor:
    double = _doubled(variant)
    exact = replace(source, key=source.key.double(), value=source.value.double())
    return answer(double, query.double(), exact).output


def _first(source: Source, row: int, keys: int) -> Source:
    rows = slice(row, row + 1)
    tokens = None if source.tokens is None else source.tokens[rows, :keys].cpu()
    key, value = (x[rows, :, :keys].cpu() for x in (source.key, source.value))
    return Source(key=key, value=value, tokens=tokens)


def _there(variant: Variant, on: RunsOn, impl: Impl) -> Variant:
    there = copy.deepcopy(variant).to(on.device)
    if impl == "compiled":
        compile_attend(there)
    return there
