"""The comparisons of published runs, made again from their rows by pandas and SciPy alone.

Nothing of `results.statistics`, `results.comparable` or `reports` is used: what is compared with
what, the tests, the ranks and the ties are those of ADR 9, 21 and 23 and of docs/statistics.md,
written a second time.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from moderated_again import Again, holm

import results

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "published"
PAGES = ROOT / "reports" / "published"
RANKED = (
    "quick",
    "modern",
    "fresh_seeds",
    "families",
    "flagship",
    "multi30k",
    "erasure",
    "quantity_end",
    "milk_latency",
)
"""Packs whose pages have ranked tables."""
LEVEL = 0.05
SAME = ["task", "slot", "dtype", "device"]
"""Cells that differ in one of these are never compared."""
SIZES = ("length", "source_length", "difficulty", "digits", "facts")
"""Axes along which a test is harder where they are larger."""


def options(selector: str) -> tuple[str, dict[str, str]]:
    """Name and options of `name[key=value,...]`; values keep their brackets."""
    name, _, rest = selector.partition("[")
    parts, depth = [""], 0
    for letter in rest[:-1]:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return name, dict(one.split("=", 1) for one in parts if one)


class Pack:
    """A published run: its rows, and what the catalog says of its names."""

    def __init__(self, name: str) -> None:
        self.path: Path = PUBLISHED / f"{name}.parquet"
        run = results.load(self.path)
        texts = [*run.rows.select_dtypes("str").columns]
        self.rows: pd.DataFrame = run.rows.astype(dict.fromkeys(texts, object))
        self.catalog: dict[str, Any] = dict(run.catalog)
        self.baseline: str = str(self.catalog["baseline"])
        self.variants: dict[str, Any] = self.catalog["variants"]
        self.tasks: dict[str, Any] = self.catalog["tasks"]
        self.metrics: dict[str, Any] = self.catalog["metrics"]
        self.certificates: Mapping[str, Any] = run.certificates
        assert self.catalog["ranks"]
        assert self.catalog.get("looks") is None  # all seeds were planned at once

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short names of variants and tasks; the selector where two are alike."""
        found = {}
        for known in (self.variants, self.tasks):
            shorts = [one["short"] or full for full, one in known.items()]
            for full, short in zip(known, shorts, strict=True):
                found[full] = short if shorts.count(short) == 1 else full
        return found

    def label(self, name: str) -> str:
        return self.labels.get(name, name)

    def control(self, variant: str) -> str | None:
        return self.variants.get(variant, {}).get("control")

    def is_red(self, variant: str) -> bool:
        """Whether a check failed, or one that had to pass did not."""
        known = self.certificates
        found = known.get(variant) or known.get(variant.partition("[")[0])
        if not found:
            return False
        return bool(found["failed"]) or not {*found["expected"]} <= {*found["passed"]}

    @cached_property
    def comparisons(self) -> list["Compared"]:
        """Cells of one task that compete, in the order of their settings."""
        rows = self.rows[(self.rows["kind"] == "quality") & (self.rows["baseline"] == "")]
        cells = rows.drop_duplicates("cell")
        return [
            Compared(self, rows[rows["cell"].isin(set(group["cell"]))])
            for _, alike in cells.groupby(SAME)
            for group in comparisons_of(alike)
        ]

    def non_neural(self, task: str, metric: str) -> dict[str, "pd.Series[float]"]:
        """Test scores by seed of non-neural baselines; of a seed that of the newest cell."""
        rows = self.rows
        rows = rows[(rows["kind"] == "quality") & (rows["task"] == task) & (rows["baseline"] != "")]
        rows = rows[(rows["status"] == "ok") & (rows["split"] == "test")]
        rows = rows[rows["metric"] == metric].sort_values("finished", kind="stable")
        newest = rows.groupby(["baseline", "seed"])["value"].last()
        return {str(name): found.droplevel(0) for name, found in newest.groupby(level=0)}


@lru_cache
def pack_of(name: str) -> Pack:
    """A pack, read once."""
    return Pack(name)


