"""The conformance suite: every check on a variant, in every place where it can stand."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from bench.api.call import REGIMES, Regime
from bench.api.errors import BenchError, Refused, UnknownName
from bench.api.impl import Impl
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector
from bench.conformance.certificate import Certificate, CheckFailed, CheckSkipped
from bench.conformance.checks_causality import causality
from bench.conformance.checks_cost import cost
from bench.conformance.checks_heads import heads
from bench.conformance.checks_invariance import batch_invariance, permutation_law, splits
from bench.conformance.checks_length import copies_windows, long
from bench.conformance.checks_loss import loss
from bench.conformance.checks_numeric import compile_law, dtypes
from bench.conformance.checks_oracle import gradients_law, oracle
from bench.conformance.checks_output import output
from bench.conformance.checks_padding import padding_invariance
from bench.conformance.checks_start import start
from bench.conformance.checks_start_entropy import start_entropy
from bench.conformance.checks_stream import stream
from bench.conformance.checks_structure import config, determinism, memory_pure, shapes
from bench.conformance.checks_weights import dead_rows, one_key, weight_law
from bench.conformance.crash import crash_sentence, place_of
from bench.conformance.place import Placed, build_subject, code_refusal, placements
from bench.conformance.rules import CHECKS, COMPILE, expected_checks, not_applicable

IN_EVERY_PLACE: dict[str, Callable[[Placed], None]] = {
    "shapes": shapes,
    "causality": causality,
    "padding_invariance": padding_invariance,
    "batch_invariance": batch_invariance,
    "splits": splits,
    "oracle": oracle,
    "gradients": gradients_law,
    "weight_law": weight_law,
    "permutation_law": permutation_law,
    "dead_rows": dead_rows,
    "one_key": one_key,
    "dtypes": dtypes,
    "determinism": determinism,
    "stream": stream,
    "long": long,
    "memory_pure": memory_pure,
    "heads": heads,
    "compile": compile_law,
}
OF_THE_WHOLE: dict[str, Callable[..., None]] = {"output": output, "loss": loss, "start": start}
"""Checks that look at what reads attention, too; in cross attention where the variant stands."""
IN_TWO_PLACES = (COMPILE, "long")
"""Checks that take long, and find nothing in other heads that they do not find in these."""
LIMITED: dict[str, tuple[Regime, ...]] = {"causality": ("causal",), "stream": ("cross",)}
"""Checks that have a meaning in some regimes only."""


def certify(
    selector: str | Selector,
    *,
    regimes: Sequence[Regime] | None = None,
    checks: Iterable[str] | None = None,
    impl: Impl = "auto",
) -> Certificate:
    """Run the suite on a variant; the caller has loaded variants and plug-ins.

    Args:
        selector: The variant, as on the command line.
        regimes: Where to build it; None for wherever it can stand.
        checks: Names of checks; None for all but `compile`.
        impl: Code to certify.

    Raises:
        UnknownName: No such variant or check.
        InvalidConfig: An option has a wrong value.
    """
    spec = resolve(selector)
    asked = _asked(checks)
    subjects, refused, crashed = _subjects(spec, regimes or REGIMES, impl)
    if not (subjects or crashed) and (lacking := _lacking(spec, regimes or REGIMES, impl)):
        return Certificate.of_refused_code(spec.canonical.show(), asked, lacking)
    without = not_applicable(spec, impl)
    passed: list[str] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    told: dict[str, str] = {}
    for name in asked:
        try:
            if name in without:
                raise CheckSkipped(without[name])
            if name == "runs_somewhere" and crashed:
                raise CheckFailed(crashed[0])
            says = _run(name, spec, subjects, refused)
        except CheckSkipped as reason:
            skipped[name] = str(reason)
        except CheckFailed as reason:
            failed[name] = str(reason)
        else:
            passed.append(name)
            told |= {name: says} if says else {}
    wanted = expected_checks(spec, with_compile=True, impl=impl)
    expected = [name for name in asked if name in wanted]
    shown = spec.canonical.show()
    return Certificate(shown, tuple(passed), skipped, failed, tuple(expected), told)


def _asked(checks: Iterable[str] | None) -> tuple[str, ...]:
    if checks is None:
        return CHECKS
    names = tuple(checks)
    known = (*CHECKS, COMPILE)
    for name in names:
        if name not in known:
            raise UnknownName.among("check", name, known)
    return tuple(name for name in known if name in names)


def _subjects(
    spec: VariantSpec, regimes: Sequence[Regime], impl: Impl
) -> tuple[list[Placed], dict[Regime, str], list[str]]:
    """Where it stands, why it does not elsewhere, and sentences of places that broke."""
    found: list[Placed] = []
    refused: dict[Regime, str] = {}
    crashed: list[str] = []
    for placement in placements(spec, regimes):
        try:
            found.append(build_subject(spec, placement, impl))
        except Refused as reason:
            refused[placement.regime] = str(reason)
            if placement.below:  # a first layer alone proves nothing of a stack
                return [], refused, crashed
        except Exception as error:  # noqa: BLE001  a variant that cannot be built gets a red certificate
            refused[placement.regime] = crash_sentence(error)
            crashed.append(f"{placement.regime}: {crash_sentence(error)}")
    return found, refused, crashed


def _lacking(spec: VariantSpec, regimes: Sequence[Regime], impl: Impl) -> str:
    """Why code is refused wherever the variant stands by its usual code; nothing without such."""
    if impl == "auto":
        return ""
    reasons = [code_refusal(spec, placement, impl) for placement in placements(spec, regimes)]
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))


def _run(
    name: str, spec: VariantSpec, subjects: Sequence[Placed], refused: dict[Regime, str]
) -> str | None:
    """Run one check; returns what it has to say though it passed."""
    why_not = "; ".join(sorted(set(refused.values()))) or "no place to run it in"
    places = _places(name, subjects)
    if name == "config":
        return _guarded(config, (spec,), "options")
    if name == "runs_somewhere" and not subjects:
        raise CheckFailed(why_not)
    if name != "runs_somewhere" and not places:
        raise CheckSkipped(why_not)
    if name == "cost":
        said = [_guarded(cost, (subject,), subject.where) for subject in places]
        return next(filter(None, said), None)
    if name == "start_entropy":
        return _guarded(start_entropy, (places, spec), "fresh")
    if name in OF_THE_WHOLE:
        _run_in_places(partial(OF_THE_WHOLE[name], spec=spec), places)
    elif name != "runs_somewhere":
        _run_in_places(IN_EVERY_PLACE[name], places)
    return None


def _places(name: str, subjects: Sequence[Placed]) -> list[Placed]:
    if name == "cost":  # code that answers one sequence of queries may be another under causality
        first, rest = subjects[:1], subjects[1:]
        seen = any(one.regime == "causal" for one in first)
        return [*first, *[one for one in rest if one.regime == "causal" and not seen][:1]]
    if name in IN_TWO_PLACES:
        found = [next((s for s in subjects if s.regime == regime), None) for regime in REGIMES]
        chosen = [subject for subject in found if subject is not None][:2]
        if all(subject.placement.smallest for subject in chosen):
            chosen += [s for s in subjects if not s.placement.smallest][:1]
        if name == "long":  # the smallest options have windows that are copied out
            chosen += [s for s in subjects if copies_windows(s) and s not in chosen]
        return chosen
    if name in OF_THE_WHOLE:
        linked = [s for s in subjects if s.slot.link is not None]
        return [s for s in subjects if s.regime == "cross"] or [*subjects[:1], *linked]
    return [s for s in subjects if s.regime in LIMITED.get(name, REGIMES)]


def _run_in_places(check: Callable[[Placed], None], places: Sequence[Placed]) -> None:
    """Run in every place; skipped only where every place skips."""
    reasons = []
    for subject in places:
        try:
            _guarded(check, (subject,), subject.where)
        except CheckSkipped as reason:
            reasons.append(str(reason))
    if len(reasons) == len(places):
        raise CheckSkipped("; ".join(sorted(set(reasons))))


def _guarded(
    check: Callable[..., str | None], arguments: tuple[object, ...], where: str
) -> str | None:
    """Run a check, name the place in its sentence, and turn a crash into a failure."""
    try:
        return check(*arguments)
    except CheckFailed as reason:
        raise CheckFailed(f"{where}: {reason}") from None
    except CheckSkipped:
        raise
    except BenchError as error:
        sentence = f"{type(error).__name__}: {error}{place_of(error)}"
        raise CheckFailed(f"{where}: {sentence}") from error
    except Exception as error:
        raise CheckFailed(f"{where}: {crash_sentence(error)}") from error
