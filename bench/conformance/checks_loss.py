"""Losses against plain loops: sign, unit and gradients."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api import registry
from bench.api.call import Read
from bench.api.errors import Refused
from bench.api.loss import JOINTS, LOSSES, Loss, LossInputs, LossSizes
from bench.api.options import inner
from bench.api.resolve import VariantSpec
from bench.api.selector import Selector
from bench.conformance.certificate import CheckSkipped
from bench.conformance.compare import LOOPS, expect, expect_near, gradients
from bench.conformance.place import Placed, shake
from bench.conformance.run_of_decoder import (
    Example,
    Run,
    finds_its_source,
    run_of_decoder,
    with_terms_of_source,
)

PROGRESS = (0.25, 1.0)
"""Shares of training done: losses that start late are off, then on."""


class Seen(NamedTuple):
    """A run with the likelihood that its output gave."""

    run: Run
    nll: Tensor
    leaves: dict[str, Tensor]


def loss(subject: Placed, spec: VariantSpec) -> None:
    """Each loss is the sum of its examples by loops over the number of scored targets.

    A wrong sign, another unit, padding that counts and a gradient that is cut are found here.
    """
    try:
        _check(subject, spec)
    except Refused as reason:
        raise CheckSkipped(str(reason)) from None


def _check(subject: Placed, spec: VariantSpec) -> None:
    read: Read = "train" if "train" in subject.variant.reads else "expected"
    losses = [one for one in spec.axes["loss"] if finds_its_source("loss", one, subject)]
    joints = [one for one in joints_of(spec) if finds_its_source("joint", one, subject)]
    if not losses and not joints:
        raise CheckSkipped("its loss reads a source, and under causality there is none")
    for selector in losses:
        made = _made(selector, subject)
        run = run_of_decoder(subject, read=read, copies=made.copies)
        if made.terms_of_source:
            run = with_terms_of_source(run, made.terms_of_source)
        for progress in PROGRESS:
            _equals_its_examples(made, selector.name, _seen(run, 51), progress)
    for selector in joints:
        _joint_equals_its_pairs(selector, subject)


def joints_of(spec: VariantSpec) -> list[Selector]:
    """Losses that couple two directions, wherever the variant names them."""
    found = [named for axis, fixed in spec.fixes.items() for named in inner(axis, fixed)]
    return [selector for axis, selector in found if axis == JOINTS]


def _made(selector: Selector, subject: Placed) -> Loss:
    made = registry.make(LOSSES, selector)
    sizes = run_of_decoder(subject).sizes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made.attach(LossSizes(sizes.source, sizes.states, sizes.embedded))
    shake(made.double(), 53)
    return made


def _seen(run: Run, seed: int) -> Seen:
    """The run beside likelihoods that are drawn, zero where nothing is scored."""
    rng = torch.Generator().manual_seed(seed)
    mask = run.whole.batch.mask
    drawn = 3 * torch.rand(mask.shape, generator=rng, dtype=torch.float64)
    nll = torch.where(mask, drawn, 0.0).requires_grad_()
    return Seen(run, nll, {**run.leaves, "the likelihood": nll})


def _inputs(example: Example, nll: Tensor, progress: float, copies: int = 1) -> LossInputs:
    return LossInputs(example.trace, nll, example.batch, progress, copies)


def _equals_its_examples(made: Loss, name: str, seen: Seen, progress: float) -> None:
    rng = torch.Generator().manual_seed(55)
    carry = {
        key: start.double() + torch.rand(start.shape, generator=rng, dtype=torch.float64)
        for key, start in made.init().items()
    }
    run, copies = seen.run, made.copies
    term, after = made(_inputs(run.whole, seen.nll, progress, copies), dict(carry))
    total = term.new_zeros(())
    for first in range(0, run.rows, copies):
        example = run.example(first, copies)
        steps = example.batch.mask.shape[1]
        nll = seen.nll[first : first + copies, :steps]
        total = total + made.oracle(_inputs(example, nll, progress, copies), carry)
    wanted = total / run.whole.batch.mask.sum()
    leaves = {**seen.leaves, **dict(made.named_parameters())}
    _agree(f"{name} after {progress:.0%} of training", term, wanted, leaves)
    _carries_on(name, carry, after)


def _carries_on(name: str, before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """What a loss keeps for the next batch has the names and shapes that it began with."""
    expect(after.keys() == before.keys(), f"{name} carries {sorted(after)}, not {sorted(before)}")
    for key, kept in after.items():
        same = kept.shape == before[key].shape and bool(kept.isfinite().all())
        expect(same, f"{name}: what it carries as {key} is not finite or has another shape")
        expect(not kept.requires_grad, f"{name}: what it carries as {key} keeps its graph")


def _joint_equals_its_pairs(selector: Selector, subject: Placed) -> None:
    made = registry.make(JOINTS, selector)
    one = _seen(run_of_decoder(subject, seed=57), 58)
    two = _seen(run_of_decoder(subject, seed=59, turned=True), 60)
    term = made(*(_inputs(seen.run.whole, seen.nll, 1.0) for seen in (one, two)))
    total, targets = term.new_zeros(()), 0
    for row in range(one.run.rows):
        pair = []
        for seen in (one, two):
            example = seen.run.example(row)
            pair.append(_inputs(example, seen.nll[row : row + 1], 1.0))
            targets += int(example.batch.mask.sum())
        total = total + made.oracle(*pair)
    leaves = {f"{name}, there": leaf for name, leaf in one.leaves.items()}
    leaves |= {f"{name}, back": leaf for name, leaf in two.leaves.items()}
    _agree(selector.name, term, 2 * total / targets, leaves)


def _agree(what: str, term: Tensor, wanted: Tensor, leaves: Mapping[str, Tensor]) -> None:
    sentence = f"{what} (nats per scored target) differs from the loops"
    expect_near(term, wanted, LOOPS, sentence)
    one, two = (gradients(value, tuple(leaves.values())) for value in (term, wanted))
    for name, mine, looped in zip(leaves, one, two, strict=True):
        expect_near(mine, looped, LOOPS, f"{sentence}, in the gradient of {name}")
