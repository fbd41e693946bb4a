"""Growth of work and memory with length, from counted operations and bytes, never the clock."""

import math
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from bench.api.resolve import VariantSpec
from bench.conformance.compare import expect
from bench.conformance.place import Placed
from bench.conformance.question import ReadMode, answer, ask

LENGTHS = (8, 16, 32, 64, 128)
"""Four doublings; the exponent is read off the last, where constants matter least."""
SLACK = 0.25
QUADRATIC = 2.0
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
        made = [leaf for leaf in tree_leaves(found) if isinstance(leaf, Tensor)]
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


def cost(subject: Placed, spec: VariantSpec) -> None:
    """Work and memory grow no faster than the class that the variant declares."""
    declared = declared_exponent(spec)
    work, memory = [], []
    for length in LENGTHS:
        question = ask(subject, rows=1, queries=length, keys=length)
        meter = Meter()
        with torch.no_grad(), meter:
            answer(subject, question, ReadMode("expected", subject.weights))
        work.append(meter.operations)
        memory.append(meter.peak)
    for name, counts in (("operations", work), ("peak bytes", memory)):
        measured = exponent(counts)
        grows = f"{name} grow with length to the power {measured:.2f}"
        sentence = f"{grows}, declared {declared:g} (counts {counts} at lengths {list(LENGTHS)})"
        expect(measured <= declared + SLACK, sentence)


def exponent(counts: list[int]) -> float:
    """Power of the last doubling."""
    return math.log2(max(counts[-1], 1) / max(counts[-2], 1))


def declared_exponent(spec: VariantSpec) -> float:
    """What the parts declare: the largest `cost_exponent` of those that have one, else two."""
    found = [float(part.cost_exponent) for _, part in spec.parts if hasattr(part, "cost_exponent")]
    return max(found, default=QUADRATIC)
