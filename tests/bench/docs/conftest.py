"""The pages of the documentation, made once."""

from pathlib import Path

import pytest

from bench.docs import site as pages

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder that mkdocs builds, made of this checkout, but for what `tests/test_docs.py` has.

    The page of tasks makes every task, which takes half of the time.
    """
    out = tmp_path_factory.mktemp("site") / "docs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "tasks_page", lambda: "# Tasks\n")
        pages.write_site(ROOT, out)
    return out
