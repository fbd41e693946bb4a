"""Hold two computations together: outputs, gradients, and a record of how far apart they are."""

import importlib
import importlib.metadata
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import variants
from bench.api.build import build_variant
from bench.api.call import Dims, QueryShape
from bench.api.resolve import resolve
from bench.api.source import Source
from bench.api.variant import Variant
from bench.docs.peers import PeerComparison
from tests.peers.repositories import HOST, REPOSITORIES

LIMITS = {torch.float32: 1e-5, torch.float64: 1e-10}


def peer(module: str, package: str | None = None) -> ModuleType:
    """Import a reference, or skip all tests of the file and say what is missing.

    A library that warns when it is imported must not fail our tests, where warnings are errors.
    """
    package = package or module.partition(".")[0]
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(
            f"{package} is not installed; the extra `peers` has it", allow_module_level=True
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


@dataclass
class Agreement:
    """What the tests of a session found."""

    stored: frozenset[tuple[str, str, str]]
    """Keys of the comparisons that are published."""
    recording: bool
    commit: str
    """Of our code."""
    found: list[PeerComparison] = field(default_factory=list)

    def __call__(
        self,
        variant: str,
        package: str,
        compared: str,
        ours: Tensor,
        theirs: Tensor,
        *,
        inputs: Mapping[str, tuple[Tensor, Tensor] | Tensor] | None = None,
        limit: float | None = None,
        note: str = "",
    ) -> None:
        """Hold one output against another, and the gradients of one random sum of each.

        Args:
            variant: Our selector.
            package: Whose code `theirs` is, `transformers`, `transformers (Llama)`, or a repository
                `owner/name`.
            compared: What was computed, in a few words.
            ours: Our output.
            theirs: That of the reference, of the same shape.
            inputs: Leaves by name: one that both computations read, or ours and theirs.
            limit: Largest difference; by default that of the precision.
            note: Why the limit is wide, or where the reference differs.
        """
        resolve(variant)
        assert ours.dtype == theirs.dtype, f"{ours.dtype} beside {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{ours.shape} beside {theirs.shape}"
        limit = LIMITS[ours.dtype] if limit is None else limit
        named, _, model = package.partition(" ")
        if "/" in named:
            shown, version = f"{HOST}/{named}", REPOSITORIES[named].version
        else:
            shown, version = named, importlib.metadata.version(named)
        result = PeerComparison(
            variant=variant,
            reference=" ".join(part for part in (shown, model, version) if part),
            compared=compared,
            precision=str(ours.dtype).removeprefix("torch."),
            output=difference([ours], [theirs]),
            gradient=largest_gradient(ours, theirs, inputs) if inputs else None,
            limit=limit,
            note=note,
            commit=self.commit,
        )
        for what, far in (("output", result.output), ("gradient", result.gradient)):
            assert far is None or far <= limit, f"{what} of {variant}: {far:.2g} from {package}"
        missing = f"no record of {result.key}; run with BENCH_PEERS_OUT (see CONTRIBUTING)"
        assert self.recording or result.key in self.stored, missing
        self.found.append(result)


def difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Largest difference of some tensors; of each, a share of its largest number if above 1."""
    found, largest = 0.0, 0.0
    for one, two in zip(ours, theirs, strict=True):
        # a number a head may stand in a list of theirs and in a column of ours
        wanted = two.detach().reshape(one.shape)
        size = wanted.abs().max().item()
        far = (one.detach() - wanted).abs().max().item()
        assert math.isfinite(far), "not a number"
        found, largest = max(found, far / max(1.0, size)), max(largest, size)
    assert largest > 1e-4, "a comparison of zeros shows nothing"
    return found


def largest_gradient(
    ours: Tensor, theirs: Tensor, inputs: Mapping[str, tuple[Tensor, Tensor] | Tensor]
) -> float:
    """Largest difference of the gradients of one random sum of the outputs."""
    pairs = [one if isinstance(one, tuple) else (one, one) for one in inputs.values()]
    generator = torch.Generator().manual_seed(7)
    along = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    mine = torch.autograd.grad(ours, [one for one, _ in pairs], along, retain_graph=True)
    wanted = torch.autograd.grad(theirs, [one for _, one in pairs], along, retain_graph=True)
    return difference(mine, wanted)


def drawn(
    *shape: int, seed: int = 0, dtype: torch.dtype = torch.float64, scale: float = 1.0
) -> Tensor:
    """Normal numbers whose gradient is wanted."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    return found.to(dtype).requires_grad_()


def below_heads(
    selector: str,
    *,
    heads: int,
    width: int,
    kv_heads: int | None = None,
    value_width: int | None = None,
    regime: str = "causal",
    dtype: torch.dtype = torch.float64,
    seed: int | None = 0,
    **dims: int,
) -> Variant:
    """A variant without projections, its parameters drawn (or as they begin, without a seed)."""
    variants.load_all()
    kv_heads, value_width = kv_heads or heads, value_width or width
    place = Dims(heads, kv_heads, width, width, value_width, heads * width, regime=regime, **dims)
    given = {"padding", "stepwise", "equal_heads", "equal_width"}
    given |= {"relations"} if place.relations else set()
    made = build_variant(resolve(selector), place, given=frozenset(given)).to(dtype)
    if seed is not None:
        draw_parameters(made, seed)
    return made


def draw_parameters(module: nn.Module, seed: int = 0, scale: float = 0.5) -> None:
    """Draw every parameter, so that nothing is compared at a zero where it began."""
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=seed + index, scale=scale))


def attend(
    variant: Variant,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    key_extras: Mapping[str, Tensor] | None = None,
    query_extras: Mapping[str, Tensor] | None = None,
    **call: Any,
) -> Tensor:
    """Output for queries, keys and values of heads, all at once."""
    source = Source(key=key, value=value, mask=mask, extras=dict(key_extras or {}))
    rows, heads, _, width = query.shape
    like = QueryShape(rows, heads, width, query.dtype, query.device)
    own = variant.dims.regime in ("causal", "self")
    memory = None if own else variant.receive(source)
    found = variant.attend(
        query,
        memory,
        variant.start(memory, like),
        new=source if own else None,
        extras=dict(query_extras or {}),
        **call,
    )
    return found.output


def copy_weights(pairs: Mapping[nn.Parameter, Tensor]) -> None:
    """Give parameters of one side the numbers of the other."""
    with torch.no_grad():
        for parameter, numbers in pairs.items():
            parameter.copy_(numbers)
