"""Trials of a calibration: who competes, the cells that are trained, and what validation gave."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.api import registry
from bench.api.calibration import Choice, Setting, competitor
from bench.api.options import canonical
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.api.task import TASKS, Task
from bench.running.quality_cells import (
    PlannedCell,
    default_task_of,
    quality_cell,
    roster_of,
    shared_tasks,
    uniform_baselines,
)
from bench.running.request import Request
from bench.running.session import Session
from bench.trial_cells import choosing_value

RATES = (0.003, 0.001, 0.01)
"""Learning rates that every competitor is tried with; the first one is tried before the others."""
TRIED = 100
"""Seed of the trials that choose a rate."""
JUDGED = (101, 102, 103, 104)
"""Seeds that judge a setting; others than those that chose the rates."""
BESIDE_TRAINING = 1.3
"""What a cell takes over the CPU time of its training: validations, and building it."""
BUSY_S = 20.0
"""Least expected time of a trial, which is ended after a multiple of it: machines are busy."""


class OutOfTime(Exception):
    """The time is up before everything was tried, or a trial was ended for taking too long."""


@dataclass(frozen=True)
class Competitor:
    """A variant in its place."""

    spec: VariantSpec
    place: DefaultTask
    name: str

    @property
    def network(self) -> str:
        """The backbone and the slot in which it stands, as its name says them."""
        return self.name.partition(" @ ")[2]


@dataclass(frozen=True)
class Trial:
    """One training of one competitor."""

    setting: Setting
    competitor: Competitor
    rate: float
    seed: int


@dataclass
class Trials:
    """Everything that is trained for the calibration of one task."""

    task: Selector
    """Canonical, as asked."""
    preset: str
    session: Session
    until: float = math.inf
    """Reading of the clock after which no further trial starts."""
    clock: Callable[[], float] = time.monotonic
    values: dict[tuple[str, str, float, int], float | None] = field(default_factory=dict)
    """Validation value by setting, competitor, rate and seed; None where there is none."""

    kept: Choice | None = None
    """An earlier choice whose trials count, so that only what is missing is trained."""
    lost: str = field(init=False, default="")
    """Why a trial ended for a cause outside of the code, such as a full disk or missing data."""
    too_long: bool = field(init=False, default=False)
    """Whether a trial was ended for taking too long, though time was left."""

    def __post_init__(self) -> None:
        """Find who competes, and what is known of them."""
        if self.kept is not None:
            for one in self.kept.trials:
                key = (one["setting"], one["competitor"], one["lr"], one["seed"])
                self.values[key] = one["value"]
        self.target: type[Task] = registry.find(TASKS, self.task.name).target
        size = self.target.presets.get(self.preset)
        self.about_size = size is not None and size.comparison is not None
        """Whether the size is what the comparison is about, so that it is not for choice."""
        self.rates_alone = self.about_size or not self.target.calibration
        """Whether the size stays, also where the task declares no others."""
        self.steps = 0 if size is None else size.trial_steps
        """Updates of a trial that chooses rates alone; 0 for those of a whole training."""
        self.baseline, self.uniform, *self.entries = self._competitors()

    def uniform_beside(self, one: Competitor) -> Competitor:
        """Uniform attention in the network of a competitor; it competes wherever an entry does."""
        variant = self.uniform.name.partition(" @ ")[0]
        mine = f"{variant} @ {one.network}"
        return next(other for other in (self.uniform, *self.entries) if other.name == mine)

    def of_rates(
        self, setting: Setting, one: Competitor, rates: Sequence[float] = RATES
    ) -> Mapping[float, float]:
        """Values of a competitor by rate, on the seed that chooses them.

        Raises:
            OutOfTime: Not all of them have one.
        """
        found = self._run([Trial(setting, one, rate, TRIED) for rate in rates])
        values = zip(rates, found, strict=True)
        return {rate: value for rate, value in values if value is not None}

    def ahead(
        self, setting: Setting, those: Sequence[Competitor], rates: Sequence[float] = RATES
    ) -> None:
        """Train together what will be asked for, so that every worker has work.

        With a limit of time it does nothing: the limit is looked at before each competitor.
        """
        if self.until == math.inf:
            self._train([Trial(setting, one, rate, TRIED) for one in those for rate in rates])

    def of_seeds(self, setting: Setting, one: Competitor, rate: float) -> Mapping[int, float]:
        """Values of a competitor on the seeds that judge.

        Raises:
            OutOfTime: Not all of them have one.
        """
        found = self._run([Trial(setting, one, rate, seed) for seed in JUDGED])
        values = zip(JUDGED, found, strict=True)
        return {seed: value for seed, value in values if value is not None}

    def seconds_of(self, setting: Setting, rates: Mapping[str, float]) -> float:
        """What a cell takes (CPU s), validations beside training; that of the baseline.

        Where the size is given, the baseline may stop long before the others. So it is what all of
        them take at the rates that were chosen, shared out by what each costs beside the baseline.
        """
        costs = {
            self._cell(one).cell.id: one.competitor.spec.registered.cost
            for one in self._timed(setting, rates)
            if self._key(one) in self.values
        }
        newest = self.session.store.ledger().newest()
        taken = {
            id_: float(row.value)
            for id_ in costs
            if id_ in newest and self.session.holds(newest[id_])
            for row in newest[id_].rows
            if row.metric == "train_cpu_s"
        }
        shares = sum(costs[id_] for id_ in taken)
        return round(BESIDE_TRAINING * sum(taken.values()) / shares, 1) if taken else 0.0

    def seconds_again(self, setting: Setting, rates: Mapping[str, float]) -> float:
        """`seconds_of`, of trainings in this run folder, whatever was trained elsewhere.

        Raises:
            OutOfTime: Not all of them ended.
        """
        timed = self._timed(setting, rates)
        for one in timed:
            self.values.pop(self._key(one), None)
        self._train(timed)
        return self.seconds_of(setting, rates)

    def _timed(self, setting: Setting, rates: Mapping[str, float]) -> list[Trial]:
        """The trials whose time counts."""
        if not setting.given:
            return [Trial(setting, self.baseline, rate, TRIED) for rate in RATES]
        everyone = (self.baseline, self.uniform, *self.entries)
        tuned = [one for one in everyone if one.name in rates]
        return [Trial(setting, one, rates[one.name], TRIED) for one in tuned]

    def _run(self, trials: Sequence[Trial]) -> list[float | None]:
        """Train what has no value yet; returns the value of each trial, in order."""
        self._train(trials)
        return [self.values[self._key(trial)] for trial in trials]

    def _train(self, trials: Sequence[Trial]) -> None:
        todo = [t for t in trials if self._key(t) not in self.values]
        cells = {self._key(trial): self._cell(trial) for trial in todo}
        if not cells:
            return
        ids = {key: planned.cell.id for key, planned in cells.items()}
        stored = self._stored(ids.values())
        if self.clock() > self.until and not all(id_ in stored for id_ in ids.values()):
            raise OutOfTime
        if not self.clock() > self.until:
            self.session.train([*cells.values()])
            stored = self._stored(ids.values())
        self.values.update({key: stored[id_] for key, id_ in ids.items() if id_ in stored})
        if not all(id_ in stored for id_ in ids.values()):
            self.lost = self._lost_to_the_machine(ids.values())
            self.too_long = self.clock() <= self.until and not self.lost
            raise OutOfTime

    def _stored(self, ids: Iterable[str]) -> dict[str, float | None]:
        """Validation value of finished cells: what chose their weights, or else what ranks."""
        newest = self.session.store.ledger().newest()
        found: dict[str, float | None] = {}
        for id_ in ids:
            record = newest.get(id_)
            # a timeout, a full disk and missing data are the machine's fault, and of other code a
            # value says nothing; the next command tries them all again
            lost = record is not None and (record.status == "timeout" or record.environmental)
            if record and not lost and self.session.holds(record):
                chose = choosing_value(record, self.target)
                found[id_] = None if chose is None else chose[1]
        return found

    def _lost_to_the_machine(self, ids: Iterable[str]) -> str:
        """Why a trial has no value for a cause outside of the code; empty where none has."""
        newest = self.session.store.ledger().newest()
        found = (newest[id_] for id_ in ids if id_ in newest)
        return next((one.detail for one in found if one.environmental), "")

    def last_detail(self) -> str:
        """Why the last trial without a value has none."""
        records = self.session.store.ledger().newest().values()
        details = [(one.finished, one.detail) for one in records if one.detail]
        return max(details, default=("", "nothing was trained"))[1]

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
        """Baseline, uniform attention, the task's comparison, and those whose own task it is.

        Where all of the preset's roster run on the task, they compete, too.
        """
        request = self._request("")
        here = DefaultTask(task=self.task.show())
        wanted = [(request.asked_baseline.spec, here)]
        wanted += [(resolve(Selector(name)), here) for name in uniform_baselines()]
        for entry in self.target.compared_at(self.preset):
            about = entry.task or self.task.name
            if canonical("task", DefaultTask(task=about).selector) == self.task:
                place = replace(here, backbone=entry.backbone, slot=entry.slot)
                wanted.append((resolve(entry.selector), place))
        if not self.about_size:
            wanted += self._at_home()
        if self.task in [canonical("task", Selector(one)) for one in shared_tasks(self.preset)]:
            wanted += [(resolve(Selector(name)), here) for name in roster_of(self.preset)]
        # an entry in another network is compared with references that were tuned in that network
        places = dict.fromkeys((place.backbone, place.slot) for _, place in wanted)
        references = [spec for spec, _ in wanted[:2]]
        for backbone, slot in places:
            place = replace(here, backbone=backbone, slot=slot)
            wanted += [(spec, place) for spec in references]
        found: dict[str, Competitor] = {}
        for spec, place in wanted:
            cell = quality_cell(request, spec, place).cell
            name = competitor(cell.variant, cell.backbone, cell.slot)
            found.setdefault(name, Competitor(spec, place, name))
        return [*found.values()]

    def _at_home(self) -> list[tuple[VariantSpec, DefaultTask]]:
        """Variants whose own task it is."""
        specs = [resolve(Selector(name)) for name in registry.listed_variants()]
        places = [(spec, default_task_of(spec)) for spec in specs]
        return [
            (spec, own)
            for spec, own in places
            if own is not None and canonical("task", own.selector) == self.task
        ]
