"""Hyper-parameter studies, one trial after another."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.api.errors import InvalidSelector
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
from reports.catalog import Catalog
from reports.figures import Curve, Legend, Panel, panels
from reports.folder import RunFolder, StoredOutcome
from reports.missing_values import dash
from reports.numbers import counted, plain
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from results.json_values import Json, JsonObject, as_number, as_text

UNKNOWN = -1
"""Number of a trial that neither the catalog nor a value tells."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial of a study that has ended."""

    number: int
    value: float
    """On validation; NaN where it has none."""
    outcome: StoredOutcome


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
    def spent(self) -> float:
        """Time of all trials (s), those without a value too; two may have asked for one cell."""
        records = {trial.outcome.record.id: trial.outcome.record for trial in self.ended}
        return sum(record.seconds for record in records.values())


def measured_variants(outcomes: Iterable[StoredOutcome]) -> list[str]:
    """Variants of a run in order, without settings that were only tried to choose among them."""
    return sorted({outcome.cell.variant for outcome in outcomes if outcome.cell.kind != "trial"})


def study_section(folder: RunFolder, legend: Legend) -> Section | None:
    """Best score so far by trial; None if the run has no study."""
    studies = _studies(folder)
    if not studies:
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
    if told := study_sentences(folder):
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
    if validation is None:
        return f"{name}: no trial of {trials} gave a value."
    settings = [
        f"{_setting(key)} {_rounded(value)}"
        for key, value in facts.items()
        if key == "lr" or "." in key  # options are named with their owner
    ]
    chosen = f"trial {facts.get('best_trial')} is the best of {trials}, with {join(settings)}"
    task = as_text(facts.get("task"))
    title = folder.catalog.metric(folder.catalog.primary(task)).title if task else "Score"
    final = _final_score(folder, facts)
    return f"{name}: {chosen}. {title}: {plain(validation)} on validation{final}."


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
        if cell.seed in scores and rate in (None, _rate(cell.protocol))
    }


def _rate(protocol: str) -> object:
    """The learning rate of a protocol; None where it says none."""
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
            trial = _trial(catalog, outcome, number)
            listed.setdefault((cell.task, name), []).append(trial)
        if record.id not in places:
            trial = _trial(catalog, outcome, UNKNOWN)
            guess = (cell.task, _study_name(catalog, cell.variant))
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


def _trial(catalog: Catalog, outcome: StoredOutcome, number: int) -> Trial:
    """What is stored of a trial; where the catalog does not list it, its rows tell its number."""
    primary = catalog.primary(outcome.cell.task)
    rows = [
        row
        for row in outcome.record.rows
        if row.split == "validation" and not (row.axis or row.baseline)
    ]
    if primary:
        rows = [row for row in rows if row.metric in (primary, f"validation_{primary}")]
    if not rows or outcome.record.status != "ok":
        return Trial(number=number, value=math.nan, outcome=outcome)
    told = rows[-1].repeat if number == UNKNOWN else number
    return Trial(number=told, value=rows[-1].value, outcome=outcome)


def _study(catalog: Catalog, task: str, name: str, trials: Sequence[Trial]) -> Study:
    """A study with the trials among which it chose, or all as long as it has not chosen."""
    facts = catalog.study.get(name, {})
    if as_text(facts.get("task")) not in ("", task):
        facts = {}
    asked = as_number(facts.get("trials"))
    ended = [trial for trial in trials if asked is None or trial.number < asked]
    ended.sort(key=lambda trial: trial.number)
    count = len(ended) if asked is None else min(len(ended), int(asked))
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


def _sign(catalog: Catalog, task: str) -> float:
    return -1.0 if catalog.metric(catalog.primary(task)).better == "lower" else 1.0


def _study_panel(catalog: Catalog, task: str, found: Mapping[str, Study]) -> Panel:
    sign = _sign(catalog, task)
    curves = [_curve(name, study, sign) for name, study in found.items() if study.scored]
    return Panel(
        title=catalog.task_label(task),
        x_label="number of trials",  # they are numbered from 0
        y_label=catalog.metric(catalog.primary(task)).axis,
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
    metric = catalog.metric(catalog.primary(task))
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
