"""Tasks by the use of attention that they stand for: what was found in each, at a glance."""

import re

from reports.beside import level_text, without_levels
from reports.blocks import NO_VALUE, Block, Column, Entry, Section, Table, Text
from reports.contests import Contest
from reports.folder import RunFolder
from reports.summary import join

NO_FAMILY = "Further tasks"
HOW_TO_READ = (
    "One line a comparison. The best mean is that of the contenders with several seeds, where "
    "there are some; of equal means the baseline is first, then what has fewer parameters. The "
    "verdict says from which of uniform attention and the baseline the statistics of its task's "
    "table tell it. Scores are means over the seeds of the column, with 95% t intervals where "
    "seeds differ, or the least and the greatest seed where such an interval leaves the range of "
    "the metric; a score from fewer is marked. Scores of different tasks are not comparable."
)
ALONE = (
    "What ran in a network of its own, on the same task: the score says what the network does, not "
    "what its attention does."
)


def families(folder: RunFolder) -> dict[str, list[Contest]]:
    """Comparisons by family, tasks without one last; empty if no task has one."""
    known = folder.catalog
    named = sorted({known.family(contest.task) for contest in folder.contests} - {""})
    if not named:
        return {}
    groups = {
        name: [one for one in folder.contests if known.family(one.task) == name]
        for name in (*named, "")
    }
    return {name or NO_FAMILY: found for name, found in groups.items() if found}


def family_key(family: str) -> str:
    """Place of a family in the page.

    >>> family_key("image captioning")
    'family-image-captioning'
    """
    return f"family-{re.sub('[^a-z0-9]+', '-', family.lower()).strip('-')}"


def family_title(family: str) -> str:
    """A family at the head of a section.

    >>> family_title("image captioning")
    'Image captioning'
    """
    return family[:1].upper() + family[1:]


def members(folder: RunFolder, found: list[Contest]) -> Text:
    """Which tasks a family has, and whose data."""
    tasks = dict.fromkeys(contest.task for contest in found)
    known = folder.catalog
    told = [f"{known.task_label(task)} ({data_of(folder, task)})" for task in tasks]
    return Text(f"{'Task' if len(told) == 1 else 'Tasks'}: {'; '.join(told)}.")


def data_of(folder: RunFolder, task: str) -> str:
    """Whether data are real, and their terms."""
    known = folder.catalog
    if known.is_generated(task):
        return "generated data"
    here = "" if known.tasks.get(task, {}).get("needs_download") else ", ship with a library"
    return f"real data{here}; terms: {known.license(task)}"


def families_section(folder: RunFolder) -> Section | None:
    """The table of all families; None where no task has one."""
    found = families(folder)
    if not found:
        return None
    pairs = [(family, contest) for family, here in found.items() for contest in here]
    told = [(family, contest) for family, contest in pairs if len(contest.scores) != 1]
    alone = [(family, contest) for family, contest in pairs if len(contest.scores) == 1]
    ranks = folder.catalog.ranks
    best = "Best variant" if ranks else "Best mean, not ranked"
    table = Table(
        key="families-table",
        title=f"Best mean of each task{'' if ranks else ', not ranked'}",
        columns=(
            *(Column(title=head) for head in ("Family", "Task", best)),
            *(Column(title=head, numeric=True) for head in ("Score", "Seeds")),
            Column(title="Verdict"),
            *(Column(title=head, numeric=True) for head in ("Uniform", "Baseline")),
            Column(title="Without a network"),
        ),
        rows=tuple(_row(family, contest) for family, contest in told),
    )
    blocks: list[Block] = [Text(HOW_TO_READ), table]
    if alone:
        blocks += [Text(ALONE), _alone(alone)]
    return Section(key="families", title="Families at a glance", blocks=tuple(blocks))


def _alone(found: list[tuple[str, Contest]]) -> Table:
    """Scores that stand in no comparison."""
    return Table(
        key="families-alone",
        title="Variants without a competitor in their network",
        columns=(
            *(Column(title=head) for head in ("Family", "Task", "Variant")),
            *(Column(title=head, numeric=True) for head in ("Score", "Seeds")),
            Column(title="Without a network"),
        ),
        rows=tuple(
            (
                *_head(family, contest),
                Entry(text=contest.catalog.label(name)),
                _score(contest, name),
                Entry(text=str(contest.most_seeds), sort=contest.most_seeds),
                _without(contest),
            )
            for family, contest in found
            for name in contest.scores
        ),
    )


def _row(family: str, contest: Contest) -> tuple[Entry, ...]:
    best = best_contender(contest)
    return (
        *_head(family, contest),
        Entry(text=contest.catalog.label(best) if best else NO_VALUE),
        _score(contest, best),
        Entry(text=str(contest.most_seeds), sort=contest.most_seeds),
        Entry(text=verdict(contest)),
        _score(contest, contest.floor or ""),
        _score(contest, contest.baseline or ""),
        _without(contest),
    )


def _head(family: str, contest: Contest) -> tuple[Entry, Entry]:
    known = contest.catalog
    return (
        Entry(text=family_title(family), href=f"#{family_key(family)}"),
        Entry(
            text=contest.title,
            marks=(
                "generated" if known.is_generated(contest.task) else "real data",
                known.metric(contest.metric).arrow,
            ),
        ),
    )


def _score(contest: Contest, variant: str) -> Entry:
    mean = contest.means.get(variant)
    if mean is None:
        return Entry(text=NO_VALUE, sort="")
    fewer = f"{mean.count} of {contest.most_seeds} seeds"
    return Entry(
        text=contest.score_text(variant),
        sort=mean.estimate,
        marks=(fewer,) if mean.count < contest.most_seeds else (),
    )


def _without(contest: Contest) -> Entry:
    levels = without_levels(contest)
    first = next(iter(levels), "")
    return Entry(
        text=f"{first} {level_text(levels[first])}" if first else NO_VALUE,
        sort=levels[first].estimate if first else "",
    )


def best_contender(contest: Contest) -> str:
    """The first contender of those that are compared, empty without one."""
    return next((name for name in contest.compared if name in contest.contenders), "")


def verdict(contest: Contest) -> str:
    """What the ranking of a task tells the best variant from: uniform attention and the baseline.

    The statistics are those of the marks of its table and of the sentences of the summary.
    """
    if not contest.catalog.ranks:
        return "nothing is ranked"
    best, base, known = best_contender(contest), contest.baseline, contest.compared
    if not best:
        return "no score"
    if contest.most_seeds < 2:
        return "one seed: nothing can be told"
    if contest.ranking[0].variant != best:
        return "a control leads"
    others = [name for name in (contest.floor, base) if name and name != best and name in known]
    behind = [contest.catalog.label(name) for name in others if known[name].told_from_best]
    level = [_level(contest, best, name) for name in others if not known[name].told_from_best]
    parts = [f"better than {join(behind)}"] if behind else []
    parts += [f"not told from {join(level)}"] if level else []
    if contest.lost_every_seed(best) and contest.floor:
        parts.append(f"no seed above {contest.catalog.label(contest.floor)} on validation")
    return "; ".join(parts) or "nothing to compare with"


def _level(contest: Contest, best: str, name: str) -> str:
    """One from which the best is not told, and what else of its table speaks of that."""
    label = contest.catalog.label
    if contest.compared[name].worse_than_baseline and contest.baseline:
        return f"{label(name)} (which is worse than {label(contest.baseline)})"
    if best in contest.above_every_seed(name):
        return f"{label(name)} (though better in every seed)"
    return label(name)
