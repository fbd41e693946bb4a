"""Growth of work and memory with length, from counted operations and bytes, never the clock."""

import math
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from bench.api.chain import Chain
from bench.conformance.compare import expect
from bench.conformance.place import Placed
from bench.conformance.question import ReadMode, ask
from bench.conformance.walkthrough import answer

LENGTHS = (64, 128, 256, 512)
"""Longer than chunks and blocks; growth is read off the last doubling."""
LONGEST = 1024
"""One doubling more, for windows that are copied out from some length on."""
SLACK = 0.25
FULL = 2.0
"""Power of a matrix of weights, which whoever wants weights has to hold."""
NUMBER = 8
"""Bytes of a float64 number."""
FUSED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
"""PyTorch has no formula for its fused attention on CPU, only for those on CUDA."""


class Meter(TorchDispatchMode):
    """Counts operations and the bytes alive at once while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0
        self.peak = 0
        self._alive = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count it."""
        found = func(*args, **(kwargs or {}))
        leaves = (found,) if isinstance(found, Tensor) else tree_leaves(found)
        made = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if func._overloadpacket is FUSED:
            self.operations += sdpa_flop_count(*(leaf.shape for leaf in args[:3]))
        elif formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=found)
        elif not func.is_view:
            self.operations += sum(leaf.numel() for leaf in made)
        for leaf in made:
            self._watch(leaf)
        return found

    def _watch(self, leaf: Tensor) -> None:
        storage = leaf.untyped_storage()
        name, size = storage._cdata, storage.nbytes()
        if name in self._known:
            return
        self._known.add(name)
        self._alive += size
        self.peak = max(self.peak, self._alive)
        weakref.finalize(storage, self._forget, name, size)

    def _forget(self, name: int, size: int) -> None:
        self._known.discard(name)
        self._alive -= size


def cost(subject: Placed) -> str | None:
    """Work and memory grow no faster than the variant declares, with weights and without.

    Returns:
        What is declared too high, in a sentence; None where declarations are near the truth.
    """
    variant = subject.variant
    if not isinstance(variant, Chain):  # a chain counts from where its own code changes
        measured = LONGEST // 2
        expect(
            variant.exponents_from <= measured,
            f"its growth is declared from {variant.exponents_from} keys on, and nobody can count "
            f"it there; declare what holds from {measured} keys on",
        )
    alone = 1.0 if subject.regime == "pool" else 0.0  # one query, however long the source is
    full = FULL - alone
    declared = {
        "operations": variant.time_exponent - alone,
        "peak bytes": variant.memory_exponent - alone,
    }
    limit = max(full, *declared.values()) + SLACK
    lengths = LENGTHS if variant.exponents_from <= LENGTHS[-2] else (*LENGTHS, LONGEST)
    reached = variant.exponents_from <= lengths[-2]
    plain = _counted(subject, False, lengths, limit)
    most = {name: power if reached else max(power, full) for name, power in declared.items()}
    _expect_growth(plain, most, " where no weights are wanted")
    if subject.weights and _counted(subject, True, lengths[:1], limit) != plain.first():
        most = {name: max(power, full) for name, power in declared.items()}
        _expect_growth(_counted(subject, True, lengths, limit), most, "")
    lean = [_less_than(name, power, plain) for name, power in declared.items()]
    return "; ".join(filter(None, lean)) or None


class Counts(NamedTuple):
    """Operations, and the most bytes at once, at every length."""

    lengths: tuple[int, ...]
    operations: list[int]
    peak: list[int]

    def of(self, name: str) -> list[int]:
        """The counts that a sentence calls so."""
        return self.peak if name == "peak bytes" else self.operations

    def first(self) -> "Counts":
        """Those at the first length, which are the same if the code is."""
        return Counts(self.lengths[:1], self.operations[:1], self.peak[:1])


def _expect_growth(found: Counts, most: dict[str, float], when: str) -> None:
    for name, power in most.items():
        counts = found.of(name)
        measured = exponent(counts)
        grows = f"{name}{when} grow with length to the power {measured:.2f}"
        seen = f"counts {counts} at lengths {list(found.lengths)}"
        expect(measured <= power + SLACK, f"{grows}, declared {power:g} ({seen})")


def _less_than(name: str, declared: float, found: Counts) -> str:
    """Say so if there is not even one operation, or one number, for what is declared."""
    counts, unit = found.of(name), NUMBER if name == "peak bytes" else 1
    if counts[-1] >= unit * found.lengths[-1] ** declared:
        return ""
    grow = f"{name} grow with length to the power {exponent(counts):.2f} without weights"
    return f"{grow}, and the declared {declared:g} is too high"


def _counted(subject: Placed, weights: bool, lengths: tuple[int, ...], limit: float) -> Counts:
    """Count at every length; what has twice grown faster than the limit is asked no further."""
    work: list[int] = []
    memory: list[int] = []
    for length in lengths:
        question = ask(subject, rows=1, queries=length, keys=length)
        meter = Meter()
        with torch.no_grad(), meter:
            answer(subject, question, ReadMode("expected", weights))
        work.append(meter.operations)
        memory.append(meter.peak)
        if max(_lately(work), _lately(memory)) > limit:
            break  # a cube of the longest would not fit into memory
    return Counts(lengths[: len(work)], work, memory)


def _lately(counts: list[int]) -> float:
    """The smaller power of the last two doublings; nothing before there are two."""
    return min(exponent(counts), exponent(counts[:-1])) if len(counts) > 2 else 0.0


def exponent(counts: list[int]) -> float:
    """Power of the last doubling."""
    return math.log2(max(counts[-1], 1) / max(counts[-2], 1))
