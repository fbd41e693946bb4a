"""Metrics of probes: diagnostics without a ranking."""

from typing import Literal

from bench.api.metric import Metric


def diagnostic(
    name: str,
    title: str,
    of: str,
    better: Literal["higher", "lower", "none"] = "none",
    *,
    unit: str = "",
    low: float | None = 0.0,
    high: float | None = 1.0,
) -> Metric:
    """A metric from 0 to 1 of the unit `fraction of <of>`, unless others are given."""
    said = unit or f"fraction of {of}"
    return Metric(
        name=name, title=title, unit=said, low=low, high=high, better=better, group="diagnostic"
    )
