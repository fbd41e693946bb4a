"""Metrics of probes: diagnostics without a ranking."""

from typing import Literal

from bench.api.task import Metric


def diagnostic(
    name: str,
    title: str,
    of: str,
    better: Literal["higher", "lower", "none"] = "none",
    *,
    unit: str = "",
) -> Metric:
    """A metric whose unit is `fraction of <of>` unless one is given."""
    said = unit or f"fraction of {of}"
    return Metric(name=name, title=title, unit=said, better=better, group="diagnostic")
