"""The conformance suite, as code that a user can run on any variant."""

from bench.certify.certificate import Certificate
from bench.certify.rules import CHECKS, COMPILE, expected_checks
from bench.certify.suite import certify
from bench.certify.text import as_text

__all__ = ["CHECKS", "COMPILE", "Certificate", "as_text", "certify", "expected_checks"]
