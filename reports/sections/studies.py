"""Hyper-parameter studies, one trial after another."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.api.errors import InvalidSelector
from bench.api.headline import choosing_name
from bench.api.selector import parse
from reports.blocks import (
    Block,
    Bullets,
    Column,
    Section,
    TableBlock,
    TableCell,
    clean,
)
from reports.catalog import Catalog, MetricInfo
from reports.figures import Curve, Legend, Panel, panels
from reports.folder import RunFolder, StoredOutcome
from reports.missing_values import dash
from reports.numbers import counted, plain
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from results.json_values import Json, JsonObject, as_number, as_object, as_text

UNKNOWN = -1
"""Number of a trial that neither the catalog nor a value tells."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial of a study that has ended."""

    number: int
    value: float
    """On validation; NaN where it has none."""
    outcome: StoredOutcome
    metric: str = ""
    """Of the value; empty where it has none, or nothing says what ranks."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What one variant spent on one task, and what that gave."""

    ended: tuple[Trial, ...]
    """Trials that count, with a value or without, in the order of their numbers."""
    count: int
    """How many they are. Of an older run it may be fewer, for no number tells which failed ones
    are among the first."""
    best: Trial | None
    """The chosen one, or the best one so far; None where this folder has no value of it."""
    why: str
    """Why there is none; empty where there is one."""

    @property
    def scored(self) -> list[Trial]:
        """Trials with a value."""
        return _scored(self.ended)

    @property
    def metric(self) -> str:
        """The metric by which it chooses; empty where no trial has a value."""
        return next((trial.metric for trial in self.scored), "")

    @property
    def spent(self) -> float:
        """Time of all trials (s), those without a value too; two may have asked for one cell."""
        records = {trial.outcome.record.id: trial.outcome.record for trial in self.ended}
        return sum(record.seconds for record in records.values())


def measured_variants(outcomes: Iterable[StoredOutcome]) -> list[str]:
    """Variants of a run in order, without settings that were only tried to choose among them."""
    return sorted({outcome.cell.variant for outcome in outcomes if outcome.cell.kind != "trial"})


def study_section(folder: RunFolder, legend: Legend) -> Section | None:
    """Best score so far by trial; None if the run has no study."""
    studies, told = _studies(folder), study_sentences(folder)
    if not (studies or told):
        return None
    content = [_study_panel(folder.catalog, task, found) for task, found in studies.items()]
    words = {
        "title": "Best validation score so far",
        "description": "The best validation score of each variant after each trial.",
        "caption": "Compare at equal numbers of trials. Selection saw validation data only. "
        "Each trial is one run, so no interval is drawn.",
    }
    drawn = [panel for panel in content if panel.lines]
    blocks: list[Block] = [panels("study-1", words, drawn, legend)] if drawn else []
    if told:
        blocks.append(Bullets(tuple(told)))
    for at, (task, found) in enumerate(studies.items(), start=1):
        blocks.append(_study_table(folder, f"study-table-{at}", task, found))
    return Section(key="study", title="Studies", blocks=tuple(blocks))


def study_sentences(folder: RunFolder) -> list[str]:
    """What each study has chosen: the trial, its settings, and its scores; a sentence each."""
    return [
        clean(_study_sentence(folder, name, facts))
        for name, facts in folder.catalog.study.items()
        if not folder.tasks or as_text(facts.get("task")) in ("", *folder.catalog.tasks)
    ]


def _study_sentence(folder: RunFolder, name: str, facts: JsonObject) -> str:
    trials, validation = facts.get("trials"), as_number(facts.get("best_validation"))
    failed = _illegal_sentence(facts)
    if validation is None:
        return f"{name}: no trial of {trials} gave a value.{failed}"
    settings = [
        f"{_setting(key)} {_rounded(value)}"
        for key, value in facts.items()
        if key == "lr" or "." in key  # options are named with their owner
    ]
    chosen = f"trial {facts.get('best_trial')} is the best of {trials}, with {join(settings)}"
    task, final = as_text(facts.get("task")), _final_score(folder, facts)
    ranks = folder.catalog.primary(task)
    by = as_text(facts.get("chosen_by")) or ranks
    title = folder.catalog.metric(by).title if task else "Score"
    scores = f"{title}: {plain(validation)} on validation"
    if final and by != ranks:  # what chose the weights chose among trials, and the test is ranked
        final = f". {folder.catalog.metric(ranks).title}: {final.lstrip(',; ')}"
    return f"{name}: {chosen}. {scores}{final}.{failed}"


def _illegal_sentence(facts: JsonObject) -> str:
    """Why trials failed for which no options were found that go together; empty without any."""
    illegal = as_object(facts.get("illegal"))
    if not illegal:
        return ""
    why = " ".join(dict.fromkeys(map(as_text, illegal.values())))
    return (
        f" {counted(len(illegal), 'trial')} failed, because their options do not go together: {why}"
    )


