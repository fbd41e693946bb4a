"""What a certificate says, and the two ways in which a check ends early."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from results.certificate import BUILT, CertificateEntry, refused_code, verdict


class _Ended(Exception):
    def __init__(self, sentence: str, *, environmental: bool = False) -> None:
        """Take what the certificate says.

        Args:
            sentence: Of the check.
            environmental: Whether the cause lies outside the code, so that asking later may end
                otherwise.
        """
        super().__init__(sentence)
        self.environmental = environmental


class CheckFailed(_Ended):
    """A law that does not hold; the message is the sentence of the certificate."""


class CheckSkipped(_Ended):
    """A law that has no meaning here; the message says why."""


@dataclass(frozen=True)
class Certificate:
    """Which checks a variant passed, and in one sentence each which it did not, and why."""

    variant: str
    """Selector, as it is printed."""
    passed: tuple[str, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    """Checks that had to pass; a skip among them is not green."""
    told: dict[str, str] = field(default_factory=dict)
    """What a check that passed has to say, such as a cost that is declared too high."""
    environmental: bool = False
    """Whether a cause outside the code ended a check, so that asking later may end otherwise. Files
    do not say it, because such a certificate is kept for no other run."""

    def green(self, expected: Iterable[str] | None = None) -> bool:
        """Whether nothing failed and everything expected passed.

        Args:
            expected: Checks that must have passed; None for those the rules derive.
        """
        wanted = self.expected if expected is None else tuple(expected)
        return bool(self.passed) and not self.failed and set(wanted) <= set(self.passed)

    @classmethod
    def of_refused_code(cls, variant: str, checks: Iterable[str], reason: str) -> "Certificate":
        """The certificate of a variant that has no such code as was asked for.

        Args:
            variant: Selector, as it is printed.
            checks: Those that were asked for, none of which has a meaning.
            reason: Why not, in one sentence.
        """
        return cls(variant, skipped=dict.fromkeys((BUILT, *checks), reason))

    @property
    def refused(self) -> str:
        """Why the variant has no such code as was asked for; empty where it has."""
        return refused_code(self.to_json())

    @property
    def verdict(self) -> str:
        """`green`, `red`, or why it is neither: `refused` or `skipped`."""
        return verdict(self.to_json())

    def missing(self) -> dict[str, str]:
        """Expected checks that were skipped, with the reason given."""
        return {name: why for name, why in self.skipped.items() if name in self.expected}

    def to_json(self) -> CertificateEntry:
        """The entry of `certificates.json` (ADR 2)."""
        return {
            "passed": list(self.passed),
            "skipped": dict(self.skipped),
            "failed": dict(self.failed),
            "expected": list(self.expected),
            "told": dict(self.told),
        }

    @classmethod
    def from_json(cls, variant: str, entry: CertificateEntry) -> "Certificate":
        """Read what `to_json` wrote."""
        return cls(
            variant=variant,
            passed=tuple(entry["passed"]),
            skipped=dict(entry["skipped"]),
            failed=dict(entry["failed"]),
            expected=tuple(entry["expected"]),
            told=dict(entry["told"]),
        )
