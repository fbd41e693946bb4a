"""`agree` holds our output against that of a reference; what it found is stored if asked."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.docs.peers import STORED, read_comparisons, store_comparisons
from results.environment import collect, commit_in_words
from tests.peers.agreement import Agreement

OUT = "BENCH_PEERS_OUT"
"""A file into which the differences are written."""
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (one for one in items if one.path.parent == HERE):
        # what a reference warns of is not ours to mend
        item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def agree() -> Iterator[Agreement]:
    out = os.environ.get(OUT)
    known = frozenset(one.key for one in read_comparisons(ROOT / STORED))
    commit = "" if out is None else commit_in_words(collect(threads=1).to_json())
    agreement = Agreement(known, recording=out is not None, commit=commit)
    yield agreement
    if out is not None and agreement.found:
        store_comparisons(Path(out), agreement.found)
