"""Hyper-parameter studies with an equal budget for every variant; the only user of Optuna."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from bench.api import registry
from bench.api.config import Choices, FloatRange, IntRange, Range, search_ranges
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, Value, parse, parse_list
from bench.api.task import TASKS
from bench.running.quality_cells import PlannedCell, quality_cell
from bench.running.request import Request, asked_variants
from bench.running.runner import Outcome
from bench.running.session import Session
from bench.training.protocol import AdamProtocol

SAMPLERS = ("random", "qmc", "tpe")
"""Random and quasi-random trials are exchangeable, which best-of-n curves assume; TPE's are not."""
MOST_KNOBS = 2
"""Options of a variant that a study may change, so that no variant gets a larger space."""
FRESH_SEED = 1000
"""First seed of the winner's reruns; no trial ever uses it."""


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """What is tuned, and how much each variant may spend."""

    request: Request
    trials: int = 8
    """Trials of every variant."""
    trial_seconds: float = 0.0
    """CPU seconds of one trial; 0 for the task's own number of steps."""
    sampler: str = "random"
    storage: str = ""
    """Optuna storage; empty for a database in the run folder."""
    final_seeds: int = 3
    """Fresh seeds on which the winner is rerun."""

    def __post_init__(self) -> None:
        """Check the choices."""
        if self.sampler not in SAMPLERS:
            raise UnknownName.among("sampler", self.sampler, SAMPLERS)
        if self.trials < 1 or self.final_seeds < 1:
            raise InvalidConfig("study: trials and final seeds must be at least 1.")
        if not self.request.tasks or len(parse_list(self.request.tasks)) != 1:
            raise InvalidConfig("study: name exactly one task with --tasks.")
        if self.request.first_seed >= FRESH_SEED:
            raise InvalidConfig(
                f"study: seeds from {FRESH_SEED} on are kept for the winners; "
                "give a smaller --first-seed."
            )


@dataclass(frozen=True)
class Knob:
    """One thing a study turns: where it lives and which values it may take."""

    name: str
    """Parameter name in Optuna: `lr`, `additive.width`."""
    axis: str
    """`protocol`, or the axis of the component that owns the option."""
    option: str
    range: Range


@dataclass(frozen=True)
class StudyResult:
    """The winner of one variant's study."""

    variant: str
    """As asked."""
    best_value: float | None
    """On validation; None where no trial gave a value."""
    best_trial: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    finals: tuple[PlannedCell, ...] = ()
    tried: tuple[str, ...] = ()
    """Canonical selectors of the trials with a value."""


def run_studies(asked: StudyRequest, session: Session) -> list[StudyResult]:
    """Tune every variant with the same number of trials, then rerun each winner on fresh seeds.

    Selection looks at validation only. A killed study goes on where it stopped: finished trials
    are kept, a trial that was running is asked again with the same parameters.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = asked.storage or f"sqlite:///{session.store.folder / 'study.db'}"
    found = []
    for name, spec in asked_variants(asked.request.variants):
        found.append(_tune(name, spec, asked, session, storage))
    for result in found:
        session.train(result.finals)
    return found


def study_facts(asked: StudyRequest, results: Sequence[StudyResult]) -> dict[str, Any]:
    """What the catalog says of each study."""
    facts: dict[str, Any] = {}
    for result in results:
        facts[result.variant] = {"trials": asked.trials}
        if result.best_value is None:
            facts[result.variant]["best_trial"] = "none gave a value"
        else:
            best = {"best_trial": result.best_trial, "best_validation": round(result.best_value, 4)}
            facts[result.variant] |= {**best, **result.parameters}
    return facts


def knobs_of(spec: VariantSpec) -> list[Knob]:
    """The learning rate, and at most two options of the components in the variant."""
    rates = search_ranges(AdamProtocol)
    knobs = [Knob("lr", "protocol", "lr", rates["lr"])]
    owned: list[tuple[str, Selector]] = []
    if spec.mechanism is not None:
        owned.append(("mechanism", spec.mechanism))
    owned += [(axis, s) for axis, chosen in spec.axes.items() for s in chosen if s.name != "auto"]
    for axis, selector in owned:
        ranges = search_ranges(registry.find(axis, selector.name).config)
        knobs += [Knob(f"{selector.name}.{key}", axis, key, r) for key, r in ranges.items()]
    return knobs[: 1 + MOST_KNOBS]


def distribution(found: Range) -> BaseDistribution:
    """Optuna's form of a search range."""
    match found:
        case IntRange(low, high, log):
            return IntDistribution(low, high, log=log)
        case FloatRange(low, high, log):
            return FloatDistribution(low, high, log=log)
        case Choices(options):
            return CategoricalDistribution(options)


