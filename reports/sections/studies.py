"""Ablations, one axis at a time, and hyper-parameter studies, one trial after another."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.api.errors import InvalidSelector
from bench.api.selector import parse
from reports.ablation_rows import ablation_table
from reports.blocks import (
    NO_VALUE,
    Block,
    Bullets,
    Column,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    clean,
)
from reports.catalog import Catalog
from reports.figures import Curve, Legend, Panel, panels
from reports.folder import RunFolder, StoredOutcome
from reports.missing_values import NO_SPREAD, dash, why_no_score
from reports.numbers import counted, plain, probability
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import interval_text
from results.json_values import Json, JsonObject, as_number, as_text

EACH_LINE = (
    "Each line changes one axis of the base and nothing else. Differences are to the base on the "
    "same seeds, with 95% t intervals."
)
PLANNED_TESTS = "The tests are the primary ones against the baseline."
OTHER_TESTS = (
    "Where the base is the baseline, the tests are the primary ones. Others are paired t tests "
    "with Holm's correction over the lines."
)


def ablation_section(folder: RunFolder) -> Section | None:
    """Tables of changed axes; None if the run has no ablation."""
    table = ablation_table(folder.comparisons)
    if table.empty:
        return None
    tests = PLANNED_TESTS if table["planned"].all() else OTHER_TESTS
    blocks: list[Block] = [Paragraph(f"{EACH_LINE} {tests}")]
    for at, (_, group) in enumerate(table.groupby(["comparison", "base"], sort=True), start=1):
        blocks.append(_ablation(folder, f"ablation-{at}", group))
    return Section(key="ablation", title="Ablations", blocks=tuple(blocks))


def _ablation(folder: RunFolder, key: str, group: pd.DataFrame) -> TableBlock:
    lines = [dict(line) for line in group.to_dict("records")]
    comparison = next(c for c in folder.comparisons if c.key == lines[0]["comparison"])
    metric = comparison.ranked_by
    rows = [_ablation_row(folder, comparison, line, red=lines[0]["red"]) for line in lines]
    return TableBlock(
        key=key,
        title=(
            f"{comparison.title}: one axis of "
            f"{comparison.catalog.label(str(lines[0]['base']))} changed"
        ),
        columns=(
            Column(title="Axis"),
            Column(title="Value"),
            Column(title="Variant"),
            Column(title=metric.arrow, unit=metric.unit, numeric=True, better=metric.better),
            Column(title="To base", unit=metric.unit, numeric=True, better=metric.better),
            Column(title="p", unit="Holm", numeric=True),
        ),
        rows=tuple(rows),
        notes=(NO_SPREAD,) if any(line["without_spread"] for line in lines) else (),
        dimmed=tuple(bool(line["red"]) for line in lines),
    )


def _ablation_row(
    folder: RunFolder, comparison: Comparison, line: dict[Any, Any], *, red: bool
) -> tuple[TableCell, ...]:
    variant, empty = str(line["variant"]), TableCell(text=NO_VALUE, sort="")
    name = comparison.catalog.label(variant)
    if math.isnan(line["score"]):
        score = dash(why_no_score(folder, comparison, variant))
    else:
        help_ = NO_SPREAD if comparison.means[variant].without_spread else ""
        score = TableCell(text=interval_text(line, "score"), sort=line["score"], help=help_)
    difference = p = empty
    if not (math.isnan(line["difference"]) or line["red"] or red):
        text = interval_text(line, "difference", signed=True)
        help_ = NO_SPREAD if line["without_spread"] else ""
        difference = TableCell(text=text, sort=line["difference"], help=help_)
        if math.isfinite(line["p_adjusted"]):
            p = TableCell(text=probability(line["p_adjusted"]), sort=line["p_adjusted"])
    return (
        TableCell(text=clean(line["axis"])),
        TableCell(text=clean(line["value"]) or NO_VALUE),
        TableCell(text=name, marks=("red certificate",) if line["red"] else ()),
        score,
        difference,
        p,
    )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial of a study."""

    number: int
    value: float
    outcome: StoredOutcome


def measured_variants(outcomes: Iterable[StoredOutcome]) -> list[str]:
    """Variants of a run in order, without settings that were only tried to choose among them."""
    return sorted({outcome.cell.variant for outcome in outcomes if outcome.cell.kind != "trial"})


