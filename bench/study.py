"""Hyper-parameter studies with an equal budget for every variant; the only user of Optuna."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage
from optuna.trial import TrialState
from sqlalchemy import URL

from bench.api import registry
from bench.api.config import Choices, FloatRange, IntRange, Range
from bench.api.errors import InvalidConfig
from bench.api.plain_text import message_of
from bench.api.resolve import VariantSpec
from bench.api.task import TASKS
from bench.running.code_of_cells import CodeOfCells
from bench.running.quality_cells import PlannedCell
from bench.running.session import Session
from bench.study_request import FRESH_SEED, StudyRequest
from bench.trial_cells import Knob, Parameters, final_cell, knobs_of, trial_cell
from results.json_values import JsonObject

Filed = Callable[[Mapping[str, str]], None]
"""Takes the ids of the cells of trials, by study and number: `additive 3`."""


@dataclass(frozen=True)
class StudyResult:
    """The winner of one variant's study."""

    variant: str
    """As asked."""
    best_value: float | None
    """On validation; None where no trial gave a value."""
    best_trial: int = 0
    parameters: Parameters = field(default_factory=dict)
    finals: tuple[PlannedCell, ...] = ()


def expected_seconds(asked: StudyRequest) -> float:
    """CPU time that trials and winners are expected to take (s), before anything is written.

    Raises:
        InvalidConfig: The storage cannot be opened, options do not go together, or a variant has
            nothing left that a study could change.
    """
    for name, spec in asked.request.specs:
        if not knobs_of(spec, asked):
            raise InvalidConfig(
                f"study: the learning rate is given, and {name} has no other option to change; "
                "leave lr out of --training, or leave the variant out."
            )
    if asked.storage:
        opened_storage(asked.storage)
    each = [trial_cell(spec, asked, (), {}).seconds for _, spec in asked.request.specs]
    return (asked.trials + asked.final_seeds) * sum(each)


