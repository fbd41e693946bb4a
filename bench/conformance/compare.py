"""Comparisons that end in a sentence."""

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from bench.api.capabilities import Capability
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
    return float(_apart(found, wanted).max()) if found.numel() else 0.0


SAME_CHOICE = 0.75
"""Share of queries that must choose as in float64 where a choice may jump."""


def near_but_for_jumps(
    found: Tensor, wanted: Tensor, allowed: float, given: Collection[Capability]
) -> bool:
    """Whether numbers of another format are as near as may be, in units of `gap`.

    Where a choice jumps, rounding may take another key, which is as good, but only of few queries.
    """
    if "jumps" not in given or found.shape != wanted.shape:
        return gap(found, wanted) <= allowed
    same = (_apart(found, wanted) <= allowed).all(-1)
    return bool(same.double().mean() >= SAME_CHOICE)


def _apart(found: Tensor, wanted: Tensor) -> Tensor:
    """Differences number by number, in the units of `gap`."""
    found, wanted = found.detach(), wanted.detach()
    largest = wanted.abs().nan_to_num(0.0, posinf=torch.inf).max()  # one NaN is not everywhere
    relative = (found - wanted).abs() / (1.0 + largest)
    return torch.where(relative.isnan(), torch.inf, relative)


def expect(holds: bool | Tensor, sentence: str) -> None:
    """Fail with a sentence unless something holds."""
    if not bool(holds):
        raise CheckFailed(sentence)


def expect_same(found: Tensor, wanted: Tensor, where: object, sentence: str) -> None:
    """Fail unless two tensors are the same to the last bit; NaN, which equals nothing, is named."""
    expect(torch.equal(found, wanted), f"{where}: {_nan(found) or sentence}")


Locate = Callable[[Tensor, float], str]
"""From the differences, number by number, and what is allowed: words on where they are."""


def expect_near(
    found: Tensor, wanted: Tensor, tolerance: float, sentence: str, at: Locate | None = None
) -> None:
    """Fail unless two tensors agree; `at` says where they do not."""
    if found.shape != wanted.shape:
        shapes = f"shape {tuple(found.shape)} instead of {tuple(wanted.shape)}"
        raise CheckFailed(f"{sentence}: {shapes}")
    off = gap(found, wanted)
    if off > tolerance:
        where = f", {at(_apart(found, wanted), tolerance)}" if at else ""
        told = _nan(found) or f"off by {off:.2g}, allowed {tolerance:.0e}"
        raise CheckFailed(f"{sentence}: {told}{where}")


def _nan(found: Tensor) -> str:
    """How many numbers are NaN; empty where none is."""
    lost = int(found.isnan().sum())
    return f"NaN in {lost} of {found.numel()} numbers" if lost else ""


def first_in_parts(split: Sequence[int]) -> Locate:
    """Which query differs first, and in how large a part it was asked.

    >>> differences = torch.tensor([0.0, 0.0, 0.3, 0.1])[None, None, :, None]
    >>> first_in_parts([2, 1, 1])(differences, 0.01)
    'first at query 2, in a part of 1 query'
    """

    def at(differences: Tensor, allowed: float) -> str:
        query = _first(differences, allowed)
        ends = accumulate(split)
        part = next(size for size, end in zip(split, ends, strict=True) if query < end)
        return f"first at query {query}, in a part of {part} quer{'y' if part == 1 else 'ies'}"

    return at


def _first(differences: Tensor, allowed: float) -> int:
    """The first query, in `B H L ...`, that differs by more than is allowed."""
    (queries,) = (differences > allowed).transpose(0, 2).flatten(1).any(1).nonzero(as_tuple=True)
    return int(queries[0])


def greatest_of(places: Sequence[int] | None = None) -> Locate:
    """Head and query of the greatest difference in `H L ...`.

    Args:
        places: Which queries were compared; None for all.

    >>> differences = torch.zeros(2, 3, 4)
    >>> differences[1, 2, 0] = 0.3
    >>> greatest_of()(differences, 0.01)
    'most at head 1, query 2'
    """

    def at(differences: Tensor, allowed: float) -> str:
        head, query = divmod(int(differences.flatten(2).amax(2).argmax()), differences.shape[1])
        return f"most at head {head}, query {query if places is None else places[query]}"

    return at


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
