"""Every published verdict on a claim, computed again from rows by pandas and SciPy alone.

Nothing of `results.statistics` is used: the rules are those of ADR 20, written a second time.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.api import registry
from bench.api.claim import CLAIMS, FIRST_SEED
from bench.claims.cells import cells_of
from bench.claims.computed import exact_cell
from bench.claims.verdicts import ends_of, outcomes_of
from bench.cli.registered import load_registry
from bench.running.request import Request
from results.pack import Pack

ROOT = Path(__file__).parents[2]
PACK = ROOT / "results" / "published" / "claims.parquet"
PAGE = ROOT / "reports" / "published" / "claims" / "claims.md"
load_registry(())
OPEN = ("in part run", "not run", "cannot be tested here")
"""What the page says of claims that are undecided for want of numbers."""
KEYS = list(registry.registrations(CLAIMS))


@pytest.fixture(scope="module")
def rows():
    frame = Pack(PACK).frame
    return frame[(frame["status"] == "ok") & (frame["baseline"] == "")]


def seeds_of(claim) -> tuple[int, int]:
    """From 200 on, of claims that were written anew from 500 on; second samples 300 later."""
    if claim.rewritten:
        return (800, 10_000) if claim.again else (500, 800)
    return (300, 500) if claim.again else (200, 300)


def series(rows: pd.DataFrame, side, seeds: tuple[int, int]) -> pd.Series:
    """The row of a side, by seed."""
    cell = cells_of(side, Request(), FIRST_SEED).read
    mine = rows[(rows["metric"] == side.metric) & (rows["split"] == side.split)]
    mine = mine[(mine["axis"] == side.axis) & mine["seed"].between(*seeds, inclusive="left")]
    if side.x is not None:
        mine = mine[mine["x"] == side.x]
    ids = {replace(cell, seed=int(seed)).id: seed for seed in mine["seed"].unique()}
    mine = mine[mine["cell"].isin(ids)]
    return mine.set_index("seed")["value"]


def holm(ps: list[float]) -> list[float]:
    ordered = pd.Series(ps).sort_values(kind="stable")
    steps = np.arange(len(ps), 0, -1)
    return (ordered * steps).cummax().clip(upper=1.0).sort_index().tolist()


def p_values(
    gaps: pd.Series, scale: float, margin: float, expect: str
) -> tuple[float, float, float]:
    """Of no difference, of one of at most the margin, and of one of at least the margin.

    The last is of the expected direction, or of both where equality is expected.
    """
    if len(gaps) < 2:
        return 1.0, 1.0, 1.0
    if gaps.std() <= 1e-6 * scale:
        moved = 2.0 ** (1 - len(gaps)) if abs(gaps.mean()) > 1e-6 * scale else 1.0
        signed = {"higher": 1, "lower": -1, "equal": np.sign(gaps.mean())}[expect] * gaps.mean()
        inside = margin - signed
        beyond = moved if margin - abs(gaps.mean()) < -1e-6 * margin else 1.0
        return moved, beyond, (2.0 ** -len(gaps) if inside > 1e-6 * margin else 1.0)
    outside = 1.0
    if margin:
        below = stats.ttest_1samp(gaps, margin, alternative="less").pvalue
        above = stats.ttest_1samp(gaps, -margin, alternative="greater").pvalue
        outside = {"higher": below, "lower": above, "equal": max(below, above)}[expect]
    beyond = 1.0
    if abs(gaps.mean()) > margin:
        beyond = stats.ttest_1samp(gaps, math.copysign(margin, gaps.mean())).pvalue
    return stats.ttest_1samp(gaps, 0.0).pvalue, beyond, outside


def compared(plus: pd.Series, minus: pd.Series, contrast) -> tuple[float, list[float]]:
    """The difference, and its p values; of a spread it is that of distances from the median."""
    few = contrast.of == "spread" and len(plus) < 12
    if contrast.of == "spread":
        plus, minus = ((side - side.median()).abs() for side in (plus, minus))
    scale = max(plus.abs().max(), minus.abs().max()) if len(plus) else 0.0
    ps = p_values(plus - minus, scale, contrast.margin, contrast.expect)
    if not contrast.margin:
        ps = (*ps[:2], 1.0)
    return (plus - minus).mean(), [1.0 if few else p for p in ps]


def blocked(rows: pd.DataFrame, claim, one, right: list[pd.Series], seeds) -> tuple[bool, bool]:
    """Whether nothing of that size is possible, and whether a network has learned too little."""
    scores = [(series(rows, wanted.side, seeds_of(claim)), wanted.low) for wanted in one.learned]
    unlearned = any(not low <= score.reindex(seeds).mean() for score, low in scores)
    if one.against or one.of == "spread" or not len(one.left) == len(one.right) == 1:
        return False, unlearned
    low, high = ends_of(one.right[0])
    mean = right[0].reindex(seeds).mean()
    room = high - mean if one.expect == "higher" else mean - low
    return room < 2 * one.margin, unlearned


def contrasts(rows: pd.DataFrame, claim) -> list[str]:
    means, found, blocks = [], [], []
    for one in claim.contrasts:
        left = [series(rows, side, seeds_of(claim)) for side in one.left]
        right = [series(rows, side, seeds_of(claim)) for side in one.right]
        both = pd.concat([*left, *right], axis=1, join="inner")
        plus, minus = both.iloc[:, : len(left)].sum(axis=1), both.iloc[:, len(left) :].sum(axis=1)
        mean, ps = compared(plus, minus + one.against, one)
        if one.expect != "equal" and (plus == minus + one.against).all():
            ps[2] = 1.0  # a difference was expected and no seed has any: nothing is shown
        means.append(mean)
        found.append(ps)
        blocks.append(blocked(rows, claim, one, right, both.index) if len(both) else (False, False))
    holds, fails = found, list(zip(*map(holm, zip(*found, strict=True)), strict=True))
    if claim.needed == "any":
        holds, fails = fails, holds
    level = 0.025 if claim.again or claim.rewritten else 0.05
    return [
        outcome(one, means[at], holds[at], fails[at], level, blocks[at])
        for at, one in enumerate(claim.contrasts)
    ]


def outcome(one, mean: float, holds, fails, level: float, block: tuple[bool, bool]) -> str:
    """What a contrast shows, by its p values: no difference, within the margin, beyond it."""
    signed = -mean if one.expect == "lower" else mean
    cramped, unlearned = block
    if np.isnan(signed) or unlearned:
        return "undecided"
    if one.expect == "equal":
        differs = fails[1] < level
        return "equivalent" if holds[2] < level else "contradicted" if differs else "undecided"
    if holds[1] < level and signed > 0:
        return "supported"
    if fails[0] < level and signed < 0:
        return "contradicted"
    return "contradicted" if fails[2] < level and not cramped else "undecided"


def expected(rows: pd.DataFrame, claim) -> str:
    parts = contrasts(rows, claim)
    if claim.exact:
        stored = rows[rows["cell"] == exact_cell(claim.key).id]
        bounds = [
            (b, stored.loc[stored["metric"] == b.metric, "value"]) for b in claim.exact.bounds
        ]
        if all(len(values) for _, values in bounds):
            inside = all(values.between(b.low, b.high).all() for b, values in bounds)
            parts.append("supported" if inside else "contradicted")
        else:
            parts.append("undecided")
    if claim.missing:
        return "undecided"
    seen = [len(series(rows, side, seeds_of(claim))) for side in claim.sides]
    if claim.again > max(seen, default=0):
        return "undecided"  # a second sample is decided as a whole
    held = [part in ("supported", "equivalent") for part in parts]
    failed = [part == "contradicted" for part in parts]
    if all(held) if claim.needed == "all" else any(held):
        kinds = {part for part, holds in zip(parts, held, strict=True) if holds}
        return "equivalent" if kinds == {"equivalent"} else "supported"
    if any(failed) if claim.needed == "all" else all(failed):
        return "contradicted"
    return "undecided"


def test_every_verdict_is_that_of_other_code(rows):
    claims = [registry.find(CLAIMS, key).target for key in KEYS]
    found = {one.claim.key: one.verdict for one in outcomes_of(claims, Pack(PACK).frame, Request())}
    assert found == {claim.key: expected(rows, claim) for claim in claims}
    assert {"supported", "undecided"} <= set(found.values())


def test_the_published_page_says_these_verdicts(rows):
    line = r"^\| (C\d\d) \| .* \| ([\w ]+?)(?: \([\w ]+ the margin\))? \| .*\|$"
    said = dict(re.findall(line, PAGE.read_text(), re.MULTILINE))
    claims = {key: registry.find(CLAIMS, key).target for key in KEYS}
    verdicts = {key: "undecided" if word in OPEN else word for key, word in said.items()}
    assert verdicts == {key: expected(rows, claim) for key, claim in claims.items()}


def test_what_was_not_run_or_has_no_test_is_called_so(rows):
    claims = [registry.find(CLAIMS, key).target for key in KEYS]
    found = {
        one.claim.key: one.standing for one in outcomes_of(claims, Pack(PACK).frame, Request())
    }
    for claim in claims:
        sides = [series(rows, side, seeds_of(claim)) for side in claim.sides]
        exact = rows["cell"] == exact_cell(claim.key).id
        nothing = not any(len(one) for one in sides) and not exact.any()
        missing = bool(claim.missing)
        assert (found[claim.key] == "cannot be tested here") == missing, claim.key
        if nothing and not missing:
            assert found[claim.key] == "not run", claim.key
        if found[claim.key] == "not run":
            assert not exact.any(), claim.key
