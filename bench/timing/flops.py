"""Operations of one forward call: counted by torch, counted here, and by formula.

Three numbers because none is enough. Torch's counter knows matrix products alone, so the tanh of
additive attention is free to it; the pointwise count has what it leaves out; the formula is what
papers quote, with half of the pairs under causality although most code computes all of them.

What is neither a matrix product nor pointwise has a rule of its own:

| operation | counts as |
| --- | --- |
| triangular system of n unknowns, m right-hand sides | n^2 m FLOPs, less n m for a unit diagonal |
| any system of n unknowns, m right-hand sides | 2 n^3 / 3 FLOPs for its factors, 2 n^2 m to solve |
| matrix times vector | two FLOPs an entry of the matrix |
| sum, mean, product, largest, cumulative sum | an element for each element that is read |
| norm, variance | an element for each element that is read |
| distances between vectors of length E | E elements for each distance |
| gather, index | an element for each element that is written |
| sort along n | ceil(log2 n) comparisons, at least one, for each element that is read |
| the k largest along n | ceil(log2 k) comparisons, at least one, for each element that is read |
| a logarithm of a sum of exponentials | an exponential for each element that is read |

A softmax is one operation, so the sum inside it is not counted; neither is one inside fused code.
Scatters, Fourier transforms and decompositions have no rule, and count as nothing.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from bench.api.call import Dims
from bench.api.chain import Chain
from bench.api.variant import Variant
from bench.timing.shape import AttendShape
from bench.timing.timer import Work

MOVES = frozenset({"clone", "copy_", "fill_", "zero_"})
"""Tagged as pointwise by torch, but they compute nothing."""

_SOFTMAX = ("_softmax", "_safe_softmax", "_log_softmax")
_EXPONENTIAL = (*_SOFTMAX, "exp", "exp2", "expm1", "sigmoid", "softplus", "silu")
_LOGARITHM = ("log", "log2", "log1p", "log_sigmoid_forward", "logaddexp", "logcumsumexp")
_OTHER = ("tanh", "sin", "cos", "erf", "erfc", "erfinv", "gelu", "mish", "elu", "celu", "selu")
TRANSCENDENTAL = frozenset((*_EXPONENTIAL, *_LOGARITHM, *_OTHER))
"""Operations with one elementary function an element; softmax counts as one exponential."""

_SUMS = ("sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin")
_SPREADS = ("linalg_vector_norm", "var", "var_mean", "std")
_SCANS = ("cumsum", "cumprod", "cummax", "cummin")
READS = frozenset((*_SUMS, *_SPREADS, *_SCANS))
"""Operations that look once at every element that they read."""
INDEXING = frozenset({"gather", "index", "index_select", "take_along_dim", "embedding"})
"""Operations that move every element that they write."""


class Counts(NamedTuple):
    """Operations of one call."""

    matmul_flops: int
    """Of matrix products, convolutions, fused attention and triangular systems; a multiply-add is
    two."""
    elementwise: int
    """Elements that pointwise operations write, elementary functions included, and what reductions,
    scans, indexing, sorting and selection count as."""
    transcendental: int
    """Elements that went through an elementary function."""


@runtime_checkable
class HasFlops(Protocol):
    """A score or mechanism that knows a formula for one forward call."""

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """Count a multiply-add as two, all pairs of queries and keys."""
        ...


class Pointwise(TorchDispatchMode):
    """Counts elements that pointwise operations write, and what is done besides matrix products.

    What fused attention does inside is one exponential a pair; other fused code shows nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elementwise = 0
        self.transcendental = 0

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run the operation and count its results."""
        results = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name.startswith("_scaled_dot_product") and "backward" not in name:
            pairs = args[0].shape[:-1].numel() * args[1].shape[-2]
            self.elementwise += pairs
            self.transcendental += pairs
        elif name.rstrip("_") in TRANSCENDENTAL or name in TRANSCENDENTAL:
            size = _numel(results)
            self.elementwise += size
            self.transcendental += size
        elif name == "logsumexp":
            self.elementwise += args[0].numel()
            self.transcendental += args[0].numel()
        elif (rule := BESIDES.get(name) or BESIDES.get(name.rstrip("_"))) is not None:
            self.elementwise += rule(args, kwargs or {}, results)
        elif torch.Tag.pointwise in func.tags and name not in MOVES:
            self.elementwise += _numel(results)
        return results


Rule = Callable[[tuple[Any, ...], Mapping[str, Any], object], int]


def _read(given: tuple[Any, ...], named: Mapping[str, Any], results: object) -> int:
    return int(given[0].numel())


def _written(given: tuple[Any, ...], named: Mapping[str, Any], results: object) -> int:
    return _numel(results)


def _distances(given: tuple[Any, ...], named: Mapping[str, Any], results: object) -> int:
    return _numel(results) * int(given[0].shape[-1])


def _sorted(given: tuple[Any, ...], named: Mapping[str, Any], results: object) -> int:
    found = given[0]
    axis = given[1] if len(given) > 1 else named.get("dim", -1)
    return int(found.numel()) * _bits(found.shape[axis] if found.dim() else 1)


def _selected(given: tuple[Any, ...], named: Mapping[str, Any], results: object) -> int:
    return int(given[0].numel()) * _bits(given[1])


def _bits(count: int) -> int:
    """Comparisons that tell so many things apart, at least one."""
    return max(1, math.ceil(math.log2(max(count, 1))))


BESIDES: dict[str, Rule] = {
    **dict.fromkeys(READS, _read),
    **dict.fromkeys(INDEXING, _written),
    "sort": _sorted,
    "argsort": _sorted,
    "topk": _selected,
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), _distances),
}
"""What an operation that is not pointwise counts as, from its arguments and results."""


def count_operations(work: Work) -> Counts:
    """Call once and count."""
    known = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _cpu_sdpa_flops,
        torch.ops.aten.linalg_solve_triangular: _triangular_flops,
        torch.ops.aten._linalg_solve_ex: _system_flops,
        torch.ops.aten.bmm: _batched_flops,
        torch.ops.aten.addbmm: _added_batch_flops,
        torch.ops.aten.mv: _vector_flops,
        torch.ops.aten.addmv: _added_vector_flops,
        torch.ops.aten.dot: _vector_flops,
    }
    # torch's counter has no entry for these and would call them free, but for `bmm`, whose format
    # of results it takes for their shape
    counter = FlopCounterMode(display=False, custom_mapping=known)
    with _recurrent_layers_in_steps(), Pointwise() as seen, counter:
        work()
    return Counts(counter.get_total_flops(), seen.elementwise, seen.transcendental)


@contextmanager
def _recurrent_layers_in_steps() -> Iterator[None]:
    """Run recurrent layers step by step.

    oneDNN runs an LSTM as one operation, and cuDNN any recurrent layer. No counter sees the
    products inside.
    """
    with ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a format of Intel GPUs, which nothing asks for
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False, allow_tf32=False))
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


def analytic_flops(variant: Variant, shape: AttendShape) -> int | None:
    """FLOPs of one forward call by formula, or None where nobody wrote one for all of its parts.

    The convention of the literature, 4 B H L S E for dot-product attention and half of it under
    causality. Only terms in L S count: projections that a score makes are linear in S.
    """
    pairs = _pairs_flops(variant, shape)
    if pairs is None:
        return None
    return pairs // 2 if shape.regime == "causal" else pairs


def _pairs_flops(variant: Variant, shape: AttendShape) -> int | None:
    sizes = (shape.batch, shape.heads, shape.queries, shape.length, variant.dims)
    if isinstance(variant, HasFlops):
        return variant.flops(*sizes)
    if not isinstance(variant, Chain) or "weighted_sum" not in variant.readout.gives:
        return None
    if variant.mask.kind != "full" or _multiplies_besides(variant):
        return None
    score = variant.score
    energy = dot_flops(*sizes) if "dot_form" in score.gives else None
    if isinstance(score, HasFlops):
        energy = score.flops(*sizes)
    return None if energy is None else energy + weighted_sum_flops(*sizes)


def _multiplies_besides(chain: Chain) -> bool:
    """Whether something besides the score and the readout takes products for each pair.

    Features are mapped to the units of a score, and a normalizer with inputs of its own compares
    them, as an index does.
    """
    normalizer = chain.normalizer
    return (
        chain.has_features
        or bool(normalizer.key_inputs or normalizer.query_inputs)
        or any(p.changes_output or p.energy_reads or p.multiplies_pairs for p in chain.positions)
    )


def dot_flops(batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
    """Energies of a score that is a scaled dot product: 2 B H L S Ek."""
    return 2 * batch * heads * queries * keys * dims.key_width


def weighted_sum_flops(batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
    """A weighted sum of values: 2 B H L S Ev."""
    return 2 * batch * heads * queries * keys * dims.value_width


def _cpu_sdpa_flops(
    query: torch.Size, key: torch.Size, value: torch.Size, *_: object, **__: object
) -> int:
    return int(sdpa_flop_count(query, key, value))


def _triangular_flops(system: torch.Size, sides: torch.Size, *_: object, **options: object) -> int:
    """Each unknown takes a product and a difference for every one before it, and a division."""
    left = options.get("left", True)
    rows = system[-1] ** 2 - (system[-1] if options.get("unitriangular", False) else 0)
    batch = torch.broadcast_shapes(system[:-2], sides[:-2])
    return rows * sides[-1 if left else -2] * math.prod(batch)


def _system_flops(system: torch.Size, sides: torch.Size, *_: object, **options: object) -> int:
    """Factors of each matrix, and two triangular systems for each right-hand side.

    As torch reads them, sides are vectors if they have the shape of the unknowns of every matrix.
    """
    unknowns, batch = system[-1], system[:-2]
    if len(sides) == 1 or sides == system[:-1]:
        columns, solved = 1, torch.broadcast_shapes(batch, sides[:-1])
    else:
        columns = sides[-1 if options.get("left", True) else -2]
        solved = torch.broadcast_shapes(batch, sides[:-2])
    factors = math.prod(batch) * 2 * unknowns**3 // 3
    return factors + math.prod(solved) * 2 * unknowns**2 * columns


def _batched_flops(first: torch.Size, second: torch.Size, *_: object, **__: object) -> int:
    return 2 * math.prod(first) * second[-1]


def _added_batch_flops(
    added: torch.Size, first: torch.Size, second: torch.Size, *_: object, **__: object
) -> int:
    return _batched_flops(first, second)


def _vector_flops(matrix: torch.Size, *_: object, **__: object) -> int:
    return 2 * math.prod(matrix)


def _added_vector_flops(added: torch.Size, matrix: torch.Size, *_: object, **__: object) -> int:
    return 2 * math.prod(matrix)


def _numel(results: object) -> int:
    return sum(leaf.numel() for leaf in tree_leaves(results) if isinstance(leaf, Tensor))
