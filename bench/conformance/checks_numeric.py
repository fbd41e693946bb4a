"""Lower precision stays near double precision, and a traced graph computes the same."""

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from bench.api.noise import Noise
from bench.conformance.compare import expect, gap, near_but_for_jumps
from bench.conformance.place import Placed
from bench.conformance.question import DRAWN, LENGTHS, ReadMode, ask, modes, usual_share
from bench.conformance.walkthrough import Walkthrough, answer

ROUNDINGS = {torch.float32: 64, torch.float16: 32, torch.bfloat16: 10}
"""Roundings that may add up between input and output, in units of the format's epsilon: seven times
the most that a listed variant loses in a half format, which is 4.6 and 1.4. Combinations lose more:
`differential[position=rope+alibi]` 7 in bfloat16."""
SUMMED = 1000
"""Tokens of one sign that a state is the sum of: in bfloat16 a sum of 256 of them takes no more."""
SUM_ROUNDINGS = 4
"""Roundings of bfloat16 behind so many tokens; listed variants lose 0.6 at most."""
LARGE = 30.0
"""Standard deviation of numbers that are larger than those of a network at its start."""


def dtypes(subject: Placed) -> None:
    """Each format gives finite outputs of its own kind, near float64 on the same numbers."""
    question = ask(subject, seed=25, lengths=LENGTHS)
    steps = (1,) * question.query.shape[2]
    for dtype, roundings in ROUNDINGS.items():
        rounded = question.to(dtype)
        low = copied(subject, dtype)
        # the reference starts from the rounded numbers: only the arithmetic is compared
        wanted = answer(
            copied(low, torch.float64),
            rounded.to(torch.float64),
            ReadMode("expected", weights=False),
        ).output
        allowed = roundings * torch.finfo(dtype).eps
        for mode in every_expected(subject):
            for split in (None, steps):
                # decoding wants no gradients, and has code of its own there
                with torch.set_grad_enabled(split is None):
                    output = answer(low, rounded, mode, split=split).output
                how = f"({mode})" if split is None else f"({mode}, query by query)"
                name = str(dtype).removeprefix("torch.")
                expect(output.dtype == dtype, f"{name} in, {output.dtype} out {how}")
                expect(output.isfinite().all(), f"{name}: the output is not finite {how}")
                off = gap(output.double(), wanted)
                near = near_but_for_jumps(output.double(), wanted, allowed, subject.gives)
                expect(near, f"{name} is off by {off:.2g}, more than {allowed:.2g} {how}")
    _large_numbers_stay_finite(subject)
    if not subject.variant.remembers_keys and "jumps" not in subject.gives:
        _long_sums_stay_near(subject)


def _long_sums_stay_near(subject: Placed) -> None:
    """A state that sums tokens in a half format is near for few of them alone."""
    dtype = torch.bfloat16
    drawn = ask(subject, seed=27, rows=1, keys=SUMMED)
    source = replace(drawn.source, key=drawn.source.key.abs(), value=drawn.source.value.abs())
    question = replace(drawn, query=drawn.query.abs(), source=source).to(dtype)
    low, mode = copied(subject, dtype), ReadMode("expected", weights=False)
    allowed = SUM_ROUNDINGS * torch.finfo(dtype).eps
    one_by_one = (1,) * question.query.shape[2]
    with torch.no_grad():
        wide = question.to(torch.float64)
        wanted = answer(copied(low, torch.float64), wide, mode).output
        for how, split in (("at once", None), ("query by query", one_by_one)):
            output = answer(low, question, mode, split=split).output.double()
            off = gap(output, wanted)
            sentence = (
                f"bfloat16 is off by {off:.2g}, more than {allowed:.2g}, after {SUMMED} tokens of "
                f"one sign ({how}); keep sums in float32 (`wide_format`)"
            )
            expect(off <= allowed, sentence)


def _large_numbers_stay_finite(subject: Placed) -> None:
    """An exponential without its maximum overflows in float32, where energies are about 100."""
    question = ask(subject, seed=26, lengths=LENGTHS).to(torch.float32)
    source = replace(question.source, key=LARGE * question.source.key)
    large = replace(question, query=LARGE * question.query, source=source)
    low = copied(subject, torch.float32)
    for mode in every_expected(subject):
        found = answer(low, large, mode).output
        sentence = f"float32: queries and keys of deviation {LARGE:g} give no finite output"
        expect(found.isfinite().all(), f"{sentence} ({mode})")


def every_expected(subject: Placed) -> list[ReadMode]:
    """The two ways to read by expectation."""
    return modes(subject, "expected")


def copied(subject: Placed, dtype: torch.dtype) -> Placed:
    """The same in another format."""
    slot = copy.deepcopy(subject.slot).to(dtype)
    return replace(subject, slot=slot)


def compile_law(subject: Placed) -> None:
    """`torch.compile(fullgraph=True)` traces `attend` whole and changes nothing."""
    question = ask(subject, queries=3, keys=3, lengths=(3, 2, 1))
    for mode in modes(subject):
        torch._dynamo.reset()
        path = Walkthrough(subject, question, mode)
        causal = subject.regime == "causal"
        compiled = torch.compile(subject.variant.attend, fullgraph=True, backend="eager")
        with _without_logs():
            found = compiled(
                question.query,
                path.memory,
                path.state,
                new=question.source if causal else None,
                read=mode.read,
                noise=Noise(1) if mode.read in DRAWN else None,
                progress=usual_share(mode.read),
                want_weights=mode.weights,
                extras=question.extras(),
            )
        wanted = answer(subject, question, mode)
        same = torch.equal(found.output, wanted.output)
        expect(
            same, f"{mode}: the compiled answer differs by {gap(found.output, wanted.output):.2g}"
        )


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keep the tracer from logging the traceback of an error that it raises, too.

    The certificate says it in a sentence. Loggers of torch have levels of their own, so nothing
    less than all of logging reaches them.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
