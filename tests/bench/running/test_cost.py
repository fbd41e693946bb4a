"""Costs that variants declare, against the times of steps that were measured."""

from collections import defaultdict
from pathlib import Path
from statistics import median

from bench.api import registry
from bench.api.axes import PLAIN
from bench.api.loading import load_package
from results import load

PUBLISHED = Path(__file__).parents[3] / "results" / "published" / "quick.parquet"
WITHIN = 2.0
"""Factor between what is declared and measured: a plan needs no better, and machines differ."""

load_package("variants")


def test_a_declared_cost_is_near_the_step_time_over_that_of_plain_attention():
    rows = load(PUBLISHED).rows
    rows = rows[rows["metric"] == "train_step_time_ms"]
    columns = [rows[name] for name in ("task", "backbone", "slot", "seed", "variant", "value")]
    places: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for *place, variant, value in zip(*columns, strict=True):
        places[tuple(place)][variant] = value
    ratios: dict[str, list[float]] = defaultdict(list)
    for measured in places.values():
        for name, value in measured.items():
            if PLAIN in measured:
                ratios[name].append(value / measured[PLAIN])
    declared = {name: one.cost for name, one in registry.listed_variants().items()}
    known = {name: median(found) for name, found in ratios.items() if name in declared}
    assert len(known) > 150
    off = {
        name: (declared[name], round(found, 2))
        for name, found in known.items()
        if not 1 / WITHIN <= declared[name] / found <= WITHIN
    }
    assert off == {}, "(declared, measured)"