def _final_score(folder: RunFolder, facts: JsonObject) -> str:
    """What the best trial scores on new seeds; empty of a run that did not store which it is."""
    task, variant = as_text(facts.get("task")), as_text(facts.get("variant"))
    if not variant:
        return ""
    for comparison in folder.comparisons:
        if comparison.task == task and (new := _at_rate(folder, comparison, variant, facts)):
            score = replace(comparison, given={variant: new}).short_score(variant)
            return f", {score} on the test with {counted(len(new), 'new seed')}"
    return "; no new seed has a score"


def _at_rate(
    folder: RunFolder, comparison: Comparison, variant: str, facts: JsonObject
) -> dict[int, float]:
    """Scores of a variant by seed at the learning rate of the best trial.

    Where nothing else was tuned, the folder may hold the same variant at other rates, too.
    """
    scores, rate = comparison.scores.get(variant, {}), facts.get("lr")
    cells = [folder.by_id[id_].cell for id_ in comparison.cells.seeds(variant)]
    return {
        cell.seed: scores[cell.seed]
        for cell in cells
        if cell.seed in scores and rate in (None, rate_of(cell.protocol))
    }


def rate_of(protocol: str) -> object:
    """The learning rate of a protocol; None where it says none, which is the usual one."""
    try:
        return parse(protocol).options.get("lr")
    except InvalidSelector:
        return None


def _setting(key: str) -> str:
    """A setting that was tuned, in words.

    >>> _setting("lr"), _setting("softmax.temperature")
    ('learning rate', 'softmax temperature')
    """
    return "learning rate" if key == "lr" else key.replace(".", " ").replace("_", " ")


def _rounded(value: Json) -> str:
    return plain(value) if isinstance(value, float) else str(value).lower()


def _studies(folder: RunFolder) -> dict[str, dict[str, Study]]:
    """Every study of a folder, by task and name."""
    catalog = folder.catalog
    places = _places(catalog)
    listed: dict[tuple[str, str], list[Trial]] = {}
    guessed: dict[tuple[str, str], list[Trial]] = {}
    for outcome in folder.outcomes:
        cell, record = outcome.cell, outcome.record
        if cell.kind != "trial" or record.status == "other_code":
            continue
        for name, number in places.get(record.id, ()):
            trial = _trial(catalog, outcome, number, name)
            listed.setdefault((cell.task, name), []).append(trial)
        if record.id not in places:
            guess = (cell.task, _study_name(catalog, cell.variant))
            trial = _trial(catalog, outcome, UNKNOWN, guess[1])
            guessed.setdefault(guess, []).append(trial)
    studies: dict[str, dict[str, Study]] = {}
    # what a study did not ask for is of an earlier one of its name, to other code
    for (task, name), trials in {**guessed, **listed}.items():
        studies.setdefault(task, {})[name] = _study(catalog, task, name, trials)
    return studies


