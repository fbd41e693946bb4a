"""Which comparisons of a run were to decide something before it ran."""

from collections.abc import Sequence

from reports.folder import RunFolder
from reports.ranked_table.comparison import Comparison


def tested_comparisons(folder: RunFolder) -> list[Comparison]:
    """Comparisons with primary hypotheses, by the metric that their task declared."""
    return [one for one in folder.comparisons if one.primary and one.was_to_decide]


def kinds_without_evidence(comparisons: Sequence[Comparison]) -> list[str]:
    """What those of some comparisons are, in the singular, that were to decide nothing."""
    checks = any(one.pipeline_check for one in comparisons)
    ablations = any(is_input_ablation(one) for one in comparisons)
    kinds = {"pipeline check": checks, "input ablation": ablations}
    return [kind for kind, found in kinds.items() if found]


def is_input_ablation(comparison: Comparison) -> bool:
    """Whether it asks if an input matters, and not which variant to choose.

    One that is a pipeline check, too, counts as that.
    """
    return not comparison.was_to_decide and not comparison.pipeline_check
