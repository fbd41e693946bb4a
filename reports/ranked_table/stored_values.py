"""What the cells of a comparison measured, read from its rows once."""

from collections.abc import Mapping
from functools import cached_property
from statistics import median

import pandas as pd

BySeed = dict[str, dict[int, float]]
"""Variant -> seed -> value."""

_Line = tuple[str, str, int, float, float]
"""Cell, variant, seed, x and value."""


class StoredValues:
    """Values of cells that ended `ok`, found by metric, axis and split without a search."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """Read the rows of the quality cells of a comparison."""
        self._frame = frame

    @cached_property
    def _lines(self) -> Mapping[tuple[str, str, str], list[_Line]]:
        rows = self._frame[(self._frame["status"] == "ok") & (self._frame["metric"] != "")]
        places = zip(rows["metric"], rows["axis"], rows["split"], strict=True)
        lines = zip(*(rows[name].tolist() for name in _COLUMNS), strict=True)
        found: dict[tuple[str, str, str], list[_Line]] = {}
        for place, line in zip(places, lines, strict=True):
            found.setdefault(place, []).append(line)
        return found

    def final(self, metric: str, split: str = "test") -> BySeed:
        """One value per cell: that of the metric without an axis, the median of repeats.

        Raises:
            ValueError: A variant has two cells for one seed, because settings are mixed.
        """
        repeats: dict[tuple[str, str, int], list[float]] = {}
        for cell, variant, seed, _, value in self._lines.get((metric, "", split), ()):
            repeats.setdefault((cell, variant, seed), []).append(value)
        found: BySeed = {}
        for (_, variant, seed), values in repeats.items():
            by_seed = found.setdefault(variant, {})
            if seed in by_seed:
                raise ValueError(f"{variant} has two values for seed {seed}: settings are mixed.")
            by_seed[seed] = median(values)
        return found

    def parts(self, metric: str, axis: str) -> dict[tuple[str, float], dict[int, float]]:
        """Test values of parts of the test by variant and place, then by seed in order of cells."""
        repeats: dict[tuple[str, str, int, float], list[float]] = {}
        for cell, variant, seed, x, value in self._lines.get((metric, axis, "test"), ()):
            repeats.setdefault((cell, variant, seed, x), []).append(value)
        found: dict[tuple[str, float], dict[int, float]] = {}
        for (_, variant, seed, x), values in sorted(repeats.items()):
            found.setdefault((variant, x), {})[seed] = median(values)
        return found

    def curves(self, metric: str, axis: str = "step") -> dict[str, dict[int, dict[float, float]]]:
        """Validation values by variant and seed, then by place on an axis, in its order."""
        found: dict[str, dict[int, dict[float, float]]] = {}
        lines = self._lines.get((metric, axis, "validation"), ())
        for _, variant, seed, x, value in sorted(lines, key=lambda line: line[3]):
            found.setdefault(variant, {}).setdefault(seed, {})[x] = value
        return found

    def metrics(self) -> list[str]:
        """Names of the metrics that the whole test was scored with, in the order of the rows."""
        return [metric for metric, axis, split in self._lines if split == "test" and not axis]

    def divided(self) -> dict[str, list[str]]:
        """Axes along which the test is divided, in order, with the metrics that are."""
        found: dict[str, list[str]] = {}
        for metric, axis, split in self._lines:
            if split == "test" and axis:
                found.setdefault(axis, []).append(metric)
        return dict(sorted(found.items()))


_COLUMNS = ("cell", "variant", "seed", "x", "value")
