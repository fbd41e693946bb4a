"""Hyper-parameter studies with an equal budget for every variant; the only user of Optuna."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

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
from bench.api.task import TASKS, Task
from bench.running.code_of_cells import CodeOfCells
from bench.running.quality_cells import PlannedCell
from bench.running.session import Session
from bench.study_request import FRESH_SEED, StudyRequest
from bench.training.protocol import read_protocol
from bench.trial_cells import (
    Knob,
    Parameters,
    choosing_metrics,
    choosing_value,
    drawn_cell,
    final_cell,
    knobs_of,
    trial_cell,
)
from results.json_values import Json, JsonObject, as_list, as_text

DRAWS = 50
"""How often options are drawn anew where they do not go together."""
METRIC = "metric"
"""Attribute of a trial that names the metric of its value; without it that is what ranks."""
WHY = "why"
"""Attribute of a trial whose options do not go together: why not."""
Filed = Callable[[Mapping[str, str]], None]
"""Takes the ids of the cells of trials, by study and number: `additive 3`."""
Chosen = Callable[[Sequence["StudyResult"]], None]
"""Takes what was chosen."""
CellOf = Callable[[Parameters], PlannedCell | str]
"""From what was drawn for one trial to its cell, or to why there is none."""
AnyTrial = optuna.Trial | optuna.trial.FrozenTrial


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
    chosen_by: str = ""
    """The metric of the value."""
    illegal: Mapping[int, str] = field(default_factory=dict)
    """Why trials failed for which only options were drawn that do not go together, by number."""


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


def run_studies(
    asked: StudyRequest, session: Session, file: Filed, chosen: Chosen = lambda _: None
) -> list[StudyResult]:
    """Tune every variant with the same number of trials, then rerun each winner on fresh seeds.

    Selection looks at validation only. A killed study goes on where it stopped: finished trials
    are kept, a trial that was running is asked again with the same parameters. So is one whose cell
    a run would ask again: after a failure that was the machine's or that `--retry` names, and where
    code or data have changed. Options that do not go together are drawn anew, at the same learning
    rate; a trial for which none are found has failed.

    Args:
        asked: What is tuned, and how.
        session: Trains the cells.
        file: Writes down which trials each study asks for, before they are trained, so that the
            report of a stopped study knows them. Two studies may ask for one cell.
        chosen: Writes down what was chosen, before the winners are trained on fresh seeds.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = asked.storage or _own_storage(session.store.folder)
    found = []
    for name, spec in asked.request.specs:
        found.append(_tune(name, spec, asked, session, storage, file))
    chosen(found)
    for result in found:
        session.train(result.finals)
    return found


def study_facts(
    asked: StudyRequest,
    results: Sequence[StudyResult],
    before: Mapping[str, JsonObject] = MappingProxyType({}),
) -> dict[str, JsonObject]:
    """What the catalog says of each study.

    Args:
        asked: What was tuned.
        results: What each study found.
        before: What it said before: with more trials another setting may be the best one, and cells
            of the former one compete no more.
    """
    facts: dict[str, JsonObject] = {}
    now = {one.cell.id for result in results for one in result.finals}
    for result in results:
        if result.best_value is None:
            told: dict[str, Json] = {"best_trial": "none gave a value"}
        else:
            chosen = result.finals[0].cell
            told = {
                "best_trial": result.best_trial,
                "best_validation": result.best_value,
                "chosen_by": result.chosen_by,
                "task": chosen.task,
                "variant": chosen.variant,
                **result.parameters,
            }
        held = before.get(result.variant, {})
        known = {as_text(one) for key in ("finals", "former") for one in as_list(held.get(key))}
        mine = {one.cell.id for one in result.finals}
        if all(held.get(key) == told.get(key) for key in ("variant", *result.parameters)):
            mine |= {as_text(one) for one in as_list(held.get("finals"))}  # with more fresh seeds
        told["finals"] = [*sorted(mine)]
        if former := sorted(known - now - mine):
            told["former"] = [*former]
        if result.illegal:
            told["illegal"] = {str(number): why for number, why in result.illegal.items()}
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
    cell_of = partial(drawn_cell, spec, asked, knobs)

    def lost(trial: optuna.trial.FrozenTrial) -> bool:
        ended = trial.state in (TrialState.COMPLETE, TrialState.FAIL)
        cell = cell_of(trial.params) if ended else ""
        return not isinstance(cell, str) and session.wants(cell.cell)

    _recover(study, folder, lost)
    file(_places(name, _planned(_spent(study), cell_of)))  # an earlier version may have asked
    _count_kept(_planned(_spent(study)[: asked.trials], cell_of), session)
    while (left := asked.trials - len(_spent(study))) > 0:
        drawn = [_ask(study, asked, knobs, folder, cell_of) for _ in range(min(left, session.jobs))]
        trials = [one for one in drawn if one is not None]
        file(_places(name, trials))
        session.train([planned for _, planned in trials], [_number(trial) for trial, _ in trials])
        _tell(study, trials, task, session)
    # a study that goes on from more trials than were asked now chooses among as many as others
    spent = _spent(study)[: asked.trials]
    illegal = {
        _number(trial): why for trial in spent if isinstance(why := cell_of(trial.params), str)
    }
    complete = [trial for trial in spent if trial.state == TrialState.COMPLETE]
    if not complete:
        return StudyResult(name, None, illegal=illegal)
    best = (min if lower else max)(complete, key=_value)
    finals = tuple(
        final_cell(trial_cell(spec, asked, knobs, best.params), name, seed)
        for seed in range(FRESH_SEED, FRESH_SEED + asked.final_seeds)
    )
    metric = best.user_attrs.get(METRIC, task.ranking_metric().name)
    return StudyResult(name, best.value, _number(best), best.params, finals, metric, illegal)