def comparisons_of(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Split cells that are the same in `SAME` by the networks, then by settings, that are doubled.

    Cells that differ in a network or a setting are compared, unless a variant has two of a seed.
    """
    place = cells["backbone"].map(_networks(cells))
    for _, alike in cells.groupby(place):
        yield from _apart(alike)


def _networks(cells: pd.DataFrame) -> dict[str, str]:
    """Each network to the one that it is nearest to, of those that a variant has beside others.

    The network that most variants have is one of these. Where no variant has several, all are one.
    """
    held = cells.groupby(["variant", "seed"])["backbone"].agg(set)
    doubled = {network for one in held if len(one) > 1 for network in one}
    if not doubled:
        return dict.fromkeys(cells["backbone"], "")
    uses = cells.groupby("backbone")["variant"].nunique()
    hosts = sorted({*doubled, uses.idxmax()})
    found = {}
    for network in cells["backbone"].unique():
        name, mine = options(network)
        near = []
        for host in hosts:
            other_name, theirs = options(host)
            if other_name == name:
                keys = mine.keys() | theirs.keys()
                near.append((sum(mine.get(key) != theirs.get(key) for key in keys), host))
        found[network] = min(near)[1] if near else network
    return found


def facts(selector: str, path: str = "") -> dict[str, str]:
    """Name and options of a selector, and of a selector inside, each by the way to it."""
    name, given = options(selector)
    found = {path: name}
    for key, value in given.items():
        found |= facts(value, f"{path}/{key}") if "[" in value else {f"{path}/{key}": value}
    return found


def settings(cells: pd.DataFrame) -> pd.DataFrame:
    """A line a cell, and a column a setting: option of the protocol, code, revision of a part."""
    lines = []
    for protocol, impl, revisions in zip(
        cells["protocol"], cells["impl"], cells["revisions"], strict=True
    ):
        line = {(0, path): value for path, value in facts(protocol).items()}
        line[1, "impl"] = impl
        for part in revisions.split():
            name, number = part.split(":")
            line[2, name] = number
        lines.append(line)
    known = sorted({key for line in lines for key in line})
    return pd.DataFrame(
        {str(at): [line.get(key, "") for line in lines] for at, key in enumerate(known)},
        index=cells.index,
    )


def _apart(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Split by the setting of which most variants have several values for a seed, and go on.

    Of several such settings it is the one with the fewest values. Cells with
    none of these values go with the value that most variants have.
    """
    best: tuple[int, int] | None = None
    place = pd.Series(dtype=object)
    for _, value in settings(cells).items():
        held = value.groupby([cells["variant"], cells["seed"]]).agg(set)
        held = held[held.map(len) > 1]
        hosts = sorted({one for values in held for one in values})
        rank = (-held.index.get_level_values("variant").nunique(), len(hosts))
        if hosts and (best is None or rank < best):
            users = {host: cells.loc[value == host, "variant"].nunique() for host in hosts}
            most = max(hosts, key=lambda host: users[host])
            best, place = rank, value.where(value.isin(hosts), most)
    if best is None:
        yield cells
        return
    for _, part in cells.groupby(place):
        yield from _apart(part)


class Compared:
    """One comparison."""

    def __init__(
        self,
        pack: Pack,
        rows: pd.DataFrame,
        *,
        metric: str = "",
        scores: pd.DataFrame | None = None,
        whole: "Compared | None" = None,
        part: str = "",
    ) -> None:
        self.pack, self.rows, self.whole, self.part = pack, rows, whole, part
        self.task = str(rows["task"].iloc[0])
        self.about: dict[str, Any] = pack.tasks[self.task]
        self.metric = metric or str(self.about["primary"])
        self.measure: dict[str, Any] = pack.metrics[self.metric]
        self.sign = {"higher": 1.0, "lower": -1.0}[self.measure["better"]]
        self.scores = self.values(self.metric, "test") if scores is None else scores

    @cached_property
    def final(self) -> pd.DataFrame:
        """Rows of what cells were in the end, without what was measured along an axis."""
        return self.rows[(self.rows["status"] == "ok") & (self.rows["axis"] == "")]

    def values(self, metric: str, split: str) -> pd.DataFrame:
        """Final values: a line a variant, a column a seed."""
        rows = self.final[(self.final["metric"] == metric) & (self.final["split"] == split)]
        return rows.groupby(["variant", "seed"])["value"].median().unstack("seed")

    def parts(self, metric: str, axis: str) -> dict[float, pd.DataFrame]:
        """Test values of each part of the test along an axis."""
        rows = self.rows
        rows = rows[(rows["status"] == "ok") & (rows["metric"] == metric) & (rows["axis"] == axis)]
        rows = rows[rows["split"] == "test"]
        known = rows.groupby(["x", "variant", "seed"])["value"].median()
        return {
            float(str(x)): found.droplevel(0).unstack("seed") for x, found in known.groupby(level=0)
        }

    @property
    def margin(self) -> float | None:
        own = self.about.get("margin") if self.metric == self.about["primary"] else None
        found = self.measure.get("margin") if own is None else own
        return None if found is None else float(found)

    @cached_property
    def limits(self) -> tuple[float, float]:
        low, high = self.measure["low"], self.measure["high"]
        return -math.inf if low is None else low, math.inf if high is None else high

    @cached_property
    def red(self) -> set[str]:
        return {name for name in self.rows["variant"].unique() if self.pack.is_red(name)}

    @cached_property
    def means(self) -> "pd.Series[float]":
        return self.scores.mean(axis=1)

    @cached_property
    def seeds(self) -> "pd.Series[int]":
        return self.scores.count(axis=1)

    @cached_property
    def parameters(self) -> "pd.Series[float]":
        rows = self.final[self.final["split"].isin(["", "train"])]
        rows = rows[rows["metric"] == "parameters_count"]
        return rows.groupby("variant")["value"].mean()

    @cached_property
    def contenders(self) -> list[str]:
        names = [name for name in self.scores.index if name not in self.red]
        return [name for name in names if self.pack.control(name) is None]

    @cached_property
    def order(self) -> list[str]:
        """What is compared, by mean score, best first (ADR 9)."""
        least = min(2, self.seeds.max())
        fair = [n for n in self.scores.index if n not in self.red and self.seeds[n] >= least]

        def place(name: str) -> tuple[float, bool, float, str]:
            mean = float(f"{self.means[name]:.12g}")
            count = self.parameters.get(name, math.inf)
            return -self.sign * mean, name != self.pack.baseline, count, name

        return sorted(fair, key=place)

    @cached_property
    def base(self) -> str | None:
        return self.pack.baseline if self.pack.baseline in self.order else None

    @cached_property
    def uniform(self) -> str | None:
        scored = (self.whole or self).scores.index
        return next((n for n in scored if self.pack.control(n) == "uniform_baseline"), None)

    @cached_property
    def test(self) -> Again:
        return Again(self.scores.loc[self.order])

    @cached_property
    def all_pairs(self) -> dict[tuple[str, str], float]:
        return self.test.every_pair()

    @cached_property
    def planned(self) -> list[tuple[str, str]]:
        """Primary hypotheses: contenders against references, and the baseline against uniform."""
        references = [n for n in (self.base, self.uniform) if n is not None and n in self.order]
        others = [
            name
            for name in self.order
            if name not in references and self.pack.control(name) is None
        ]
        pairs = [(name, reference) for reference in references for name in others]
        return pairs + ([(references[0], references[1])] if len(references) == 2 else [])

    @cached_property
    def primary(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Adjusted p of no difference and of the margin or more, found either way round."""
        found = [self.test.p_values(*pair, self.margin) for pair in self.planned]
        table = pd.DataFrame(found, columns=["different", "equal"], dtype=float)
        equal = holm(table["equal"]) if self.margin else table["equal"]
        ps = zip(self.planned, holm(table["different"]), equal, strict=True)
        pairs = {pair: (float(different), float(equal)) for pair, different, equal in ps}
        return pairs | {(other, one): ps for (one, other), ps in pairs.items()}

    def p(self, one: str, other: str) -> float:
        """Of the primary test of a pair where it has one, else of that of all pairs."""
        pair = (one, other)
        return self.primary[pair][0] if pair in self.primary else self.all_pairs[pair]

    def lead(self, one: str, other: str) -> float:
        """How far a variant is ahead on the seeds that were tested; 0 but for rounding."""
        gap = self.sign * self.test.ahead(one, other)
        return gap if abs(gap) > 1e-12 * self.test.largest else 0.0

    def p_better(self, one: str, other: str | None) -> float:
        """P of the pair where the first is ahead, else NaN.

        On a part of the test or by steps, a reference that has no score there has it on the whole.
        """
        if self.whole and one in self.order and other not in self.order:
            return self.whole.p_better(one, other)
        if other is None or one == other or not {one, other} <= {*self.order}:
            return math.nan
        return self.p(one, other) if self.lead(one, other) > 0 else math.nan

    def beats(self, one: str, other: str | None) -> bool:
        return self.p_better(one, other) < LEVEL

    def outcome(self, one: str, other: str) -> str:
        """Of a pair, seen from the first; equivalence is claimed of primary hypotheses alone."""
        if self.p(one, other) < LEVEL:
            return "better" if self.sign * self.test.ahead(one, other) > 0 else "worse"
        equal = self.primary.get((one, other), (1.0, 1.0))[1]
        return "equivalent" if equal < LEVEL else "undecided"

    def separable(self, above: str, below: str) -> bool:
        """Whether the one with the better mean is significantly better, over all pairs."""
        if above == below:
            return False
        return self.all_pairs[above, below] < LEVEL and self.lead(above, below) > 0

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Places; a rank goes down to what is separable from any line above it in this rank."""
        found: dict[str, int] = {}
        group: list[str] = []
        for place, name in enumerate(self.order, start=1):
            if any(self.separable(above, name) for above in group):
                group = []
            group.append(name)
            found[name] = place if len(group) == 1 else found[group[0]]
        return found

    @cached_property
    def validation(self) -> pd.DataFrame:
        """Validation scores by the metric that ranks, of the whole set."""
        return self.whole.validation if self.whole else self.values(self.metric, "validation")

    @cached_property
    def lost(self) -> dict[str, int]:
        """Seeds of each variant that are not above the mean of uniform attention in validation."""
        seen = self.sign * self.validation
        if self.uniform not in seen.index:
            return {}
        level = seen.loc[self.uniform].mean()
        return {str(name): int(count) for name, count in (seen <= level).sum(axis=1).items()}

    @cached_property
    def validated(self) -> dict[str, int]:
        """Seeds of each variant with a validation score."""
        return {str(name): int(n) for name, n in self.validation.count(axis=1).items()}

    def lost_every_seed(self, name: str) -> bool:
        return name in self.contenders and 0 < self.lost.get(name, 0) == self.validated[name]

    @cached_property
    def leading(self) -> list[str]:
        """Rank 1 without what is worse than the baseline or has not learned."""
        first = [name for name in self.order if self.ranks[name] == 1]
        base = self.base
        kept = [n for n in first if base in (None, n) or self.outcome(n, str(base)) != "worse"]
        return [name for name in kept or first if not self.lost_every_seed(name)]

    @property
    def is_evidence(self) -> bool:
        """Whether no input is ablated, and it is more than a check of the pipeline."""
        whole = self.about.get("whole", "") in ("", self.task)
        over = self.about.get("pipeline_check_over", {})
        return whole and not self.about.get("pipeline_check") and self.network not in over

    @cached_property
    def network(self) -> str:
        """Name of the network that most variants have."""
        uses = self.rows.groupby("backbone")["variant"].nunique().sort_index()
        return str(uses.idxmax()).partition("[")[0]

    @property
    def decides(self) -> bool:
        """Whether it says what to choose, of two contenders or more."""
        fair = [name for name in self.contenders if name in self.order]
        return self.is_evidence and self.seeds.max() > 1 and len(fair) > 1

    @property
    def is_declared(self) -> bool:
        return self.metric.startswith(("beyond_training_", "along_training_"))

    @property
    def saturated(self) -> list[bool]:
        """Of each contender, whether its mean is within 1% of the range from the best score."""
        low, high = self.limits
        worst, best = (low, high) if self.sign > 0 else (high, low)
        level = worst + 0.99 * (best - worst)
        if not math.isfinite(level):
            return [False for _ in self.contenders]
        return [self.sign * self.means[name] >= self.sign * level for name in self.contenders]

    @property
    def is_nearly_all_saturated(self) -> bool:
        found = self.saturated
        return sum(found) > 1 and sum(found) >= 0.75 * len(found)

    @cached_property
    def separating(self) -> "Compared":
        """What decides between the best: a harder part of the test where two are saturated.

        No published comparison ranks by steps to a threshold, which is asserted.
        """
        if self.is_declared or sum(self.saturated) < 2:
            return self
        assert not self.is_nearly_all_saturated
        return self._harder() or self

    def _harder(self) -> "Compared | None":
        """The hardest part that every variant has and on which a contender is above uniform."""
        for axis in SIZES:
            parts = self.parts(self.metric, axis)
            for x, scores in sorted(parts.items(), reverse=True):
                if {*scores.index} != {*self.scores.index}:
                    continue
                words = f"{axis.replace('_', ' ')} {x:g}"
                part = Compared(self.pack, self.rows, scores=scores, whole=self, part=words)
                level = LEVEL / len(parts)
                if any(part.p_better(n, part.uniform) < level for n in part.contenders):
                    return None if sum(part.saturated) > 1 else part
        return None
