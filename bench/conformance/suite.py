"""The conformance suite: every check on a variant, in every place where it can stand."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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
from bench.conformance.crash import crash_of, crash_sentence, place_of
from bench.conformance.place import (
    IN_A_WINDOW,
    SHORT_WINDOW,
    Placed,
    build_subject,
    code_refusal,
    in_a_window,
    placements,
)
from bench.conformance.rules import CHECKS, COMPILE, expected_checks, not_applicable

Run = Callable[[Sequence[Placed], VariantSpec], str | None]
"""Runs a check in some places; returns what it has to say though it passed."""
Choose = Callable[[Sequence[Placed]], list[Placed]]
"""Chooses places from all in which a variant stands."""


def once(subjects: Sequence[Placed]) -> list[Placed]:
    """Every place, but not again with other options, for checks that find nothing more there."""
    return [subject for subject in subjects if not subject.placement.again]


@dataclass(frozen=True)
class Check:
    """A check, and where it looks."""

    run: Run
    places: Choose = once
    needs_place: bool = True
    """Whether it is skipped where the variant stands nowhere."""
    required: bool = False
    """Whether it fails there instead, and where the variant broke in some place."""


def each(check: Callable[[Placed], None]) -> Run:
    """Run in one place after the other; skipped only where every place skips."""

    def run(places: Sequence[Placed], spec: VariantSpec) -> None:
        reasons = []
        for subject in places:
            try:
                _guarded(check, (subject,), subject.where)
            except CheckSkipped as reason:
                reasons.append(str(reason))
        if len(reasons) == len(places):
            raise CheckSkipped("; ".join(sorted(set(reasons))))

    return run


def each_of_the_whole(check: Callable[[Placed, VariantSpec], None]) -> Run:
    """The same with the variant, for checks that look at what reads attention, too."""

    def run(places: Sequence[Placed], spec: VariantSpec) -> None:
        each(lambda subject: check(subject, spec))(places, spec)

    return run


def each_and_in_a_window(check: Callable[[Placed], None]) -> Run:
    """Run in every place, and behind a short window where parts say that it may forget keys."""

    def behind(windowed: VariantSpec, impl: Impl) -> None:
        try:
            subject = build_subject(windowed, IN_A_WINDOW, impl)
        except Refused:
            return
        check(subject)

    def run(places: Sequence[Placed], spec: VariantSpec) -> None:
        each(check)(places, spec)
        windowed = in_a_window(spec)
        causal = next((one for one in places if one.regime == "causal"), None)
        if windowed is not None and causal is not None:
            _guarded(behind, (windowed, causal.variant.impl), f"causal behind {SHORT_WINDOW}")

    return run


def first_said(check: Callable[[Placed], str | None]) -> Run:
    """Run in every place, and say the first thing that is to be said."""

    def run(places: Sequence[Placed], spec: VariantSpec) -> str | None:
        said = [_guarded(check, (subject,), subject.where) for subject in places]
        return next(filter(None, said), None)

    return run


def at_once(check: Callable[[Sequence[Placed], VariantSpec], str | None], where: str) -> Run:
    """Run once for all places."""
    return lambda places, spec: _guarded(check, (places, spec), where)


def of_options(check: Callable[[VariantSpec], str | None]) -> Run:
    """Run once, in no place."""
    return lambda places, spec: _guarded(check, (spec,), "options")


def in_regime(regime: Regime) -> Choose:
    """Places of one regime, for checks that have a meaning in it alone."""
    return lambda subjects: [subject for subject in subjects if subject.regime == regime]


def where_it_reads(subjects: Sequence[Placed]) -> list[Placed]:
    """Cross attention where the variant stands there, else the first place and all linked ones."""
    linked = [subject for subject in subjects if subject.slot.link is not None]
    return [one for one in subjects if one.regime == "cross"] or [*subjects[:1], *linked]


def where_it_reads_and_causal(subjects: Sequence[Placed]) -> list[Placed]:
    """The same and a causal place, whose source comes step by step and is no memory."""
    chosen = where_it_reads(subjects)
    seen = any(one.regime == "causal" for one in chosen)
    return chosen + [one for one in subjects if one.regime == "causal" and not seen][:1]


def first_and_causal(subjects: Sequence[Placed]) -> list[Placed]:
    """One place, and a causal one: code for one sequence of queries may be another there."""
    first, rest = subjects[:1], subjects[1:]
    seen = any(one.regime == "causal" for one in first)
    return [*first, *[one for one in rest if one.regime == "causal" and not seen][:1]]


def two(subjects: Sequence[Placed]) -> list[Placed]:
    """Two regimes, for checks that take long and find nothing in other heads beyond these."""
    first = sorted(subjects, key=lambda subject: not subject.placement.again)
    found = [next((s for s in first if s.regime == regime), None) for regime in REGIMES]
    chosen = [subject for subject in found if subject is not None][:2]
    if all(subject.placement.smallest for subject in chosen):
        chosen += [s for s in subjects if not s.placement.smallest][:1]
    return chosen


def two_and_windows(subjects: Sequence[Placed]) -> list[Placed]:
    """The same, and places whose options have windows that are copied out."""
    chosen = two(subjects)
    return chosen + [s for s in subjects if copies_windows(s) and s not in chosen]


SUITE: dict[str, Check] = {
    "config": Check(of_options(config), needs_place=False),
    "runs_somewhere": Check(lambda places, spec: None, required=True),
    "shapes": Check(each(shapes)),
    "causality": Check(each(causality), in_regime("causal")),
    "padding_invariance": Check(each(padding_invariance)),
    "batch_invariance": Check(each(batch_invariance)),
    "splits": Check(each_and_in_a_window(splits), list),
    "oracle": Check(each(oracle), list),
    "gradients": Check(each(gradients_law)),
    "weight_law": Check(each(weight_law)),
    "permutation_law": Check(each(permutation_law)),
    "dead_rows": Check(each(dead_rows)),
    "one_key": Check(each(one_key)),
    "dtypes": Check(each(dtypes)),
    "determinism": Check(each(determinism)),
    "stream": Check(each(stream), in_regime("cross")),
    "long": Check(each(long), two_and_windows),
    "memory_pure": Check(each(memory_pure)),
    "heads": Check(each(heads)),
    "output": Check(each_of_the_whole(output), where_it_reads_and_causal),
    "loss": Check(each_of_the_whole(loss), where_it_reads_and_causal),
    "start": Check(each_of_the_whole(start), where_it_reads),
    "start_entropy": Check(at_once(start_entropy, "fresh")),
    "cost": Check(first_said(cost), first_and_causal),
    "compile": Check(each(compile_law), two),
}
"""What each check does, and where."""


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
    machine = any(crash.environmental for crash in crashed)
    for name in asked:
        try:
            if name in without:
                raise CheckSkipped(without[name])
            says = _run(SUITE[name], spec, subjects, refused, crashed)
        except CheckSkipped as reason:
            skipped[name] = str(reason)
        except CheckFailed as reason:
            failed[name] = str(reason)
            machine |= reason.environmental
        else:
            passed.append(name)
            told |= {name: says} if says else {}
    wanted = expected_checks(spec, with_compile=True, impl=impl)
    expected = [name for name in asked if name in wanted]
    shown = spec.canonical.show()
    return Certificate(shown, tuple(passed), skipped, failed, tuple(expected), told, machine)


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
) -> tuple[list[Placed], dict[Regime, str], list[CheckFailed]]:
    """Where it stands, why it does not elsewhere, and what is said of places that broke."""
    found: list[Placed] = []
    refused: dict[Regime, str] = {}
    crashed: list[CheckFailed] = []
    for placement in placements(spec, regimes):
        try:
            found.append(build_subject(spec, placement, impl))
        except Refused as reason:
            refused[placement.regime] = str(reason)
            if placement.below:  # a first layer alone proves nothing of a stack
                return [], refused, crashed
        except Exception as error:  # noqa: BLE001  a variant that cannot be built gets a red certificate
            refused[placement.regime] = crash_sentence(error)
            crashed.append(crash_of(error, placement.regime))
    return found, refused, crashed


def _lacking(spec: VariantSpec, regimes: Sequence[Regime], impl: Impl) -> str:
    """Why code is refused wherever the variant stands by its usual code; nothing without such."""
    if impl == "auto":
        return ""
    reasons = [code_refusal(spec, placement, impl) for placement in placements(spec, regimes)]
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))


def _run(
    check: Check,
    spec: VariantSpec,
    subjects: Sequence[Placed],
    refused: dict[Regime, str],
    crashed: Sequence[CheckFailed],
) -> str | None:
    """Run one check; returns what it has to say though it passed."""
    places = check.places(subjects)
    why_not = "; ".join(sorted(set(refused.values()))) or "no place to run it in"
    if check.required and (crashed or not places):
        raise crashed[0] if crashed else CheckFailed(why_not)
    if check.needs_place and not places:
        raise CheckSkipped(why_not)
    return check.run(places, spec)


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
        raise crash_of(error, where) from error