def _planned(
    trials: Iterable[optuna.trial.FrozenTrial], cell_of: CellOf
) -> list[tuple[optuna.trial.FrozenTrial, PlannedCell]]:
    """Trials with their cells, without those whose options do not go together."""
    cells = [(trial, cell_of(trial.params)) for trial in trials]
    return [(trial, cell) for trial, cell in cells if not isinstance(cell, str)]


def _places(name: str, trials: Iterable[tuple[AnyTrial, PlannedCell]]) -> dict[str, str]:
    """The ids of the cells of trials, by study and number."""
    return {f"{name} {_number(trial)}": one.cell.id for trial, one in trials}


def _count_kept(kept: Iterable[tuple[AnyTrial, PlannedCell]], session: Session) -> None:
    """Count trials of an earlier run among what had finished; those of other machines are not."""
    session.train([one for _, one in kept if not session.wants(one.cell)])


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

    No trial of another question is counted, and none whose value came from other code or is of
    another metric.
    """
    code = _code_of_trials(spec, asked)
    facts: tuple[object, ...] = (spec.canonical, spec.revision, asked.question, code)
    facts += (knobs_of(spec, asked),)
    if read_protocol(trial_cell(spec, asked, (), {}).cell.protocol).patience:
        # what ranks chose among these, too, before what chooses their weights did
        facts += choosing_metrics(registry.find(TASKS, asked.task.name).target)[:-1]
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
    study: optuna.Study, asked: StudyRequest, knobs: Sequence[Knob], folder: str, cell_of: CellOf
) -> tuple[optuna.Trial, PlannedCell] | None:
    """Ask for one trial and its cell; None where no options were found that go together."""
    trial = _drawn(study, asked, knobs, folder)
    cell = cell_of(trial.params)
    if not isinstance(cell, str):
        return trial, cell
    others = _others(trial, asked, knobs, cell_of)
    if others is not None:
        _ask_again(study, trial, others)
    trial.set_user_attr(WHY, cell)
    study.tell(trial, state=TrialState.FAIL)
    # what waits is this one with other options, or one that was lost
    return None if others is None else _ask(study, asked, knobs, folder, cell_of)


def _drawn(
    study: optuna.Study, asked: StudyRequest, knobs: Sequence[Knob], folder: str
) -> optuna.Trial:
    """Draw one trial; its draws depend on its number alone, not on how often a run was killed.

    The first draws of the sampler `random` are the same for every variant, so that all try the same
    learning rates.
    """
    trials = study.get_trials(deepcopy=False)
    number = sum("retry_of" not in trial.user_attrs for trial in trials)
    study.sampler = _sampler(asked, number)
    trial = study.ask(_ranges(knobs))
    if "retry_of" not in trial.user_attrs:
        trial.set_user_attr("number", number)
        trial.set_user_attr("folder", folder)
    return trial


def _others(
    trial: optuna.Trial, asked: StudyRequest, knobs: Sequence[Knob], cell_of: CellOf
) -> Parameters | None:
    """Options for a trial that go together, at the rate that it has; None where none were found."""
    seed = asked.request.first_seed + 7919 * _number(trial) + 1
    alone = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    kept = {name: value for name, value in trial.params.items() if name == "lr"}
    for _ in range(DRAWS):
        found = {**alone.ask(_ranges(knobs)).params, **kept}
        if not isinstance(cell_of(found), str):
            return found
    return None


def _ranges(knobs: Sequence[Knob]) -> dict[str, BaseDistribution]:
    """What Optuna draws from, by the name of the knob."""
    return {knob.name: distribution(knob.range) for knob in knobs}


def _ask_again(study: optuna.Study, trial: AnyTrial, parameters: Parameters) -> None:
    """Let a trial wait in the place of another one, under its number."""
    kept = {name: value for name, value in trial.user_attrs.items() if name != WHY}
    again = {**kept, "retry_of": trial.number, "number": _number(trial)}
    study.enqueue_trial(parameters, user_attrs=again)


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
            _ask_again(study, trial, trial.params)
        if running:
            study.tell(trial.number, state=TrialState.FAIL)


def _number(trial: AnyTrial) -> int:
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
    trials: Iterable[tuple[optuna.Trial, PlannedCell]],
    task: type[Task],
    session: Session,
) -> None:
    """Hand the validation values to Optuna; a cell without one is a failed trial."""
    records = session.store.records()
    stored = {r.id: choosing_value(r, task) for r in records if r.status == "ok"}
    for trial, planned in trials:
        found = stored.get(planned.cell.id)
        if found is None:
            study.tell(trial, state=TrialState.FAIL)
        else:
            metric, value = found
            trial.set_user_attr(METRIC, metric)
            study.tell(trial, value)
