"""Tasks by the use of attention that they stand for: what was found in each, at a glance."""

import re

from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.catalog import capitalized
from reports.folder import RunFolder
from reports.needs import beats
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import RULE_MARK, validation_inputs
from reports.ranked_table.steps_to_threshold import not_reached
from reports.sections.reference_scores import level_text, without_levels

NO_FAMILY = "Further tasks"
HOW_TO_READ = (
    "One line for each comparison. The best variant has the best mean of those with several "
    "seeds. Of equal means the baseline is first, then the variant with fewer parameters. The "
    "verdict says whether it is significantly better than uniform attention and than the baseline. "
    "Scores are means over seeds with 95% t intervals. Where an interval would leave the range of "
    "the metric, the lowest and the highest seed follow the mean. Scores of different tasks are "
    "not comparable."
)
ALONE = (
    "Each of these ran alone in its network. The score is that of the network and says nothing "
    "about attention."
)


def families(folder: RunFolder) -> dict[str, list[Comparison]]:
    """Comparisons by family, tasks without one last; empty if no task has one."""
    known = folder.catalog
    named = sorted({known.family(comparison.task) for comparison in folder.comparisons} - {""})
    if not named:
        return {}
    groups = {
        name: [one for one in folder.comparisons if known.family(one.task) == name]
        for name in (*named, "")
    }
    return {name or NO_FAMILY: found for name, found in groups.items() if found}


def family_key(family: str) -> str:
    """Place of a family in the page.

    >>> family_key("image captioning")
    'family-image-captioning'
    """
    return f"family-{re.sub('[^a-z0-9]+', '-', family.lower()).strip('-')}"


def members(folder: RunFolder, found: list[Comparison]) -> Paragraph:
    """Which tasks a family has, and whose data."""
    tasks = dict.fromkeys(comparison.task for comparison in found)
    known = folder.catalog
    told = [f"{known.task_label(task)} ({data_of(folder, task)})" for task in tasks]
    return Paragraph(f"{'Task' if len(told) == 1 else 'Tasks'}: {'; '.join(told)}.")


def data_of(folder: RunFolder, task: str) -> str:
    """Whether data are real, and their terms."""
    known = folder.catalog
    if known.is_generated(task):
        return "generated data"
    here = "" if known.task(task).needs_download else ", ship with a library"
    return f"real data{here}; terms: {known.license(task)}"


def uses_section(folder: RunFolder) -> Section | None:
    """The table of all families; None where no task has one."""
    found = families(folder)
    if not found:
        return None
    pairs = [(family, comparison) for family, here in found.items() for comparison in here]
    told = [(family, comparison) for family, comparison in pairs if len(comparison.scores) != 1]
    alone = [(family, comparison) for family, comparison in pairs if len(comparison.scores) == 1]
    ranks = folder.catalog.ranks
    best = "Best variant" if ranks else "Best mean, not ranked"
    table = TableBlock(
        key="families-table",
        title=f"Best mean of each task{'' if ranks else ', not ranked'}",
        columns=(
            *(Column(title=head) for head in ("Family", "Task", best)),
            *(Column(title=head, numeric=True) for head in ("Score", "Seeds")),
            Column(title="Verdict"),
            *(Column(title=head, numeric=True) for head in ("Uniform", "Baseline")),
            Column(title="Non-neural baseline"),
        ),
        rows=tuple(_row(family, folder.headlines[one.key]) for family, one in told),
    )
    blocks: list[Block] = [Paragraph(HOW_TO_READ), table] if told else []
    if alone:
        blocks += [Paragraph(ALONE), _alone(alone)]
    return Section(key="families", title="All comparisons", blocks=tuple(blocks))


def _alone(found: list[tuple[str, Comparison]]) -> TableBlock:
    """Scores that stand in no comparison."""
    return TableBlock(
        key="families-alone",
        title="Variants without a competitor in their network",
        columns=(
            *(Column(title=head) for head in ("Family", "Task", "Variant")),
            *(Column(title=head, numeric=True) for head in ("Score", "Seeds")),
            Column(title="Non-neural baseline"),
        ),
        rows=tuple(
            (
                *_head(family, comparison),
                TableCell(text=comparison.catalog.label(name)),
                _score(comparison, name),
                TableCell(text=str(comparison.most_seeds), sort=comparison.most_seeds),
                _without(comparison),
            )
            for family, comparison in found
            for name in comparison.scores
        ),
    )


