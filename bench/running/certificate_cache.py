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
    """Certificates by variant and by the code that decides them; a change of code misses."""

    def __init__(self, plugins: Sequence[str]) -> None:
        root = Path(__file__).parents[2]
        digest = sha256(version("torch").encode())
        paths = [*root.glob("variants/**/*.py"), *root.glob("bench/api/*.py")]
        paths += [*root.glob("bench/conformance/*.py"), *(Path(plugin) for plugin in plugins)]
        for path in sorted(paths):
            digest.update(path.read_bytes())
        self.folder = cache_folder() / "certificates" / digest.hexdigest()[:16]

    def read(self, variant: str, impl: str) -> CertificateEntry | None:
        """The stored certificate, or None."""
        try:
            found: Json = json.loads(self._path(variant, impl).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        entry = certificate_entry(as_object(found))
        # a damaged file may be JSON all the same; written back, a whole one reads as it stands
        return entry if entry == found and entry["passed"] + [*entry["failed"]] else None

    def write(self, variant: str, impl: str, certificate: CertificateEntry) -> None:
        """Store a certificate."""
        keep(self._path(variant, impl), json.dumps(certificate).encode())

    def _path(self, variant: str, impl: str) -> Path:
        return self.folder / f"{sha256(f'{variant} {impl}'.encode()).hexdigest()[:16]}.json"