def _tune(
    name: str, spec: VariantSpec, asked: StudyRequest, session: Session, storage: str
) -> StudyResult:
    knobs = knobs_of(spec)
    task = registry.find(TASKS, parse(asked.request.tasks).name).target
    lower = task.metrics[0].better == "lower"
    study = optuna.create_study(
        storage=storage,
        study_name=study_name(name, spec, asked),
        direction="minimize" if lower else "maximize",
        load_if_exists=True,
    )
    _alone(study, session)
    folder = str(session.store.folder.resolve())
    _recover(study, folder)
    while (left := asked.trials - _counted(study)) > 0:
        trials = [_ask(study, asked, knobs, folder) for _ in range(min(left, session.jobs))]
        cells = [trial_cell(spec, asked, knobs, trial.params) for trial in trials]
        outcomes = session.train(cells, [_number(trial) for trial in trials])
        _tell(study, trials, cells, outcomes, task.metrics[0].name, session)
    complete = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    if not complete:
        return StudyResult(name, None)
    best = study.best_trial
    finals = tuple(
        _with_seed(trial_cell(spec, asked, knobs, best.params), seed)
        for seed in range(FRESH_SEED, FRESH_SEED + asked.final_seeds)
    )
    tried = tuple(trial_cell(spec, asked, knobs, t.params).cell.variant for t in complete)
    return StudyResult(name, best.value, _number(best), best.params, finals, tried)


def study_name(name: str, spec: VariantSpec, asked: StudyRequest) -> str:
    """A name that only the same question has, so that no trial of another one is counted."""
    question = {"variants": name, "baseline": "", "seeds": 0, "jobs": 1}
    request = replace(asked.request, **question)  # type: ignore[arg-type]  # values of four types
    facts = (spec.canonical, spec.revision, request, asked.trial_seconds, asked.sampler)
    digest = sha256(repr((*facts, knobs_of(spec))).encode()).hexdigest()[:8]
    return f"{request.tasks} @ {name} @ {request.preset} {digest}"


def _alone(study: optuna.Study, session: Session) -> None:
    """Refuse to share a study: the trials of a living driver look like those of a killed one."""
    claim = sha256(study.study_name.encode()).hexdigest()[:12]
    if not session.store.claim(claim):
        raise InvalidConfig(
            f"another process runs this study in {session.store.folder}; "
            "wait for it, or give another --out."
        )


def _ask(
    study: optuna.Study, asked: StudyRequest, knobs: Sequence[Knob], folder: str
) -> optuna.Trial:
    """Ask for one trial; its draws depend on its number alone, not on how often a run was killed.

    The first draws are the same for every variant, so that all try the same learning rates.
    """
    trials = study.get_trials(deepcopy=False)
    number = sum("retry_of" not in trial.user_attrs for trial in trials)
    study.sampler = _sampler(asked.sampler, asked.request.first_seed, number)
    trial = study.ask({knob.name: distribution(knob.range) for knob in knobs})
    if "retry_of" not in trial.user_attrs:
        trial.set_user_attr("number", number)
        trial.set_user_attr("folder", folder)
    return trial


