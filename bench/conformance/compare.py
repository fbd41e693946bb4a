"""Comparisons that end in a sentence."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bench.api.source import Tree
from bench.conformance.certificate import CheckFailed

EXACT = 1e-12
"""Float64, same numbers added up in another order."""
LOOPS = 1e-10
"""Float64, vectorized code against loops."""


def gap(found: Tensor, wanted: Tensor) -> float:
    """Largest difference in units of one plus the largest wanted value; infinite where NaN."""
    if found.shape != wanted.shape:
        return float("inf")
    if not found.numel():
        return 0.0
    difference = (found.detach() - wanted.detach()).abs().max()
    scale = 1.0 + wanted.detach().abs().max()
    relative = float(difference / scale)
    return float("inf") if math.isnan(relative) else relative


def expect(holds: bool | Tensor, sentence: str) -> None:
    """Fail with a sentence unless something holds."""
    if not bool(holds):
        raise CheckFailed(sentence)


def expect_near(found: Tensor, wanted: Tensor, tolerance: float, sentence: str) -> None:
    """Fail unless two tensors agree."""
    if found.shape != wanted.shape:
        shapes = f"shape {tuple(found.shape)} instead of {tuple(wanted.shape)}"
        raise CheckFailed(f"{sentence}: {shapes}")
    off = gap(found, wanted)
    if off > tolerance:
        raise CheckFailed(f"{sentence}: off by {off:.2g}, allowed {tolerance:.0e}")


def expect_same_tree(found: Tree, wanted: Tree, tolerance: float, sentence: str) -> None:
    """Fail unless two trees have the same names and leaves."""
    names = set(found) | set(wanted)
    for name in sorted(names):
        expect(name in found and name in wanted, f"{sentence}: branch {name!r} on one side only")
        one, two = found[name], wanted[name]
        if isinstance(one, Tensor) and isinstance(two, Tensor):
            expect_near(one.double(), two.double(), tolerance, f"{sentence}, leaf {name!r}")
        else:
            expect(
                not isinstance(one, Tensor) and not isinstance(two, Tensor),
                f"{sentence}: {name!r} is a leaf on one side only",
            )
            expect_same_tree(one, two, tolerance, sentence)  # type: ignore[arg-type]


def gradients(output: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Gradients of a fixed random direction of the output; zeros where nothing arrives."""
    if not output.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in inputs)
    rng = torch.Generator().manual_seed(3)
    direction = torch.randn(output.shape, generator=rng, dtype=torch.float64).to(output.dtype)
    found = torch.autograd.grad(
        output, inputs, direction, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return tuple(found)


def leaves_of(tree: Tree) -> list[Tensor]:
    """Every leaf of a tree."""
    found: list[Tensor] = []
    for branch in tree.values():
        found += [branch] if isinstance(branch, Tensor) else leaves_of(branch)
    return found