def study_section(folder: RunFolder, legend: Legend) -> Section | None:
    """Best score so far by trial; None if the run has no study."""
    studies: dict[str, dict[str, list[Trial]]] = {}
    for outcome in folder.of_kind("trial"):
        trial = _trial(folder.catalog, outcome)
        if trial is not None:
            name = _study_name(folder.catalog, outcome.cell.variant)
            studies.setdefault(outcome.cell.task, {}).setdefault(name, []).append(trial)
    if not studies:
        return None
    content = [_study_panel(folder.catalog, task, found) for task, found in studies.items()]
    words = {
        "title": "Best validation score so far",
        "description": "The best validation score of each variant after each trial.",
        "caption": "Compare at equal numbers of trials. Selection saw validation data only. "
        "Each trial is one run, so no interval is drawn.",
    }
    blocks: list[Block] = [panels("study-1", words, content, legend)]
    if told := study_sentences(folder):
        blocks.append(Bullets(tuple(told)))
    for at, (task, found) in enumerate(studies.items(), start=1):
        blocks.append(_study_table(folder, f"study-table-{at}", task, found))
    return Section(key="study", title="Studies", blocks=tuple(blocks))


def study_sentences(folder: RunFolder) -> list[str]:
    """What each study has chosen: the trial, its settings, and its scores; a sentence each."""
    return [
        clean(_study_sentence(folder, name, facts)) for name, facts in folder.catalog.study.items()
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
    final = _final_score(folder, task, as_text(facts.get("variant")))
    return f"{name}: {chosen}. {title}: {plain(validation)} on validation{final}."


def _final_score(folder: RunFolder, task: str, variant: str) -> str:
    """What the best trial scores on new seeds; empty of a run that did not store which it is."""
    if not variant:
        return ""
    for comparison in folder.comparisons:
        if comparison.task == task and variant in comparison.means:
            seeds = counted(comparison.means[variant].count, "new seed")
            return f", {comparison.short_score(variant)} on the test with {seeds}"
    return "; no new seed has a score"


def _setting(key: str) -> str:
    """A setting that was tuned, in words.

    >>> _setting("lr"), _setting("softmax.temperature")
    ('learning rate', 'softmax temperature')
    """
    return "learning rate" if key == "lr" else key.replace(".", " ").replace("_", " ")


def _rounded(value: Json) -> str:
    return plain(value) if isinstance(value, float) else str(value).lower()


def _study_name(catalog: Catalog, variant: str) -> str:
    """Trials change options of a variant; all of them belong to the study of its name."""
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


def _trial(catalog: Catalog, outcome: StoredOutcome) -> Trial | None:
    primary = catalog.primary(outcome.cell.task)
    rows = [row for row in outcome.record.rows if row.split == "validation" and not row.axis]
    wanted = [row for row in rows if row.metric in (primary, f"validation_{primary}")] or rows
    if not wanted:
        return None
    return Trial(number=wanted[-1].repeat, value=wanted[-1].value, outcome=outcome)


def _best_so_far(trials: list[Trial], sign: float) -> list[Trial]:
    best: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: trial.number):
        improves = not best or sign * trial.value > sign * best[-1].value
        best.append(trial if improves else best[-1])
    return best


def _sign(catalog: Catalog, task: str) -> float:
    return -1.0 if catalog.metric(catalog.primary(task)).better == "lower" else 1.0


def _study_panel(catalog: Catalog, task: str, found: Mapping[str, list[Trial]]) -> Panel:
    lines = []
    for name, trials in found.items():
        y = tuple(trial.value for trial in _best_so_far(trials, _sign(catalog, task)))
        x = tuple(float(at) for at in range(1, len(y) + 1))
        lines.append(Curve(name=name, x=x, y=y, low=y, high=y))
    return Panel(
        title=catalog.task_label(task),
        x_label="trial",
        y_label=catalog.metric(catalog.primary(task)).axis,
        lines=tuple(lines),
        steps=True,
    )


def _study_table(
    folder: RunFolder, key: str, task: str, found: Mapping[str, list[Trial]]
) -> TableBlock:
    catalog = folder.catalog
    metric = catalog.metric(catalog.primary(task))
    rows = []
    for name, trials in sorted(found.items()):
        best = _best_so_far(trials, _sign(catalog, task))[-1]
        spent = sum(trial.outcome.record.seconds for trial in trials)
        cell = best.outcome.cell
        rows.append(
            (
                TableCell(text=catalog.label(name)),
                TableCell(text=str(len(trials)), sort=len(trials)),
                TableCell(text=plain(spent), sort=spent),
                TableCell(text=plain(best.value), sort=best.value),
                TableCell(text=str(best.number), sort=best.number),
                TableCell(text=clean(f"{cell.variant}, {cell.protocol}"), code=True),
            )
        )
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
        rows=tuple(rows),
    )
