"""Performance profiles: the share of runs above each score, over the tasks that some share."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reports.blocks import Section
from reports.curves import GRAY, figures_section, has_gray
from reports.figures import Curve, Legend, Panel
from reports.folder import RunFolder
from reports.needs import decides
from reports.normalized_scores import normalized, on_a_scale
from reports.quality_cost import of_each_use
from reports.ranked_table.comparison import Comparison
from results.statistics import performance_profile

LEAST_TASKS = 5
"""Of a profile; fewer make steps rather than a curve."""
MOST_VARIANTS = 6
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(-4, 21))
RESAMPLES = 400


def profiles_section(folder: RunFolder, legend: Legend) -> Section | None:
    """One panel of the variants that share most tasks; None where too few tasks are shared."""
    known = [one for one in folder.comparisons if decides(one) and on_a_scale(one)]
    shown, tasks = _sharing(known, folder.catalog.baseline)
    if len(shown) < 2:
        return None
    panel = Panel(
        title=f"{len(tasks)} tasks",
        x_label="score, where 0 is uniform attention and 1 the best possible",
        y_label="share of runs above it",
        lines=tuple(_curve(tasks, name) for name in shown),
        limits=(0.0, 1.0),
    )
    gray = f"; {GRAY}" if has_gray([panel], legend) else ""
    words = {
        "title": "Performance profiles",
        "description": "Share of runs with a normalized score above each threshold, by variant.",
        "caption": (
            "Each use of attention counts alike, and each task of a use. A curve above another has "
            "more runs above any score. Bands are 95% bootstrap intervals over seeds, which are "
            f"too narrow with few seeds{gray}. Tasks: {'; '.join(one.title for one in tasks)}."
        ),
    }
    return figures_section("profiles", words["title"], words, [panel], legend, none="")


def _sharing(found: Sequence[Comparison], baseline: str) -> tuple[list[str], list[Comparison]]:
    """Variants with many tasks in common, the baseline first, and these tasks."""
    tasks = [one for one in found if baseline in one.compared]
    names = {name for one in tasks for name in one.compared} - {baseline}
    shown = [baseline]
    while len(shown) < MOST_VARIANTS and names:
        best = max(sorted(names), key=lambda name: sum(name in one.compared for one in tasks))
        fewer = [one for one in tasks if best in one.compared]
        if len(fewer) < LEAST_TASKS:
            break
        shown.append(best)
        names.discard(best)
        tasks = fewer
    return (shown, tasks) if len(tasks) >= LEAST_TASKS else ([], [])


def _curve(tasks: Sequence[Comparison], variant: str) -> Curve:
    scores = [
        [np.fromiter(normalized(one, variant).values(), float) for one in group]
        for group in of_each_use(tasks)
    ]
    rng = np.random.default_rng(zlib.crc32(variant.encode()))
    drawn = [
        _profile([[rng.choice(one, one.size) for one in group] for group in scores])
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return Curve(
        name=variant,
        x=THRESHOLDS,
        y=tuple(_profile(scores).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def _profile(uses: Sequence[Sequence[NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Share of runs above each threshold: mean over the tasks of a use, then over uses."""
    return np.mean([performance_profile(tasks, THRESHOLDS) for tasks in uses], axis=0)