def _sampler(name: str, seed: int, number: int) -> optuna.samplers.BaseSampler:
    """A sampler for one trial; a seed alone would repeat its draws after every restart."""
    own = seed + 7919 * number
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=own)
    alone = optuna.samplers.RandomSampler(seed=own)
    if name == "random":
        return alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # keeps its place in the sequence in the storage
        return optuna.samplers.QMCSampler(
            seed=seed, independent_sampler=alone, warn_independent_sampling=False
        )


def _recover(study: optuna.Study, folder: str) -> None:
    """Ask trials that a killed driver left running again, with the same parameters.

    A storage may hold trials of other machines, which are left alone.
    """
    trials = study.get_trials(deepcopy=False)
    asked_again = {trial.user_attrs.get("retry_of") for trial in trials}
    for trial in trials:
        ours = trial.user_attrs.get("folder", folder) == folder
        if ours and trial.state == TrialState.RUNNING:
            # in this order, so that a kill between the two loses no trial
            if trial.number not in asked_again:
                again = {**trial.user_attrs, "retry_of": trial.number, "number": _number(trial)}
                study.enqueue_trial(trial.params, user_attrs=again)
            study.tell(trial.number, state=TrialState.FAIL)


def _number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
    """The number under which a trial was first asked."""
    return int(trial.user_attrs.get("number", trial.number))


def _counted(study: optuna.Study) -> int:
    """Trials that count as spent: every one that ended, unless a kill ended it."""
    trials = study.get_trials(deepcopy=False)
    retried = {trial.user_attrs.get("retry_of") for trial in trials}
    return sum(t.state.is_finished() and t.number not in retried for t in trials)


def _tell(
    study: optuna.Study,
    trials: Sequence[optuna.Trial],
    cells: Sequence[PlannedCell],
    outcomes: Sequence[Outcome],
    metric: str,
    session: Session,
) -> None:
    """Hand the validation values to Optuna; a cell without one is a failed trial."""
    values = {o.cell.id: _value(o.rows, metric) for o in outcomes if o.status == "ok"}
    stored = {r.id: _value(r.rows, metric) for r in session.store.records() if r.status == "ok"}
    for trial, planned in zip(trials, cells, strict=True):
        value = values.get(planned.cell.id, stored.get(planned.cell.id))
        if value is None:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, value)


def _value(rows: Sequence[Any], metric: str) -> float | None:
    for row in rows:
        if row.metric == metric and row.split == "validation" and not row.axis:
            return float(row.value)
    return None


def trial_cell(
    spec: VariantSpec, asked: StudyRequest, knobs: Sequence[Knob], parameters: dict[str, Any]
) -> PlannedCell:
    """The cell of one trial: the variant and the protocol with the parameters put in."""
    protocol: dict[str, Value] = {}
    if asked.request.protocol:
        protocol.update(parse(asked.request.protocol).options)
    if asked.trial_seconds > 0:
        protocol["cpu_seconds"] = asked.trial_seconds
    variant = spec.complete
    for knob in knobs:
        value = parameters[knob.name]
        if knob.axis == "protocol":
            protocol[knob.option] = value
        else:
            variant = _set_option(variant, knob, value)
    request = replace(asked.request, protocol=Selector("adam", protocol).show())
    default_task = DefaultTask(task=asked.request.tasks)
    planned = quality_cell(request, resolve(variant), default_task, asked.request.first_seed)
    return replace(planned, cell=replace(planned.cell, kind="trial"))


def _set_option(variant: Selector, knob: Knob, value: Any) -> Selector:
    put: Value = (Selector(value),) if isinstance(value, str) else value
    if knob.axis == "mechanism":
        return variant.with_options(**{knob.option: put})
    owner = knob.name.rpartition(".")[0]
    # read from the variant, not the spec: an earlier knob may have changed the same component
    changed = tuple(
        s.with_options(**{knob.option: put}) if s.name == owner else s
        for s in registry.options_of(variant.options[knob.axis])
    )
    return variant.with_options(**{knob.axis: changed})


def _with_seed(planned: PlannedCell, seed: int) -> PlannedCell:
    return replace(planned, cell=replace(planned.cell, kind="quality", seed=seed))
