"""The conformance suite, as code that a user can run on any variant."""

from bench.conformance.certificate import Certificate
from bench.conformance.on_device import certify_on
from bench.conformance.rules import CHECKS, COMPILE, expected_checks
from bench.conformance.runs_on import RunsOn, compared_on
from bench.conformance.suite import certify
from bench.conformance.text import as_text

__all__ = [
    "CHECKS",
    "COMPILE",
    "Certificate",
    "RunsOn",
    "as_text",
    "certify",
    "certify_on",
    "compared_on",
    "expected_checks",
]
