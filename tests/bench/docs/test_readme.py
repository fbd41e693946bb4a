"""Which runs the marked parts are of, and what is said of all of them."""

from types import SimpleNamespace

from bench.docs import readme
from bench.docs.findings import FINDINGS, named_runs


def test_runs_that_a_finding_names_beside_its_own_are_read_too():
    assert {one.run for one in FINDINGS} < named_runs()
    assert "families" in named_runs()


def test_seeds_of_two_runs_are_not_added_up():
    """Two packs may hold the same network."""
    cell = {"task": "recall", "backbone": "none", "slot": "causal", "variant": "mqa"}

    def run(seeds):
        ok = SimpleNamespace(status="ok")
        cells = [SimpleNamespace(cell=SimpleNamespace(**cell), record=ok) for _ in seeds]
        return SimpleNamespace(of_kind=lambda kind: cells)

    known = {"quick": run(range(5)), "fresh": run(range(700, 705)), "families": run(range(3))}
    assert readme.seeds_of({"quick", "fresh"}, known) == [5, 5]