def run_studies(asked: StudyRequest, session: Session, file: Filed) -> list[StudyResult]:
    """Tune every variant with the same number of trials, then rerun each winner on fresh seeds.

    Selection looks at validation only. A killed study goes on where it stopped: finished trials
    are kept, a trial that was running is asked again with the same parameters. So is one whose cell
    a run would ask again: after a failure that was the machine's or that `--retry` names, and where
    code or data have changed.

    Args:
        asked: What is tuned, and how.
        session: Trains the cells.
        file: Writes down which trials each study asks for, before they are trained, so that the
            report of a stopped study knows them. Two studies may ask for one cell.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = asked.storage or _own_storage(session.store.folder)
    found = []
    for name, spec in asked.request.specs:
        found.append(_tune(name, spec, asked, session, storage, file))
    for result in found:
        session.train(result.finals)
    return found


def study_facts(asked: StudyRequest, results: Sequence[StudyResult]) -> dict[str, JsonObject]:
    """What the catalog says of each study."""
    facts: dict[str, JsonObject] = {}
    for result in results:
        if result.best_value is None:
            told: JsonObject = {"best_trial": "none gave a value"}
        else:
            chosen = result.finals[0].cell
            told = {
                "best_trial": result.best_trial,
                "best_validation": result.best_value,
                "task": chosen.task,
                "variant": chosen.variant,
                **result.parameters,
            }
        facts[result.variant] = {"trials": asked.trials, **told}
    return facts


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
    name: str, spec: VariantSpec, asked: StudyRequest, session: Session, storage: str, file: Filed
) -> StudyResult:
    knobs = knobs_of(spec, asked)
    task = registry.find(TASKS, asked.task.name).target
    lower = task.ranking_metric().better == "lower"
    study = optuna.create_study(
        storage=opened_storage(storage),
        study_name=study_name(name, spec, asked),
        direction="minimize" if lower else "maximize",
        load_if_exists=True,
    )
    _alone(study, session)
    # a database in the run folder is its own wherever the folder is; another one may be shared
    folder = str(session.store.folder.resolve()) if asked.storage else ""

    def lost(trial: optuna.trial.FrozenTrial) -> bool:
        ended = trial.state in (TrialState.COMPLETE, TrialState.FAIL)
        return ended and session.wants(trial_cell(spec, asked, knobs, trial.params).cell)

    _recover(study, folder, lost)
    kept = _spent(study)
    known = [trial_cell(spec, asked, knobs, trial.params) for trial in kept]
    file(_places(name, kept, known))  # an earlier version may have asked for them
    _count_kept(known[: asked.trials], session)
    while (left := asked.trials - len(_spent(study))) > 0:
        trials = [_ask(study, asked, knobs, folder) for _ in range(min(left, session.jobs))]
        cells = [trial_cell(spec, asked, knobs, trial.params) for trial in trials]
        file(_places(name, trials, cells))
        session.train(cells, [_number(trial) for trial in trials])
        _tell(study, trials, cells, task.ranking_metric().name, session)
    # a study that goes on from more trials than were asked now chooses among as many as others
    spent = _spent(study)[: asked.trials]
    complete = [trial for trial in spent if trial.state == TrialState.COMPLETE]
    if not complete:
        return StudyResult(name, None)
    best = (min if lower else max)(complete, key=_value)
    finals = tuple(
        final_cell(trial_cell(spec, asked, knobs, best.params), name, seed)
        for seed in range(FRESH_SEED, FRESH_SEED + asked.final_seeds)
    )
    return StudyResult(name, best.value, _number(best), best.params, finals)


def _places(
    name: str,
    trials: Sequence[optuna.Trial | optuna.trial.FrozenTrial],
    cells: Sequence[PlannedCell],
) -> dict[str, str]:
    """The ids of the cells of trials, by study and number."""
    pairs = zip(trials, cells, strict=True)
    return {f"{name} {_number(trial)}": one.cell.id for trial, one in pairs}


def _count_kept(kept: Sequence[PlannedCell], session: Session) -> None:
    """Count trials of an earlier run among what had finished; those of other machines are not."""
    session.train([one for one in kept if not session.wants(one.cell)])


def _own_storage(folder: Path) -> str:
    """URL of the database in a run folder, whose name may hold what means something in a URL."""
    url = URL.create("sqlite", database=str(folder / "study.db"))
    return url.render_as_string(hide_password=False)


def opened_storage(storage: str) -> BaseStorage:
    """Open a storage of Optuna.

    Raises:
        InvalidConfig: It cannot be opened.
    """
    try:
        return optuna.storages.get_storage(storage)
    except Exception as error:  # Optuna, SQLAlchemy and drivers raise errors of their own
        raise InvalidConfig(
            f"cannot open the storage {storage!r} ({message_of(error)}); give a URL such as "
            "sqlite:///study.db."
        ) from error


def study_name(name: str, spec: VariantSpec, asked: StudyRequest) -> str:
    """A name that only the same question to the same code has (ADR 17).

    No trial of another question is counted, and none whose value came from other code.
    """
    code = _code_of_trials(spec, asked)
    facts = (spec.canonical, spec.revision, asked.question, code, knobs_of(spec, asked))
    digest = sha256(repr(facts).encode()).hexdigest()[:8]
    return f"{asked.request.tasks} @ {name} @ {asked.request.preset} {digest}"


def _code_of_trials(spec: VariantSpec, asked: StudyRequest) -> str:
    """Hash of the code of a trial; with every head, for the network chooses one by name."""
    heads = [f"head:{name}" for name in registry.registrations("head")]
    return CodeOfCells().digest(trial_cell(spec, asked, (), {}).cell, heads)


def _alone(study: optuna.Study, session: Session) -> None:
    """Refuse to share a study: the trials of a living driver look like those of a killed one."""
    claim = sha256(study.study_name.encode()).hexdigest()[:12]
    if not session.store.reserve(claim):
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
    study.sampler = _sampler(asked, number)
    trial = study.ask({knob.name: distribution(knob.range) for knob in knobs})
    if "retry_of" not in trial.user_attrs:
        trial.set_user_attr("number", number)
        trial.set_user_attr("folder", folder)
    return trial


def _sampler(asked: StudyRequest, number: int) -> optuna.samplers.BaseSampler:
    """A sampler for one trial; a seed alone would repeat its draws after every restart."""
    name, seed = asked.sampler, asked.request.first_seed
    own = seed + 7919 * number
    if name == "tpe":
        # by default the first ten trials are random, which may be all there are
        return optuna.samplers.TPESampler(seed=own, n_startup_trials=min(10, asked.trials // 2))
    alone = optuna.samplers.RandomSampler(seed=own)
    if name == "random":
        return alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # keeps its place in the sequence in the storage
        return optuna.samplers.QMCSampler(
            scramble=True, seed=seed, independent_sampler=alone, warn_independent_sampling=False
        )


def _recover(
    study: optuna.Study, folder: str, lost: Callable[[optuna.trial.FrozenTrial], bool]
) -> None:
    """Ask trials again, with the same parameters, that are lost or that a kill left running.

    A storage may hold trials of other machines, which are left alone.

    Args:
        study: Whose trials.
        folder: The run folder, which the trials of this machine name; empty where the storage is
            its own, and all trials are.
        lost: Whether a trial that has ended does not count.
    """
    trials = study.get_trials(deepcopy=False)
    asked_again = {trial.user_attrs.get("retry_of") for trial in trials}
    for trial in trials:
        if folder and trial.user_attrs.get("folder", folder) != folder:
            continue
        running = trial.state == TrialState.RUNNING
        # in this order, so that a kill between the two loses no trial
        if trial.number not in asked_again and (running or lost(trial)):
            again = {**trial.user_attrs, "retry_of": trial.number, "number": _number(trial)}
            study.enqueue_trial(trial.params, user_attrs=again)
        if running:
            study.tell(trial.number, state=TrialState.FAIL)


def _number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
    """The number under which a trial was first asked."""
    return int(trial.user_attrs.get("number", trial.number))


def _value(trial: optuna.trial.FrozenTrial) -> float:
    assert trial.value is not None, "a complete trial has a value"
    return trial.value


def _spent(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Trials that count as spent: all that ended and were not asked again; oldest first."""
    trials = study.get_trials(deepcopy=False)
    retried = {trial.user_attrs.get("retry_of") for trial in trials}
    spent = [one for one in trials if one.state.is_finished() and one.number not in retried]
    return sorted(spent, key=_number)


def _tell(
    study: optuna.Study,
    trials: Sequence[optuna.Trial],
    cells: Sequence[PlannedCell],
    metric: str,
    session: Session,
) -> None:
    """Hand the validation values to Optuna; a cell without one is a failed trial."""
    records = session.store.records()
    stored = {r.id: r.value(metric, "validation") for r in records if r.status == "ok"}
    for trial, planned in zip(trials, cells, strict=True):
        value = stored.get(planned.cell.id)
        if value is None:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, value)