def _row(family: str, comparison: Comparison) -> tuple[TableCell, ...]:
    best = best_contender(comparison)
    return (
        *_head(family, comparison),
        TableCell(text=comparison.catalog.label(best) if best else NO_VALUE),
        _score(comparison, best),
        TableCell(text=str(comparison.most_seeds), sort=comparison.most_seeds),
        TableCell(text=verdict(comparison)),
        _score(comparison, comparison.uniform_baseline or ""),
        _score(comparison, comparison.baseline or ""),
        _without(comparison),
    )


def _head(family: str, comparison: Comparison) -> tuple[TableCell, TableCell]:
    known = comparison.catalog
    return (
        TableCell(text=capitalized(family), href=f"#{family_key(family)}"),
        TableCell(
            text=comparison.title,
            marks=(
                "generated" if known.is_generated(comparison.task) else "real data",
                comparison.ranked_by.arrow,
            ),
        ),
    )


def _score(comparison: Comparison, variant: str) -> TableCell:
    mean = comparison.means.get(variant)
    if mean is None:
        return TableCell(text=not_reached(comparison, variant) or NO_VALUE, sort="")
    asked = comparison.asked_seeds(variant)
    return TableCell(
        text=comparison.score_text(variant),
        sort=mean.estimate,
        marks=(f"{mean.count} of {asked} seeds",) if mean.count < asked else (),
    )


def _without(comparison: Comparison) -> TableCell:
    levels = without_levels(comparison)
    first = next(iter(levels), "")
    return TableCell(
        text=f"{first} {level_text(comparison, first)}" if first else NO_VALUE,
        marks=(RULE_MARK,) if comparison.ceiling else (),
        sort=levels[first].estimate if first else "",
    )


def best_contender(comparison: Comparison) -> str:
    """The first contender of those that are compared, empty without one."""
    return next((name for name in comparison.compared if name in comparison.contenders), "")


def verdict(comparison: Comparison) -> str:
    """Whether the best variant of a task is better than uniform attention and the baseline.

    Both are tests that were planned before the run. The ranks, which come from all pairs, say
    nothing here: their correction is stricter, so that they may hide what a planned test shows.
    """
    if not comparison.catalog.ranks:
        return "nothing is ranked"
    best, base, known = best_contender(comparison), comparison.baseline, comparison.compared
    if not best:
        return "no score"
    if comparison.most_seeds < 2:
        return "one seed: no test is possible"
    if comparison.ranking[0].variant != best:
        return "a control leads"
    others = [
        name
        for name in (comparison.uniform_baseline, base)
        if name and name != best and name in known
    ]
    behind = [comparison.catalog.label(name) for name in others if beats(comparison, best, name)]
    ahead = [comparison.catalog.label(name) for name in others if beats(comparison, name, best)]
    level = [
        _level(comparison, best, name)
        for name in others
        if not beats(comparison, best, name) and not beats(comparison, name, best)
    ]
    slower = [
        comparison.catalog.label(name)
        for name in (comparison.uniform_baseline,)
        if name and not_reached(comparison, name)
    ]
    behind += [f"{name} (which does not reach the threshold)" for name in slower]
    parts = [f"better than {join(behind)}"] if behind else []
    parts += [f"worse than {join(ahead)} on common seeds"] if ahead else []
    parts += [f"n.s. against {join(level)}"] if level else []
    if comparison.lost_every_seed(best) and comparison.uniform_baseline:
        uniform = comparison.catalog.label(comparison.uniform_baseline)
        parts.append(f"no seed above {uniform} on {validation_inputs(comparison)}")
    return "; ".join(parts) or "nothing to compare with"


def _level(comparison: Comparison, best: str, name: str) -> str:
    """One from which the best is not told, and what else of its table speaks of that."""
    label = comparison.catalog.label
    if comparison.is_worse_by_plan(name) and comparison.baseline:
        return f"{label(name)} (which is worse than {label(comparison.baseline)})"
    if best in comparison.above_every_seed(name):
        return f"{label(name)} (though better in every seed)"
    return label(name)