def _places(catalog: Catalog) -> dict[str, list[tuple[str, int]]]:
    """The studies that asked for each cell, and under which number; of older runs nothing.

    Two studies may have asked for one, and one may have asked for it twice.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    for place, id_ in catalog.trials.items():
        name, _, number = place.rpartition(" ")
        if name and re.fullmatch("[0-9]{1,9}", number):
            found.setdefault(id_, []).append((name, int(number)))
    return found


def _study_name(catalog: Catalog, variant: str) -> str:
    """The study of a trial of an older run: a trial changes options of the variant of its name."""
    if variant in catalog.trials:
        return catalog.trials[variant]
    if variant in catalog.variants or variant in catalog.study:
        return variant
    try:
        name = parse(variant).name
    except InvalidSelector:
        return variant
    known = [key for key in (*catalog.study, *catalog.variants) if key.split("[")[0] == name]
    return known[0] if known else name


def _facts(catalog: Catalog, task: str, name: str) -> JsonObject:
    """What a study has chosen; nothing as long as it has not, or where it is of another task."""
    facts = catalog.study.get(name, {})
    return facts if as_text(facts.get("task")) in ("", task) else {}


def _metrics(catalog: Catalog, task: str, name: str) -> tuple[str, ...]:
    """By what a study chooses, the first one that a trial has; empty where nothing says it.

    Studies of before chose by what ranks, also where something else had chosen the weights.
    """
    ranks, facts = catalog.primary(task), _facts(catalog, task, name)
    if not ranks:
        return ()
    chosen = as_text(facts.get("chosen_by")) or ranks
    return (chosen,) if facts else tuple(dict.fromkeys((choosing_name(ranks), ranks)))


def _trial(catalog: Catalog, outcome: StoredOutcome, number: int, study: str) -> Trial:
    """What is stored of a trial; where the catalog does not list it, its rows tell its number."""
    rows = [
        ("", row)
        for row in outcome.record.rows
        if row.split == "validation" and not (row.axis or row.baseline)
    ]
    if metrics := _metrics(catalog, outcome.cell.task, study):
        # the last one is shown
        rows = [
            (metric, row)
            for metric in reversed(metrics)
            for _, row in rows
            if row.metric in (metric, f"validation_{metric}")
        ]
    if not rows or outcome.record.status != "ok":
        return Trial(number=number, value=math.nan, outcome=outcome)
    metric, row = rows[-1]
    told = row.repeat if number == UNKNOWN else number
    return Trial(number=told, value=row.value, outcome=outcome, metric=metric)


def _study(catalog: Catalog, task: str, name: str, trials: Sequence[Trial]) -> Study:
    """A study with the trials among which it chose, or all as long as it has not chosen."""
    facts = _facts(catalog, task, name)
    asked = as_number(facts.get("trials"))
    ended = [trial for trial in trials if asked is None or trial.number < asked]
    ended.sort(key=lambda trial: trial.number)
    spent = len(ended) + len(as_object(facts.get("illegal")))
    count = spent if asked is None else min(spent, int(asked))
    best, why = _best(ended, as_number(facts.get("best_trial")), _sign(catalog, task))
    return Study(ended=tuple(ended), count=count, best=best, why=why)


def _best(ended: Sequence[Trial], chosen: float | None, sign: float) -> tuple[Trial | None, str]:
    """The trial that a study chose, or the best one so far; None with the reason.

    Args:
        ended: Trials that count.
        chosen: Number of the chosen one; None as long as none is.
        sign: 1 where more is better, else -1.
    """
    scored = _scored(ended)
    if chosen is not None:
        stored = {trial.number: trial for trial in scored}
        why = f"Trial {chosen:g} is the best one, and its value is not in this folder."
        return (stored[int(chosen)], "") if chosen in stored else (None, why)
    return (_best_so_far(scored, sign)[-1], "") if scored else (None, "No trial gave a value.")


def _scored(trials: Iterable[Trial]) -> list[Trial]:
    """Trials with a value."""
    return [trial for trial in trials if math.isfinite(trial.value)]


def _best_so_far(trials: Sequence[Trial], sign: float) -> list[Trial]:
    best: list[Trial] = []
    for trial in trials:
        improves = not best or sign * trial.value > sign * best[-1].value
        best.append(trial if improves else best[-1])
    return best


def _chosen_by(catalog: Catalog, task: str, found: Mapping[str, Study]) -> MetricInfo:
    """The metric by which the studies of a task chose; what ranks where they differ."""
    metrics = {study.metric for study in found.values() if study.metric}
    return catalog.metric(metrics.pop() if len(metrics) == 1 else catalog.primary(task))


def _sign(catalog: Catalog, task: str) -> float:
    return -1.0 if catalog.metric(catalog.primary(task)).better == "lower" else 1.0


def _study_panel(catalog: Catalog, task: str, found: Mapping[str, Study]) -> Panel:
    sign = _sign(catalog, task)
    curves = [_curve(name, study, sign) for name, study in found.items() if study.scored]
    return Panel(
        title=catalog.task_label(task),
        x_label="number of trials",  # they are numbered from 0
        y_label=_chosen_by(catalog, task, found).axis,
        lines=tuple(curves),
        steps=True,
    )


def _curve(name: str, study: Study, sign: float) -> Curve:
    """The best value so far, over the number of trials that were spent on it, failed ones too."""
    y = [trial.value for trial in _best_so_far(study.scored, sign)]
    spent = [trial.number + 1 for trial in study.scored]
    if len({*spent}) < len(spent):  # of several studies of an older run, or of a calibration
        spent = [*range(1, len(y) + 1)]
    if study.count > spent[-1]:
        spent, y = [*spent, study.count], [*y, y[-1]]
    x, held = tuple(map(float, spent)), tuple(y)
    return Curve(name=name, x=x, y=held, low=held, high=held)


def _study_table(folder: RunFolder, key: str, task: str, found: Mapping[str, Study]) -> TableBlock:
    catalog = folder.catalog
    metric = _chosen_by(catalog, task, found)
    return TableBlock(
        key=key,
        title=f"{catalog.task_label(task)}: chosen by validation",
        columns=(
            Column(title="Variant"),
            Column(title="Trials", unit="with a value", numeric=True),
            Column(title="Spent", unit="s", numeric=True),
            Column(title=metric.arrow, unit=metric.unit, numeric=True, better=metric.better),
            Column(title="Best trial", numeric=True),
            Column(title="Chosen settings"),
        ),
        rows=tuple(
            (
                TableCell(text=catalog.label(name)),
                TableCell(text=str(len(study.scored)), sort=len(study.scored)),
                TableCell(text=plain(study.spent), sort=study.spent),
                *_choice(study),
            )
            for name, study in sorted(found.items())
        ),
    )


def _choice(study: Study) -> tuple[TableCell, TableCell, TableCell]:
    """The best value, the number of its trial, and its settings."""
    best = study.best
    if best is None:
        return dash(study.why), dash(study.why), dash(study.why)
    cell = best.outcome.cell
    return (
        TableCell(text=plain(best.value), sort=best.value),
        TableCell(text=str(best.number), sort=best.number),
        TableCell(text=clean(f"{cell.variant}, {cell.protocol}"), code=True),
    )
