"""Certificates as plain text."""

import re
from collections.abc import Sequence

from tabulate import tabulate

from bench.api.checks import MEANING
from bench.conformance.certificate import Certificate

CAUSES = ("determinism", "batch_invariance", "padding_invariance", "causality")
"""Checks without which most others mean little: an answer that changes, or that is read from what
must not be read, agrees with nothing."""

AT_A_LINE = re.compile(r"\((see )?[^\s()]+\.py(:\d+)?\)$")
"""How the sentence of a crash ends; it is the same crash wherever the variant stands."""


def as_text(certificates: Sequence[Certificate]) -> str:
    """Print what was checked, a table of counts, what failed, what else is told, and every skip."""
    rows = [
        [
            found.variant,
            found.verdict,
            len(found.passed),
            len(found.skipped),
            len(found.failed),
            len(found.expected),
        ]
        for found in certificates
    ]
    heads = ["variant", "certificate", "passed", "skipped", "failed", "expected"]
    parts = [*_checked(certificates), tabulate(rows, heads, tablefmt="simple")]
    parts += _refusals(certificates)
    parts += [line for found in certificates for line in _failures(found)]
    parts += [
        f"{found.variant}: {check} passed, and says: {what}"
        for found in certificates
        for check, what in found.told.items()
    ]
    parts += _skips(certificates)
    return "\n".join(parts)


def _checked(certificates: Sequence[Certificate]) -> list[str]:
    """What was looked at, a line a check, whatever became of it."""
    ran = {check for found in certificates for check in (*found.passed, *found.failed)}
    lines = [f"{check}: {meaning}" for check, meaning in MEANING.items() if check in ran]
    return ["What each check holds:", *lines, ""] if lines else []


def _refusals(certificates: Sequence[Certificate]) -> list[str]:
    """A line for each reason why variants have no such code as was asked for, and what to do."""
    names: dict[str, list[str]] = {}
    for found in certificates:
        if found.refused:
            names.setdefault(found.refused, []).append(found.variant)
    lines = [f"refused: {why} ({', '.join(variants)})" for why, variants in names.items()]
    return [*lines, "leave --impl out: every variant has code of its own."] if lines else []


def _failures(found: Certificate) -> list[str]:
    """A line a sentence, with all checks that say it; what may cause others comes first."""
    name = found.variant
    groups: dict[str, list[str]] = {}
    for check in sorted(found.failed, key=lambda check: check not in CAUSES):
        groups.setdefault(_crash_of(found.failed[check]), []).append(check)
    # a sentence that others share is no cause of theirs
    ordered = sorted(groups.values(), key=lambda checks: not set(checks) <= set(CAUSES))
    lines = [f"{name}: {_fails(checks)}: {found.failed[checks[0]]}" for checks in ordered]
    causes = sum(set(checks) <= set(CAUSES) for checks in ordered)
    if 0 < causes < len(ordered):
        lines.insert(causes, f"{name}: other failures may follow from this")
    missing = found.missing().items()
    return lines + [f"{name}: {check} was expected but skipped: {why}" for check, why in missing]


def _crash_of(sentence: str) -> str:
    """What names a place in the code, without the place of the variant; others as they are."""
    return sentence.partition(": ")[2] if AT_A_LINE.search(sentence) else sentence


def _fails(checks: Sequence[str]) -> str:
    if len(checks) == 1:
        return f"{checks[0]} failed"
    return f"failed in {len(checks)} checks ({', '.join(checks)})"


def _skips(certificates: Sequence[Certificate]) -> list[str]:
    """Skips grouped by check and reason, so that thirty equal sentences are one."""
    names: dict[tuple[str, str], list[str]] = {}
    for found in (one for one in certificates if not one.refused):
        for check, why in found.skipped.items():
            if check not in found.expected:
                names.setdefault((check, why), []).append(found.variant)
    return [
        f"{check} skipped: {why} ({', '.join(variants)})"
        for (check, why), variants in sorted(names.items())
    ]
