"""Files of the user that hide packages of this project.

`python -m bench` looks into the current folder first. A `tasks.py` there would be imported in the
place of our `tasks`, and the error would be a traceback that names neither.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("variants", "tasks", "results", "reports")
"""Packages of this project beside `bench`."""


def refuse_hidden_packages() -> None:
    """Leave with one sentence if something else would be imported for one of our packages."""
    root = Path(__file__).resolve().parents[2]
    for name in PACKAGES:
        found = find_spec(name)
        if found is None or found.origin is None:
            continue  # importing it says what is wrong
        place = Path(found.origin).resolve()
        if place != root / name / "__init__.py":
            hiding = place.parent if place.name == "__init__.py" else place
            sys.exit(_sentence(name, hiding))


def _sentence(name: str, hiding: Path) -> str:
    return (
        f"{hiding} hides the package {name!r} of attention-bench, because Python imports from the "
        f"current folder first; rename it, or run `bench`, which does not look there."
    )
