"""The pages of the documentation, made once."""

from pathlib import Path

import pytest

from bench.docs.site import write_site

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder that mkdocs builds, made of this checkout."""
    out = tmp_path_factory.mktemp("site") / "docs"
    write_site(ROOT, out)
    return out
