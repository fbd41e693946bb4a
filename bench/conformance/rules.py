"""Which checks a variant is expected to pass, derived from what its parts say of themselves."""

from collections.abc import Mapping

from bench.api import registry
from bench.api.axes import CHAIN_AXES
from bench.api.call import REGIMES, Regime
from bench.api.capabilities import Capability, part_of
from bench.api.checks import MEANING
from bench.api.history import History
from bench.api.impl import Impl
from bench.api.mask import Mask
from bench.api.position import Position
from bench.api.resolve import VariantSpec
from bench.conformance.checks_loss import joints_of
from bench.conformance.place import WEIGHTED, gives, refusals

COMPILE = "compile"
"""Runs only when asked for: it needs a process without the type-checking import hook."""
OF_WEIGHTS = ("weight_law", "start_entropy")
"""Checks that look at weights."""
CHECKS = tuple(check for check in MEANING if check != COMPILE)
"""Checks of every certificate."""


def expected_checks(
    spec: VariantSpec, *, with_compile: bool = False, impl: Impl = "auto"
) -> tuple[str, ...]:
    """Checks that this variant has to pass."""
    names = (*CHECKS, COMPILE) if with_compile else CHECKS
    without = not_applicable(spec, impl)
    return tuple(name for name in names if name not in without)


def not_applicable(spec: VariantSpec, impl: Impl = "auto") -> dict[str, str]:
    """Checks without meaning for this variant, each with its reason."""
    refused = refusals(spec)
    found: dict[str, str] = {}
    if "causal" in refused:
        found["causality"] = refused["causal"]
    open_regimes = set(REGIMES) - set(refused)
    if open_regimes <= {"pool"}:
        found["splits"] = "pooling asks one query, which cannot be split"
    given = gives(spec)
    found |= _without_weights(given, impl)
    if impl == "sdpa":
        found |= _readers_of_weights(spec)
    if "stream" not in given:
        found["stream"] = "has no streaming form"
    ordered = _order_matters(spec, given, refused)
    if ordered:
        found["permutation_law"] = ordered
    return found | _without_loss(spec)


def _without_weights(given: frozenset[Capability], impl: Impl) -> dict[str, str]:
    """Checks of weights that have no meaning here."""
    if not given & WEIGHTED:
        return dict.fromkeys(OF_WEIGHTS, "gives no explicit weights")
    if impl == "sdpa":
        return dict.fromkeys(OF_WEIGHTS, "impl=sdpa cannot return weights")
    if "signed" in given:
        return {"start_entropy": "weights of either sign have no entropy"}
    return {}


def _readers_of_weights(spec: VariantSpec) -> dict[str, str]:
    """Checks of an output or a loss that reads weights, where the code gives none."""
    return {
        axis: f"impl=sdpa cannot return the weights that {selector.name} reads"
        for axis in ("output", "loss")
        for selector in spec.axes.get(axis, ())
        if "weights" in part_of(registry.find(axis, selector.name).target).needs
    }


def _without_loss(spec: VariantSpec) -> dict[str, str]:
    if spec.axes.get("loss") or joints_of(spec):
        return {}
    return {"loss": "has no loss of its own"}


def _order_matters(
    spec: VariantSpec, given: frozenset[Capability], refused: Mapping[Regime, str]
) -> str:
    """Why keys in another order may give another output, or nothing."""
    if {"cross", "self", "pool"} <= set(refused):
        return "stands only in causal places, where order is time"
    if "key_local" not in given:
        owner = spec.name if spec.mechanism is not None else spec.axes["score"][0].name
        return f"{owner} does not look at one key at a time"
    for axis in CHAIN_AXES:
        for selector in spec.axes.get(axis, ()):
            if _looks_at_places(registry.find(axis, selector.name).target):
                return f"{selector.name} looks at the places of keys"
    if spec.mechanism is None and ("stream" in given or "ordered" in given):
        return f"{spec.axes['normalizer'][0].name} reads keys in order"
    return ""


def _looks_at_places(part: object) -> bool:
    if not isinstance(part, type):
        return False
    if issubclass(part, Position):  # a hook that is there counts, though options may keep it still
        hooks = ("turn", "energy", "output", "features")
        return any(getattr(part, hook) is not getattr(Position, hook) for hook in hooks)
    return issubclass(part, History) or (issubclass(part, Mask) and part.kind != "full")
