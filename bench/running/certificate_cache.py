"""Certificates that were computed before, kept for as long as the code stays as it is."""

import json
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from bench.api.cache import cache_folder, keep
from bench.running.code_of_cells import CodeOfCells
from results.certificate import CertificateEntry, certificate_entry
from results.json_values import Json, as_object


class CertificateCache:
    """Certificates by variant, by what they hold on, and by the code that decides them.

    An edit of one variant leaves the certificates of the others as they are.
    """

    def __init__(self, code: CodeOfCells) -> None:
        self._code = code
        self._folder = cache_folder() / "certificates"

    def read(self, variant: str, impl: str, on: str = "") -> CertificateEntry | None:
        """The stored certificate, or None.

        Args:
            variant: Canonical selector.
            impl: Name of the implementation.
            on: Device, format and shapes; empty for the suite in float64 on the processor.
        """
        try:
            found: Json = json.loads(self._path(variant, impl, on).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        entry = certificate_entry(as_object(found))
        # a damaged file may be JSON all the same; written back, a whole one reads as it stands
        return entry if entry == found and entry["passed"] + [*entry["failed"]] else None

    def write(self, variant: str, impl: str, certificate: CertificateEntry, on: str = "") -> None:
        """Store a certificate."""
        keep(self._path(variant, impl, on), json.dumps(certificate).encode())

    def _path(self, variant: str, impl: str, on: str) -> Path:
        code = self._code.of_certificate(variant)
        asked = f"{variant} {impl} {on} {code} torch {version('torch')}"
        return self._folder / f"{sha256(asked.encode()).hexdigest()[:16]}.json"
