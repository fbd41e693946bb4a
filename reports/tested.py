"""Which comparisons of a run were to decide something before it ran."""

from reports.folder import RunFolder
from reports.ranked_table.comparison import Comparison


def tested_comparisons(folder: RunFolder) -> list[Comparison]:
    """Comparisons with primary hypotheses, by the metric that their task declared."""
    return [one for one in folder.comparisons if one.primary and one.was_to_decide]
