"""What to choose, and why we cannot tell: sentences made by rule from the statistics."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

import pandas as pd

from reports.blocks import Block, Bullets, Section, Text
from reports.contests import Contest
from reports.folder import RunFolder
from reports.numbers import percent, plain, with_interval
from results.statistics import Interval, Ranked

MOST_NAMES = 6
PARITY = 0.01
"""Parameter counts within 1% are called equal."""


def summary_section(folder: RunFolder) -> Section:
    """The verdict of the whole run, first thing on the page."""
    blocks: list[Block] = []
    if not folder.catalog.ranks:
        blocks.append(
            Text(
                f"Choose nothing from this run: the preset “{folder.catalog.preset}” shows that "
                "everything works and ranks nothing. Take a preset that ranks, with more seeds "
                "and a larger budget.",
                "warning",
            )
        )
    elif not any(contest.ranking for contest in folder.contests):
        blocks.append(Text("There is no score to choose by.", "warning"))
    else:
        blocks.append(Text(_overall(folder.contests)))
        told = [(contest.title, _task(contest)) for contest in folder.contests if contest.ranking]
        told += speed_sentences(folder)
        blocks.append(Bullets(tuple(text for _, text in told), tuple(head for head, _ in told)))
    red = sorted({name for contest in folder.contests for name in contest.red})
    if red:
        text = f"Not ranked, because a conformance check is red: {names(folder, red)}."
        blocks.append(Text(text, "warning"))
    title = "What to choose, and why we cannot tell"
    return Section(key="summary", title=title, blocks=tuple(blocks))


def names(folder: RunFolder, variants: Sequence[str]) -> str:
    """Join short names, no more than a sentence can carry."""
    return join([folder.catalog.label(name) for name in variants])


def join(texts: Sequence[str]) -> str:
    """Write a list as prose.

    >>> join(["a", "b", "c"]), join(["a"])
    ('a, b and c', 'a')
    """
    shown = [*texts[:MOST_NAMES]]
    if len(texts) > MOST_NAMES:
        rest = len(texts) - MOST_NAMES
        shown.append(f"{rest} other{'s' if rest > 1 else ''}")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _overall(contests: Sequence[Contest]) -> str:
    ranked = [contest for contest in contests if contest.ranking]
    tested = [contest for contest in ranked if _repeated(contest)]
    if not tested:
        return "Choose nothing from this run: with one seed each, nothing can be told apart."
    label = ranked[0].catalog.label
    count = f"{len(tested)} comparisons" if len(tested) > 1 else "the one comparison"
    entered = [
        {line.variant for line in contest.ranking if not _control(contest, line)}
        for contest in tested
    ]
    everywhere = set.intersection(*entered)
    if len(everywhere) < 2 and len(tested) > 1:
        return (
            f"There is no overall choice: no two contenders took part in every one of the {count}, "
            "because each variant ran where it shows what it is for. Read each task by itself."
        )
    first = [{line.variant for line in contest.leading} for contest in tested]
    always = sorted(everywhere.intersection(*first))
    if not always:
        return f"No variant is among the best in {count}, so the choice depends on the task."
    if len(always) == 1:
        return (
            f"Choose {label(always[0])}: no other variant is among the best in {count}. Ranks are "
            "about these tasks at this budget and size; elsewhere they may differ."
        )
    return (
        f"We cannot tell {join([label(name) for name in always])} apart: each is among the best in "
        f"{count}. Choose among them by cost, or buy more seeds."
    )


def _repeated(contest: Contest) -> bool:
    """Whether any variant has more than one seed, without which there is no interval."""
    return max((line.mean.count for line in contest.ranking), default=0) > 1


def _task(contest: Contest) -> str:
    leaders = contest.leading
    if len(contest.ranking) == 1:
        alone = contest.ranking[0].variant
        only = f"{contest.catalog.label(alone)} alone, {_scored(contest, alone)}"
        told = (f"{only}: there is nothing to compare it with.", _holes(contest))
        return " ".join(filter(None, told))
    if not _repeated(contest):
        best = _scored(contest, contest.ranking[0].variant)
        first = f"One seed each, so nothing can be told apart; the best mean is {best}."
        return " ".join(filter(None, (first, _learned(contest), _holes(contest))))
    sentences = [
        _leaders(contest, leaders),
        _cheapest(contest, [line.variant for line in leaders if not _control(contest, line)]),
        _against_baseline(contest),
        *_controls(contest),
        _learned(contest),
        _without(contest),
        _parity(contest, leaders),
        _holes(contest),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _scored(contest: Contest, variant: str) -> str:
    """Mean score of a variant with its unit."""
    unit = contest.catalog.metric(contest.metric).unit
    return f"{contest.score_text(variant)} {unit}".strip()


def _leaders(contest: Contest, leaders: Sequence[Ranked]) -> str:
    """Who leads, and who further down is not told from the best.

    Who never learned is in a sentence of its own, and whoever is told apart is in none of these.
    """
    label, ranking = contest.catalog.label, contest.ranking
    best = ranking[0].variant
    lead = f"the best mean has {label(best)} with {_scored(contest, best)}"
    behind = [line for line in ranking if line.told_from_best]
    below = [
        label(line.variant)
        for line in ranking
        if line.rank > 1
        and not line.told_from_best
        and not _control(contest, line)
        and not contest.lost_every_seed(line.variant)
    ]
    late = f"Lower, but not told from {label(best)} either: {join(below)}." if below else ""
    if len(leaders) > 1:
        together = join([label(line.variant) for line in leaders])
        return f"We cannot tell {together} apart; {lead}. {late}".strip()
    hopeless = [line for line in ranking if contest.lost_every_seed(line.variant)]
    alone = [line.variant for line in leaders] == [best]
    others = [line for line in ranking[1:] if line in behind or line not in hopeless]
    if alone and others and others == behind:
        rest = " that learned" if len(others) < len(ranking) - 1 else ""
        behind_ = f"ahead of all {len(others)} others" if len(others) > 1 else "ahead of the other"
        return f"Choose {label(best)}, {_scored(contest, best)}, {behind_}{rest}."
    ahead = f", ahead of {len(behind)} of {len(ranking) - 1} others" if alone else ""
    return f"{lead[:1].upper()}{lead[1:]}{ahead}. {late}".strip()


def _cheapest(contest: Contest, variants: list[str]) -> str:
    """Name the shortest training step among equals, if it stands out."""
    steps = {name: contest.trained(name, "train_step_time_ms") for name in variants}
    known = {name: step for name, step in steps.items() if math.isfinite(step.estimate)}
    if len(known) < 2:
        return ""
    first, *rest = sorted(known, key=lambda name: known[name].estimate)
    text = _step(known[first])
    if any(known[first].high >= known[name].low for name in rest):
        return ""
    label = contest.catalog.label
    return f"Of these {label(first)} has the shortest step, {text}; it is the cheap choice."


def _step(step: Interval) -> str:
    return f"{with_interval(step.estimate, step.low, step.high)} ms"


def _against_baseline(contest: Contest) -> str:
    if contest.baseline is None or contest.baseline not in contest.compared:
        return "The baseline has no score here, so no difference is tested."
    label = contest.catalog.label
    better = [line.variant for line in contest.ranking if line.better_than_baseline]
    worse = [line.variant for line in contest.ranking if line.worse_than_baseline]
    base = label(contest.baseline)
    parts = [
        f"On the test, better than {base}: {join([label(name) for name in better])}."
        if better
        else f"On the test, nothing is shown to be better than {base}."
    ]
    if worse:
        parts.append(f"Worse: {join([label(name) for name in worse])}.")
    widths = [
        line.difference.half_width
        for line in contest.ranking
        if line.difference is not None
        and math.isfinite(line.difference.half_width)
        and line.difference.half_width > 1e-9 * abs(line.mean.estimate)
    ]
    open_ = [line for line in contest.ranking if line.variant not in {*better, *worse}]
    if widths and len(open_) > 1:
        unit = contest.catalog.metric(contest.metric).unit
        known = f"Differences to {base} are known to {_widths(widths)} {unit}".strip()
        parts.append(f"{known}, before the correction for all pairs.")
    return " ".join(parts)


def _widths(widths: Sequence[float]) -> str:
    """Half widths of intervals, from the least to the greatest.

    >>> _widths([0.021, 0.2, 0.05]), _widths([0.021])
    ('±0.021 to ±0.2', '±0.021')
    """
    least, most = (f"±{width:.2g}" for width in (min(widths), max(widths)))
    return least if least == most else f"{least} to {most}"


def _control(contest: Contest, line: Ranked) -> bool:
    return contest.catalog.flag(line.variant, "control")


def _controls(contest: Contest) -> list[str]:
    """What the controls say of the task; a sham must be tied with the baseline, others must not."""
    label = contest.catalog.label
    level = [
        line.variant
        for line in contest.ranking
        if _control(contest, line) and not line.told_from_best and not line.worse_than_baseline
    ]
    shams = [name for name in level if contest.catalog.flag(name, "sham")]
    told = [
        f"{label(name)} is the baseline under another name, and ties as it must."
        for name in shams[:1]
    ]
    first = {line.variant for line in contest.leading}
    groups: dict[str, list[str]] = {}
    for name in level:
        if name not in shams:
            place = "among the best" if name in first else "not told from the best"
            groups.setdefault(f"{place}{_beaten(contest, name)}", []).append(label(name))
    for said, lazy in groups.items():
        many = len(lazy) > 1
        subject = f"The control{'s' if many else ''} {join(lazy)} {'are' if many else 'is'}"
        told.append(f"{subject} {said.format('each' if many else 'it')}.")
    return told


def _beaten(contest: Contest, control: str) -> str:
    """What scores say of a control where the tests say nothing."""
    fair = [name for name in contest.contenders if name in contest.compared]
    above = contest.above_every_seed(control)
    if not above:
        return ": these seeds and this budget do not show what attention is for here"
    seeds = contest.most_seeds
    if len(above) == len(fair):
        return (
            ", though every seed of every contender is better than every seed of {} on the test: "
            f"{seeds} seeds cannot show it after the correction for all pairs"
        )
    some = join([contest.catalog.label(name) for name in above])
    return (
        f", though every seed of {some} is better than every seed of {{}} on the test: with "
        f"{seeds} seeds that shows nothing after the correction for all pairs"
    )


def _learned(contest: Contest) -> str:
    """Say who is no better than not looking, in every seed or in some."""
    if contest.floor is None:
        return ""
    label = contest.catalog.label
    floor = label(contest.floor)
    lost = {
        label(line.variant): contest.lost_seeds(line.variant)
        for line in contest.ranking
        if not _control(contest, line)
    }
    never = [name for name, (bad, seeds) in lost.items() if seeds and bad == seeds]
    partly = [f"{name} ({bad} of {n})" for name, (bad, n) in lost.items() if 0 < bad < n]
    said = []
    if never:
        said.append(f"Failed to learn, with no seed above {floor} on validation: {join(never)}.")
    if partly:
        said.append(f"Some seeds are not above {floor} on validation: {join(partly)}.")
    return " ".join(said) or f"On validation, every seed of every contender is above {floor}."


def _without(contest: Contest) -> str:
    """Say so where no network is needed to do as well."""
    if not contest.without or not contest.contenders or contest.beats_the_rest:
        return ""
    best, by_seed = next(iter(contest.without.items()))
    level = plain(fmean(by_seed.values()))
    return f"None is better in every seed than {best}, which needs no network: {level}."


def _parity(contest: Contest, leaders: Iterable[Ranked]) -> str:
    base = contest.trained(contest.catalog.baseline, "parameters_count").estimate
    unequal = []
    for line in leaders:
        count = contest.trained(line.variant, "parameters_count").estimate
        if base and abs(count / base - 1) > PARITY:
            unequal.append(f"{contest.catalog.label(line.variant)} {percent(count / base)}")
    return f"Parameters differ from the baseline: {join(unequal)}." if unequal else ""


def _holes(contest: Contest) -> str:
    empty = [contest.catalog.label(name) for name in contest.variants if name not in contest.scores]
    return f"Without a score: {join(empty)}." if empty else ""


def speed_sentences(folder: RunFolder) -> list[tuple[str, str]]:
    """Head and sentence for each timed quantity: who is faster beyond the A/A noise."""
    table = folder.speed_lines
    if table.empty:
        return []
    timed = table[table["verdict"] != ""]
    found = []
    for (slot, metric, _), group in timed.groupby(["slot", "metric", "shape"], sort=True):
        title = folder.catalog.metric(str(metric)).title
        found.append((f"{title}, {slot} slot", _verdicts(folder, group)))
    return found


def _verdicts(folder: RunFolder, group: pd.DataFrame) -> str:
    here = group[group["variant"] != folder.catalog.baseline]
    parts = []
    for verdict, text in (
        ("FAST", "faster than the baseline"),
        ("SLOW", "slower"),
        ("SAME", "the same within 2%"),
        ("AMBIGUOUS", "cannot tell"),
    ):
        mine = here[here["verdict"] == verdict].sort_values("ratio", kind="stable")
        if len(mine):
            times = [f"{line['name']} (×{line['ratio']:.3g})" for _, line in mine.iterrows()]
            parts.append(f"{text}: {join(times)}")
    told = "; ".join(parts) or "nothing to compare"
    return f"At the longest length of each, up to {group['length'].max():g}, {told}."
