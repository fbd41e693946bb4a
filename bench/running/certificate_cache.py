"""Certificates that were computed before, kept for as long as the code stays as it is."""

import json
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from results.certificate import CertificateEntry, certificate_entry
from results.json_values import Json, as_object
from tasks.data.cache import cache_folder, keep


class CertificateCache:
    """Certificates by variant, by what they hold on, and by the code that decides them."""

    def __init__(self, plugins: Sequence[str]) -> None:
        root = Path(__file__).parents[2]
        digest = sha256(version("torch").encode())
        paths = [*root.glob("variants/**/*.py"), *root.glob("bench/api/*.py")]
        paths += [*root.glob("bench/conformance/*.py"), root / "bench/timing/workloads.py"]
        paths += [Path(plugin) for plugin in plugins]
        for path in sorted(paths):
            digest.update(path.read_bytes())
        self.folder = cache_folder() / "certificates" / digest.hexdigest()[:16]

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
        asked = f"{variant} {impl} {on}".strip()
        return self.folder / f"{sha256(asked.encode()).hexdigest()[:16]}.json"
