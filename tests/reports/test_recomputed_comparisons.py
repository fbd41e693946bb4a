"""Which cells are compared, by two codes: of published packs, and of cells drawn at random."""

import random

import pandas as pd
import pytest
from recomputed import PUBLISHED, SAME, comparisons_of

from results.comparable import SPLITS, comparable
from results.pack import Pack

COLUMNS = ["cell", "variant", "seed", *SAME, *SPLITS]


def drawn(draw: int) -> pd.DataFrame:
    """Cells of a few variants, each with settings of its own, of which some are doubled."""
    rng = random.Random(draw)
    nets = ["rnn", "rnn[decoder=own]", "rnn[hidden=32]", "rnn[decoder=own,hidden=32]", "cnn"]
    lines = []
    for variant in "abcdef"[: rng.randint(2, 6)]:
        for _ in range(rng.choice([1, 1, 2, 3])):
            rate, steps = rng.choice(["0.01", "0.003", "0.001"]), rng.choice([100, 500, 500])
            parts = [f"{variant}:2", "net:2", "task:3", "net:3"]
            revisions = sorted(rng.sample(parts, rng.choice([0, 0, 1, 2])))
            trained = f"adam[lr={rate},steps={steps}]"
            protocols = [trained, trained, f"probe[of={trained}]", "sgd"]
            line = {
                "backbone": rng.choice(nets),
                "protocol": rng.choice(protocols),
                "impl": rng.choice(["auto", "auto", "reference", "compiled"]),
                "revisions": " ".join({one.partition(":")[0]: one for one in revisions}.values()),
            }
            first = rng.choice([0, 0, 3])
            lines += [
                {"variant": variant, "seed": seed, **line}
                for seed in range(first, first + rng.randint(1, 3))
            ]
    cells = pd.DataFrame(lines).assign(task="t", slot="s", dtype="float32", device="cpu")
    return cells.drop_duplicates().assign(cell=lambda found: range(len(found)))[COLUMNS]


def groups(found) -> set[frozenset]:
    return {frozenset(group["cell"]) for group in found}


def test_cells_drawn_at_random_are_compared_alike():
    several = 0
    for draw in range(200):
        cells = drawn(draw)
        found = groups(comparable(cells))
        assert found == groups(comparisons_of(cells)), draw
        assert sum(map(len, found)) == len(cells)
        several += len(found) > 1
    assert several > 50


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.parquet")), ids=lambda path: path.stem)
def test_published_cells_of_every_kind_are_compared_alike(path):
    rows = Pack(path).frame
    cells = rows[rows["baseline"] == ""].drop_duplicates("cell")
    for kind, mine in cells.groupby("kind"):
        if kind in ("quality", "analysis"):
            again = [one for _, alike in mine.groupby(SAME) for one in comparisons_of(alike)]
            assert groups(comparable(mine)) == groups(again)
