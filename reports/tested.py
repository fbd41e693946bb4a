"""Which comparisons of a run were to decide something before it ran."""

from reports.folder import RunFolder
from reports.ranked_table.comparison import Comparison


def tested_comparisons(folder: RunFolder) -> list[Comparison]:
    """Comparisons with primary hypotheses, by the metric that their task declared.

    Input ablations are left out: they ask whether an input matters, not which variant to choose.
    So are pipeline checks, which are no evidence.
    """
    known = folder.catalog
    return [
        one
        for one in folder.comparisons
        if one.primary
        and known.whole(one.task) in ("", one.task)
        and not known.pipeline_check(one.task)
    ]
