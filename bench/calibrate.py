"""Find a size at which a task can tell variants apart, and a learning rate for each variant.

Only validation is read, and only seeds from 100 on, which no published run uses. Trials are cells
of a run folder, so that a stopped calibration goes on where it was.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from bench.api import registry
from bench.api.calibration import Choice, Setting, competitor
from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric
from bench.api.options import canonical
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value, parse
from bench.api.task import TASKS, Task
from bench.running.quality_cells import (
    PlannedCell,
    default_task_of,
    quality_cell,
    uniform_baselines,
)
from bench.running.request import Request
from bench.running.session import Session
from results.environment import collect
from results.statistics import paired_difference

RATES = (0.003, 0.001, 0.01)
"""Learning rates that every competitor is tried with; the first one is tried before the others."""
TRIED = 100
"""Seed of the trials that choose a rate."""
JUDGED = (101, 102, 103, 104)
"""Seeds that judge a setting; others than those that chose the rates."""
LOWEST, HIGHEST = 0.2, 0.9
"""Shares of the range between which the baseline has to be."""
SATURATED, FEW = 0.99, 0.25
"""Share of the range from which on a score is saturated, and the share of entries that may be."""
BUSY_S = 20.0
"""Least expected time of a trial, which is ended after a multiple of it: machines are busy."""
RULE = (
    f"the baseline lies between {LOWEST:g} and {HIGHEST:g} of the range of the ranking metric, the "
    "baseline or the best entry is apart from uniform attention (95% t interval of the paired "
    f"difference over {len(JUDGED)} seeds), and at most {FEW:.0%} of the entries are saturated "
    f"({SATURATED:g} of the range or more)"
)


class OutOfTime(Exception):
    """The time is up before everything was tried."""


@dataclass(frozen=True)
class Competitor:
    """A variant in its place."""

    spec: VariantSpec
    place: DefaultTask
    name: str


@dataclass(frozen=True)
class Trial:
    """One training of one competitor."""

    setting: Setting
    competitor: Competitor
    rate: float
    seed: int


@dataclass
class Calibration:
    """One task on its way to a choice."""

    task: Selector
    """Canonical, as asked."""
    preset: str
    session: Session
    until: float = math.inf
    """Reading of the clock after which no further trial starts."""
    clock: Callable[[], float] = time.monotonic
    values: dict[tuple[str, str, float, int], float | None] = field(default_factory=dict)
    """Validation value by setting, competitor, rate and seed; None where there is none."""

    def __post_init__(self) -> None:
        """Find who competes.

        Raises:
            InvalidConfig: The task declares nothing to choose from, or its metric has no range.
        """
        self.target: type[Task] = registry.find(TASKS, self.task.name).target
        if not self.target.calibration:
            raise InvalidConfig(
                f"{self.task.name} declares no settings to choose from; add `calibration = "
                "(Setting(...), ...)` to its class."
            )
        self.metric: Metric = self.target.ranking_metric()
        self.ranges = {one.name: self._range(one) for one in self.target.calibration}
        self.baseline, self.uniform, *self.entries = self._competitors()

    def share(self, setting: Setting, value: float) -> float:
        """How far a value is from the worst to the best possible one."""
        worst, best = self.ranges[setting.name]
        return (value - worst) / (best - worst)

    def _range(self, setting: Setting) -> tuple[float, float]:
        """The score without learning, and the best one."""
        registered = registry.find(TASKS, self.task.name)
        options = {**self._options(setting), **self.task.options}
        chance = self.target.chance_of(build_config(registered.config, options, self.task.name))
        bounds = (self.metric.low, self.metric.high)
        low, high = bounds if self.metric.better == "higher" else bounds[::-1]
        worst = low if chance is None else chance
        best = high if self.target.ceiling is None else self.target.ceiling
        if worst is None or best is None:
            raise InvalidConfig(
                f"{self.metric.title} of {self.task.name} has no range to be in the middle of; "
                "declare `chance` and `ceiling` on the task."
            )
        return worst, best

    def _options(self, setting: Setting) -> dict[str, Value]:
        """Task options of a setting, at the sizes of the preset."""
        usual = self.target.presets[self.preset].options_selector.options
        return {**usual, **parse(setting.options).options}

    def choose(self) -> Choice:
        """Try the settings in order, and tune everything at the first one that keeps the rule.

        Raises:
            OutOfTime: Before a setting was found.
        """
        seen = []
        for setting in self.target.calibration:
            wrong = self._wrong_with(setting)
            seen.append(f"{setting.name}: {wrong or self._told(setting)}")
            if not wrong:
                try:
                    rates = self._rates(setting)
                except OutOfTime:
                    rates = {}
                    seen.append(
                        "The time was up before every competitor had its trials of learning rates, "
                        "so all keep that of the task."
                    )
                return self._choice(setting, rates, seen)
        seen.append("No setting keeps the rule, so the sizes of the preset stay.")
        return self._choice(None, {}, seen)

    def _wrong_with(self, setting: Setting) -> str:
        """Why a setting does not keep the rule; empty where it does."""
        base = self._judged(setting, self.baseline)
        if not base:
            return "the baseline has no value."
        middle = self.share(setting, fmean(base.values()))
        if not LOWEST <= middle <= HIGHEST:
            return f"the baseline is at {middle:.2f} of the range."
        apart = self._apart(setting, self.baseline)
        firsts = self._firsts(setting, partly=apart)
        known = [self.share(setting, found) for found in firsts.values()]
        saturated = sum(share >= SATURATED for share in known)
        if saturated > FEW * len(known):
            return f"{saturated} of {len(known)} entries are saturated."
        if apart or self._apart(setting, self._leader(setting, firsts)):
            return ""
        return "nothing is apart from uniform attention."

    def _leader(self, setting: Setting, firsts: Mapping[str, float]) -> Competitor | None:
        """The entry with the best first trial."""
        known = [one for one in self.entries if one.name in firsts]
        return max(known, key=lambda one: self.share(setting, firsts[one.name]), default=None)

    def _apart(self, setting: Setting, one: Competitor | None) -> bool:
        """Whether a competitor differs from uniform attention on the seeds that judge."""
        if one is None:
            return False
        mine, other = self._judged(setting, one), self._judged(setting, self.uniform)
        seeds = sorted(mine.keys() & other.keys())
        if len(seeds) < 2:
            return False
        found = paired_difference([mine[s] for s in seeds], [other[s] for s in seeds])
        return found.estimate != 0 if found.without_spread else not found.contains(0)

    def _firsts(self, setting: Setting, *, partly: bool) -> dict[str, float]:
        """The value of each entry in its first trial.

        Args:
            setting: What is tried.
            partly: Whether some entries are enough where the time is up.

        Raises:
            OutOfTime: Before all had one, or before any had.
        """
        firsts: dict[str, float] = {}
        for one in self.entries:
            try:
                found = self._tried(setting, one, RATES[:1])
            except OutOfTime:
                if not (partly and firsts):
                    raise
                continue
            if found:
                firsts[one.name] = found[RATES[0]]
        return firsts

    def _told(self, setting: Setting) -> str:
        """What was seen of a setting that keeps the rule."""
        base, uniform = (self._judged(setting, one) for one in (self.baseline, self.uniform))
        known = {(where, who) for where, who, _, _ in self.values}
        tried = sum((setting.name, one.name) in known for one in self.entries)
        told = f"{self.metric.title} of the baseline {fmean(base.values()):.3f}"
        if uniform:
            told += f", of uniform attention {fmean(uniform.values()):.3f}"
        return f"{told}; {tried} of {len(self.entries)} entries were looked at for saturation."

    def _judged(self, setting: Setting, one: Competitor) -> dict[int, float]:
        """Values on the seeds that judge, at the best rate of this competitor."""
        found = self._tried(setting, one, RATES)
        if not found:
            return {}
        rate = self._best(setting, found)
        self._run([Trial(setting, one, rate, seed) for seed in JUDGED])
        values = {seed: self.values[setting.name, one.name, rate, seed] for seed in JUDGED}
        return {seed: value for seed, value in values.items() if value is not None}

    def _tried(
        self, setting: Setting, one: Competitor, rates: Sequence[float]
    ) -> dict[float, float]:
        """Values of a competitor by rate, on the seed that chooses them."""
        self._run([Trial(setting, one, rate, TRIED) for rate in rates])
        values = {rate: self.values[setting.name, one.name, rate, TRIED] for rate in rates}
        return {rate: value for rate, value in values.items() if value is not None}

    def _rates(self, setting: Setting) -> dict[str, float]:
        """The best rate of every competitor, each after the same number of trials."""
        best = {}
        for one in (self.baseline, self.uniform, *self.entries):
            found = self._tried(setting, one, RATES)
            if found:
                best[one.name] = self._best(setting, found)
        return best

    def _best(self, setting: Setting, found: Mapping[float, float]) -> float:
        return max(found, key=lambda rate: self.share(setting, found[rate]))

    def _run(self, trials: Iterable[Trial]) -> None:
        """Train what has no value yet."""
        todo = [t for t in trials if self._key(t) not in self.values]
        cells = {self._key(trial): self._cell(trial) for trial in todo}
        if not cells:
            return
        stored = self._stored()
        if self.clock() > self.until and not all(c.cell.id in stored for c in cells.values()):
            raise OutOfTime
        if not self.clock() > self.until:
            self.session.train([*cells.values()])
            stored = self._stored()
        if not all(planned.cell.id in stored for planned in cells.values()):
            raise OutOfTime
        self.values.update({key: stored[planned.cell.id] for key, planned in cells.items()})

    def _stored(self) -> dict[str, float | None]:
        """Validation value of every finished cell of the folder."""
        found: dict[str, float | None] = {}
        for id_, record in self.session.store.ledger().newest().items():
            if record.status == "timeout":  # the machine's fault; the next command tries again
                continue
            found[id_] = next(
                (
                    float(row.value)
                    for row in record.rows
                    if row.metric == self.metric.name and row.split == "validation" and not row.axis
                ),
                None,
            )
        return found

    @staticmethod
    def _key(trial: Trial) -> tuple[str, str, float, int]:
        return trial.setting.name, trial.competitor.name, trial.rate, trial.seed

    def _cell(self, trial: Trial) -> PlannedCell:
        """The cell of a trial, which reads no test."""
        options = {**parse(trial.setting.options).options, **self.task.options}
        protocol = {**parse(trial.setting.protocol).options, "lr": trial.rate}
        request = self._request(Selector("adam", protocol).show())
        place = replace(trial.competitor.place, task=Selector(self.task.name, options).show())
        planned = quality_cell(request, trial.competitor.spec, place, trial.seed)
        seconds = max(planned.seconds, BUSY_S)
        return replace(planned, cell=replace(planned.cell, kind="trial"), seconds=seconds)

    def _request(self, training: str) -> Request:
        return Request(preset=self.preset, training=training, calibrated=False)

    def _competitors(self) -> list[Competitor]:
        """Baseline, uniform attention, the task's comparison, and those whose own task it is."""
        request = self._request("")
        here = DefaultTask(task=self.task.show())
        wanted = [(request.asked_baseline.spec, here)]
        wanted += [(resolve(Selector(name)), here) for name in uniform_baselines()]
        for entry in self.target.comparison:
            about = entry.task or self.task.name
            if canonical("task", DefaultTask(task=about).selector) == self.task:
                place = replace(here, backbone=entry.backbone, slot=entry.slot)
                wanted.append((resolve(entry.selector), place))
        for name in registry.listed_variants():
            spec = resolve(Selector(name))
            own = default_task_of(spec)
            if own is not None and canonical("task", own.selector) == self.task:
                wanted.append((spec, own))
        found: dict[str, Competitor] = {}
        for spec, place in wanted:
            cell = quality_cell(request, spec, place).cell
            name = competitor(cell.variant, cell.backbone, cell.slot)
            found.setdefault(name, Competitor(spec, place, name))
        return [*found.values()]

    def _choice(
        self, setting: Setting | None, rates: dict[str, float], seen: Sequence[str]
    ) -> Choice:
        facts = collect(self.session.settings.threads)
        trials: list[dict[str, Any]] = [
            {"setting": where, "competitor": who, "lr": rate, "seed": seed, "value": value}
            for (where, who, rate, seed), value in self.values.items()
        ]
        return Choice(
            task=self.task.show(),
            preset=self.preset,
            chosen=setting,
            why=" ".join(seen),
            rule=RULE,
            rates=rates,
            baseline=self.baseline.name,
            trials=tuple(trials),
            commit=facts.git_revision,
            environment={
                "cpu": facts.cpu,
                "python": facts.python,
                "torch": facts.packages.get("torch", ""),
            },
        )
