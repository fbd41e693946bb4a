"""From stored rows to verdicts: computed each time they are shown, never stored."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean

import pandas as pd

from bench.api import registry
from bench.api.claim import FIRST_SEED, Claim, Contrast, Learned, Side
from bench.api.probe import PROBES
from bench.api.selector import parse
from bench.api.task import TASKS
from bench.claims.cells import cells_of, expected_minutes
from bench.claims.computed import exact_cell
from bench.running.request import Request
from reports.claims import BoundOutcome, ClaimOutcome, ContrastOutcome
from results.environment import commit_in_words
from results.json_values import JsonObject
from results.statistics.verdicts import (
    LEVEL,
    SECOND_LEVEL,
    ClaimVerdict,
    Observed,
    findings_of,
    verdict_of,
)

Place = tuple[str, str, str, str, float | None]
"""Cell, metric, split, axis, x."""
Values = Mapping[Place, float]
Ended = Mapping[str, str]
"""How a cell ended, by its id."""


def stored_values(rows: pd.DataFrame) -> dict[Place, float]:
    """Every value that a claim could read, by where it stands."""
    mine = rows[(rows["status"] == "ok") & (rows["metric"] != "") & (rows["baseline"] == "")]
    columns = ["cell", "metric", "split", "axis", "x", "value"]
    return {
        (cell, metric, split, axis, None if math.isnan(x) else x): value
        for cell, metric, split, axis, x, value in mine[columns].itertuples(index=False, name=None)
    }


def ended_cells(rows: pd.DataFrame) -> dict[str, str]:
    """How every stored cell ended, or those of its metrics that have no value.

    What is of other code is as if it had not run, because a run asks it again.
    """
    mine = rows[rows["status"] != "other_code"]
    lost = mine[mine["status"] != "ok"]
    return dict.fromkeys(mine["cell"], "ok") | dict(zip(lost["cell"], lost["status"], strict=True))


def outcomes_of(
    claims: Sequence[Claim],
    rows: pd.DataFrame,
    request: Request,
    environments: Mapping[str, JsonObject] | None = None,
) -> list[ClaimOutcome]:
    """What stored rows say of each claim.

    Args:
        claims: In the order in which they are shown.
        rows: From `results.frame.rows_of`.
        request: Device, number type and implementation of the cells.
        environments: Facts of each environment of the rows; None where nobody asks for commits.
    """
    values, ended = stored_values(rows), ended_cells(rows)
    seeds = sorted({int(seed) for seed in rows["seed"] if seed >= FIRST_SEED})
    found = [_outcome(claim, values, seeds, request) for claim in claims]
    found = [_with_what_is_missing(one, values, ended, request) for one in found]
    if environments is None:
        return found
    commits = _commit_of_each(rows, environments)
    return [replace(one, commits=_commits(one, commits, request)) for one in found]


def _commit_of_each(rows: pd.DataFrame, environments: Mapping[str, JsonObject]) -> dict[str, str]:
    """The commit of every cell; empty where it is not known."""
    cells = rows.drop_duplicates("cell")
    pairs = zip(cells["cell"], cells["environment"], strict=True)
    return {str(cell): commit_in_words(environments.get(str(name), {})) for cell, name in pairs}


def _commits(one: ClaimOutcome, commits: Mapping[str, str], request: Request) -> tuple[str, ...]:
    """Commits of the cells whose numbers decide a claim, most cells first."""
    cells = {exact_cell(one.claim.key).id} if one.bounds else set()
    for part in one.contrasts:
        for side in (*part.contrast.left, *part.contrast.right):
            made = cells_of(side, request, FIRST_SEED)
            both = (made.trained.cell, made.read)
            cells |= {replace(cell, seed=seed).id for cell in both for seed in part.seen.left}
    found = Counter(commits[cell] for cell in sorted(cells) if commits.get(cell))
    return tuple(commit for commit, _ in found.most_common())


def request_of(rows: pd.DataFrame) -> Request:
    """A request for the cells of stored rows: on the device of most of them.

    Computed claims have no device, and rows of two devices are not one sample.
    """
    trained = rows[rows["kind"] != "exact"].drop_duplicates("cell")
    found = Counter(sorted(trained["device"])).most_common(1)
    return Request(device=found[0][0]) if found else Request()


def _outcome(claim: Claim, values: Values, seeds: Sequence[int], request: Request) -> ClaimOutcome:
    # as many seeds as were planned: another claim may have trained more of the same cells
    level = SECOND_LEVEL if claim.rewritten else LEVEL
    early = [seed for seed in seeds if seed in claim.first_sample]
    first = _sample(claim, values, early, request, level)
    second: tuple[ContrastOutcome, ...] = ()
    if claim.again:
        fresh = [seed for seed in seeds if seed in claim.sample]
        second = _sample(claim, values, fresh, request, SECOND_LEVEL)
    contrasts = second or first
    bounds = _bounds(claim, values)
    parts: list[ClaimVerdict] = [one.finding.verdict for one in contrasts]
    if claim.exact:
        known = all(bound.low is not None for bound in bounds)
        held = all(bound.holds for bound in bounds)
        parts.append("undecided" if not known else "supported" if held else "contradicted")
    # a part of a sample decides nothing, whether it was interrupted or asked for with --seeds: its
    # size was fixed before it ran, and who saw a verdict must not go on until it is another one
    unfinished = any(
        one.finding.difference.count < len(claim.sample)
        or any(
            _lacks_scores(wanted, values, one.seen.left, request) for wanted in one.contrast.learned
        )
        for one in contrasts
    )
    # what is missing here leaves the claim open, whatever its other parts say
    open_ = bool(claim.missing) or unfinished
    taken = _taken_minutes(claim, values, request)
    return ClaimOutcome(
        claim=claim,
        verdict="undecided" if open_ else verdict_of(parts, claim.needed),
        unfinished=unfinished,
        contrasts=contrasts,
        first_sample=first if second else (),
        bounds=tuple(bounds),
        minutes=expected_minutes(claim, request) if taken is None else taken,
        timed=taken is not None,
    )


def _taken_minutes(claim: Claim, values: Values, request: Request) -> float | None:
    """CPU time that all trainings of a claim took (min); None where one has no such number."""
    cells = {
        cells_of(side, request, seed).trained.cell.id
        for side in claim.sides
        for seed in claim.sample
    }
    taken = [values.get((cell, "train_cpu_s", "", "", None)) for cell in cells]
    known = [one for one in taken if one is not None]
    return sum(known) / 60 if cells and len(known) == len(cells) else None


def _with_what_is_missing(
    one: ClaimOutcome, values: Values, ended: Ended, request: Request
) -> ClaimOutcome:
    """The outcome with what its sample lacks: cells that were not run, and how others ended."""
    if not one.unfinished:
        return one
    lacking = [
        without
        for side in one.claim.sides
        for without in _lacking(side, one.claim.sample, values, ended, request)
    ]
    lost = {id_: how for without in lacking for id_, how in without.items()}
    return replace(one, waiting=not all(lacking), lost=Counter(lost.values()))


def _lacking(
    side: Side, seeds: Iterable[int], values: Values, ended: Ended, request: Request
) -> list[dict[str, str]]:
    """Of every seed without a number which cells ended without it; none where they were not run."""
    made = cells_of(side, request, FIRST_SEED)
    has = _by_seed(side, values, seeds, request)
    found = []
    for seed in seeds:
        if seed in has:
            continue
        trained, read = (replace(cell, seed=seed).id for cell in (made.trained.cell, made.read))
        without = {id_: ended[id_] for id_ in (trained, read) if id_ in ended}
        if trained != read and without.get(trained) == "ok":
            del without[trained]  # the network is there, and its probe is what lacks
        found.append(without)
    return found


def _sample(
    claim: Claim,
    values: Values,
    seeds: Sequence[int],
    request: Request,
    level: float = LEVEL,
) -> tuple[ContrastOutcome, ...]:
    """What some seeds show of each contrast."""
    observed = [_observed(one, values, seeds, request) for one in claim.contrasts]
    findings = findings_of(observed, claim.needed, level, SECOND_LEVEL)
    return tuple(
        ContrastOutcome(contrast=contrast, seen=seen, finding=finding)
        for contrast, seen, finding in zip(claim.contrasts, observed, findings, strict=True)
    )


def _observed(
    contrast: Contrast, values: Values, seeds: Sequence[int], request: Request
) -> Observed:
    """Sums of the sides for every seed that all of them have."""
    left, right = (
        [_by_seed(side, values, seeds, request) for side in sides]
        for sides in (contrast.left, contrast.right)
    )
    common = [seed for seed in seeds if all(seed in one for one in (*left, *right))]
    return Observed(
        left={seed: sum(one[seed] for one in left) for seed in common},
        right={seed: sum(one[seed] for one in right) + contrast.against for seed in common},
        expect=contrast.expect,
        of=contrast.of,
        margin=contrast.margin,
        room=_room(contrast, right, common),
        learned=all(_has_learned(one, values, common, request) for one in contrast.learned),
    )


def _room(contrast: Contrast, right: Sequence[Mapping[int, float]], seeds: Sequence[int]) -> float:
    """How far the right side lies from the end of its metric, where one score meets another."""
    alone = len(contrast.left) == len(contrast.right) == 1 and not contrast.against
    if not alone or contrast.of == "spread" or not seeds:
        return math.inf
    low, high = ends_of(contrast.right[0])
    mean = fmean(right[0][seed] for seed in seeds)
    return high - mean if contrast.expect == "higher" else mean - low


def ends_of(side: Side) -> tuple[float, float]:
    """Between which values the metric of a side lies; infinite where nothing bounds it."""
    given = [registry.find(TASKS, parse(side.task).name).target.all_metrics()]
    if side.probe:
        given.append(registry.find(PROBES, parse(side.probe).name).target.metrics)
    for metric in chain.from_iterable(given):
        if metric.name == side.metric:
            low, high = metric.low, metric.high
            return -math.inf if low is None else low, math.inf if high is None else high
    return -math.inf, math.inf


def _has_learned(wanted: Learned, values: Values, seeds: Sequence[int], request: Request) -> bool:
    """Whether the mean of a side reaches what is asked of it, over the seeds of its contrast."""
    scores = _by_seed(wanted.side, values, seeds, request)
    return not scores or fmean(scores.values()) >= wanted.low


def _lacks_scores(
    wanted: Learned, values: Values, seeds: Collection[int], request: Request
) -> bool:
    """Whether a seed of a contrast has no score that says what was learned."""
    return len(_by_seed(wanted.side, values, seeds, request)) < len(seeds)


def _by_seed(
    side: Side, values: Values, seeds: Iterable[int], request: Request
) -> dict[int, float]:
    """The number of a side for every seed that has one."""
    cell = cells_of(side, request, FIRST_SEED).read
    found = {}
    for seed in seeds:
        place = (replace(cell, seed=seed).id, side.metric, side.split, side.axis, side.x)
        if place in values:
            found[seed] = values[place]
    return found


def _bounds(claim: Claim, values: Values) -> list[BoundOutcome]:
    """The computed numbers of each bound, by their place."""
    if claim.exact is None:
        return []
    cell = exact_cell(claim.key).id
    found = []
    for bound in claim.exact.bounds:
        seen = {
            (axis, x): value
            for (at, metric, _, axis, x), value in values.items()
            if at == cell and metric == bound.metric
        }
        found.append(
            BoundOutcome(
                bound=bound,
                values={x: value for (_, x), value in seen.items()},
                axis=next((axis for axis, _ in seen), ""),
            )
        )
    return found
