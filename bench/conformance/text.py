"""Certificates as plain text."""

from collections.abc import Sequence

from tabulate import tabulate

from bench.api.checks import MEANING
from bench.conformance.certificate import Certificate

CAUSES = ("determinism", "batch_invariance")
"""Checks without which most others mean little: an answer that changes agrees with nothing."""


def as_text(certificates: Sequence[Certificate]) -> str:
    """Print what was checked, a table of counts, what failed, what else is told, and every skip."""
    rows = [
        [
            found.variant,
            "green" if found.green() else "red",
            len(found.passed),
            len(found.skipped),
            len(found.failed),
            len(found.expected),
        ]
        for found in certificates
    ]
    heads = ["variant", "certificate", "passed", "skipped", "failed", "expected"]
    parts = [*_checked(certificates), tabulate(rows, heads, tablefmt="simple")]
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


def _failures(found: Certificate) -> list[str]:
    """A line a sentence, with all checks that say it; what may cause others comes first."""
    name = found.variant
    checks: dict[str, list[str]] = {}
    for check in sorted(found.failed, key=lambda check: check not in CAUSES):
        checks.setdefault(found.failed[check], []).append(check)
    lines = [f"{name}: {_fails(names)}: {why}" for why, names in checks.items()]
    others = set(found.failed) - set(CAUSES)
    if others and len(others) < len(found.failed):
        last = max(i for i, names in enumerate(checks.values()) if set(CAUSES) & set(names))
        lines.insert(last + 1, f"{name}: other failures may follow from this")
    missing = found.missing().items()
    return lines + [f"{name}: {check} was expected but skipped: {why}" for check, why in missing]


def _fails(checks: Sequence[str]) -> str:
    if len(checks) == 1:
        return f"{checks[0]} failed"
    return f"failed in {len(checks)} checks ({', '.join(checks)})"


def _skips(certificates: Sequence[Certificate]) -> list[str]:
    """Skips grouped by check and reason, so that thirty equal sentences are one."""
    names: dict[tuple[str, str], list[str]] = {}
    for found in certificates:
        for check, why in found.skipped.items():
            if check not in found.expected:
                names.setdefault((check, why), []).append(found.variant)
    return [
        f"{check} skipped: {why} ({', '.join(variants)})"
        for (check, why), variants in sorted(names.items())
    ]
