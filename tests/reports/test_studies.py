"""Studies: what their curve, their table and their sentences say of the same trials."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import TASKS, catalog, quality_cell, record
from synthetic_run import write_run

from reports.blocks import Bullets, TableBlock
from reports.curves import legend_of
from reports.figures import Curve
from reports.folder import RunFolder, read_folder
from reports.sections import studies
from results.row import Record, Row, Status

REVERSAL, TRANSLATION, RECALL = TASKS
DASH = "\N{EM DASH}"


def trial(
    number: int,
    value: float | None,
    *,
    name: str = "scaled_dot",
    task: str = REVERSAL,
    status: Status = "diverged",
    more: Iterable[Row] = (),
) -> Record:
    """A trial of 4.2 s; with None for its value one that has failed."""
    cell = replace(quality_cell(task, name, 0), kind="trial", protocol=f"adam[lr=0.00{number + 1}]")
    if value is None:
        return record(cell, status, detail="loss is nan.")
    metric = TASKS[task][1]
    row = Row(metric=metric, value=value, split="validation", repeat=number)
    return record(cell, "ok", [row, *more])


def numbered(records: Iterable[Record], name: str = "scaled_dot") -> dict[str, str]:
    """The catalog's list of the trials of a study: 0, 1, ... in the order of the records."""
    return {f"{name} {number}": one.id for number, one in enumerate(records)}


def folder_of(path: Path, records: Iterable[Record], **said: Any) -> RunFolder:
    return read_folder(write_run(path, records=records, catalog_data={**catalog(), **said}))


def drawn(folder: RunFolder) -> tuple[dict[str, Curve], dict[str, list[str]], list[str]]:
    """Curves and rows of the first task by name, and sentences."""
    lines: dict[str, Curve] = {}

    def spied(_key: str, _words: object, content: Iterable[Any], _legend: object) -> None:
        lines.update({line.name: line for panel in content for line in panel.lines})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "panels", spied)
        section = studies.study_section(folder, legend_of(folder))
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    told = [one for block in section.blocks if isinstance(block, Bullets) for one in block.items]
    return lines, {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}, told


def points(line: Curve) -> list[tuple[float, float]]:
    return [*zip(line.x, line.y, strict=True)]


def chose(trials: int, best: int, value: float, task: str = REVERSAL) -> dict[str, Any]:
    facts = {"trials": trials, "best_trial": best, "best_validation": value, "task": task}
    return {"scaled_dot": {**facts, "variant": "scaled_dot", "lr": float(f"0.00{best + 1}")}}


VALUES = (0.2, None, 0.1, 0.9)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "older"])
def test_a_failed_trial_has_its_place_on_the_axis_and_its_cost(
    tmp_path: Path, listed: bool
) -> None:
    records = [trial(number, value) for number, value in enumerate(VALUES)]
    said = {"trials": numbered(records)} if listed else {}
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, **said))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (3, 0.2), (4, 0.9)]
    assert rows["scaled_dot"][:4] == ["3", "16.8", "0.900", "3"]


@pytest.mark.parametrize("status", ["diverged", "timeout", "failed", "out_of_memory", "refused"])
def test_the_best_is_held_over_failed_trials_at_the_end(tmp_path: Path, status: Status) -> None:
    values = (0.2, 0.4, None, None)
    records = [trial(number, value, status=status) for number, value in enumerate(values)]
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, trials=numbered(records)))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.4), (4, 0.4)]
    assert rows["scaled_dot"][1] == "16.8"


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "older"])
def test_trials_beyond_those_among_which_a_study_chose_are_not_shown(
    tmp_path: Path, listed: bool
) -> None:
    records = [trial(number, value) for number, value in enumerate((0.2, 0.4, 0.1, 0.9))]
    said = {"trials": numbered(records)} if listed else {}
    found = folder_of(tmp_path / "run", records, study=chose(2, 1, 0.4), **said)
    lines, rows, told = drawn(found)
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.4)]
    settings = "scaled_dot, adam[lr=0.002]"
    assert rows["scaled_dot"] == ["2", "8.40", "0.400", "1", settings]
    assert told[0].startswith("scaled_dot: trial 1 is the best of 2, with learning rate 0.00200.")


def test_a_failed_trial_beyond_them_costs_nothing(tmp_path: Path) -> None:
    records = [trial(number, value) for number, value in enumerate((0.2, 0.4, None))]
    said = {"trials": numbered(records), "study": chose(2, 1, 0.4)}
    _, rows, _ = drawn(folder_of(tmp_path / "run", records, **said))
    assert rows["scaled_dot"][1] == "8.40"


def test_what_was_chosen_on_one_task_is_not_said_of_another(tmp_path: Path) -> None:
    """As in a merge of two studies of one variant."""
    records = [trial(number, value, task=RECALL) for number, value in enumerate((0.2, 0.4, 0.1))]
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, study=chose(2, 1, 0.4)))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.2), (3, 0.1)]
    assert rows["scaled_dot"][2:4] == ["0.100", "2"]


def test_two_studies_that_asked_for_one_cell_both_have_it(tmp_path: Path) -> None:
    records = [trial(0, 0.2), trial(1, 0.4)]
    lists = {**numbered(records, "one"), **numbered(records[1:], "other")}
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, trials=lists))
    assert points(lines["one"]) == [(1, 0.2), (2, 0.4)]
    assert points(lines["other"]) == [(1, 0.4)]
    assert (rows["one"][0], rows["other"][0]) == ("2", "1")


def test_a_study_that_asked_twice_for_one_cell_spent_two_trials_and_one_training(
    tmp_path: Path,
) -> None:
    records = [trial(0, 0.2)]
    lists = numbered([*records, *records])
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, trials=lists))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.2)]
    assert rows["scaled_dot"][:2] == ["2", "4.20"]


def test_trials_that_a_study_did_not_ask_for_are_of_an_earlier_one(tmp_path: Path) -> None:
    """After an edit a sampler may try other settings; what it tried before stays stored."""
    records = [trial(0, 0.2), trial(1, 0.4), trial(8, 0.9)]
    _, rows, _ = drawn(folder_of(tmp_path / "run", records, trials=numbered(records[:2])))
    assert rows["scaled_dot"][:4] == ["2", "8.40", "0.400", "1"]


def test_trainings_that_no_number_tells_apart_are_drawn_one_after_another(tmp_path: Path) -> None:
    """As those of a calibration."""
    records = [trial(number, value) for number, value in enumerate((0.2, 0.4))]
    alike = [replace(one, rows=(replace(one.rows[0], repeat=0),)) for one in records]
    lines, _, _ = drawn(folder_of(tmp_path / "run", alike))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.4)]


def test_a_study_without_any_value_has_a_line_and_no_curve(tmp_path: Path) -> None:
    records = [trial(0, None), trial(1, None)]
    facts = {"scaled_dot": {"trials": 2, "best_trial": "none gave a value"}}
    lines, rows, told = drawn(folder_of(tmp_path / "run", records, study=facts))
    assert lines == {}
    assert rows == {"scaled_dot": ["0", "8.40", DASH, DASH, DASH]}
    assert told == ["scaled_dot: no trial of 2 gave a value."]


def test_a_choice_whose_value_is_elsewhere_is_no_other_trial(tmp_path: Path) -> None:
    """Two machines may share the storage of a study."""
    records = [trial(0, 0.2), trial(1, 0.4)]
    said = {"trials": numbered(records), "study": chose(4, 3, 0.9)}
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, **said))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.4)]
    assert rows["scaled_dot"] == ["2", "8.40", DASH, DASH, DASH]


def test_only_the_ranking_metric_of_the_variant_itself_is_a_value(tmp_path: Path) -> None:
    other = Row(metric="loss_nats", value=7.0, split="validation")
    rule = Row(metric="token_accuracy", value=1.0, split="validation", baseline="copy")
    records = [trial(0, 0.2, more=[rule, other]), trial(1, 0.4)]
    records[1] = replace(records[1], rows=(other,))
    lines, rows, _ = drawn(folder_of(tmp_path / "run", records, trials=numbered(records)))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.2)]
    assert rows["scaled_dot"][:4] == ["1", "8.40", "0.200", "0"]


CHOOSES = "choosing_token_accuracy"


@pytest.fixture
def patient() -> tuple[list[Record], dict[str, Any]]:
    """Trials with patience: their last row is what chose the weights; and what the catalog says."""
    ranks = Row(metric="beyond_training_token_accuracy", value=0.1, split="validation")
    rows = {number: Row(metric=CHOOSES, value=value, split="validation", repeat=number)
            for number, value in enumerate((0.6, 0.8))}  # fmt: skip
    records = [
        replace(trial(number, 0.0), rows=(replace(ranks, value=0.2 - 0.1 * number), row))
        for number, row in rows.items()
    ]
    known = catalog()
    tasks: Any = known["tasks"]
    metrics: Any = known["metrics"]
    usual = metrics["token_accuracy"]
    said = {
        "trials": numbered(records),
        "tasks": {**tasks, REVERSAL: {**tasks[REVERSAL], "primary": ranks.metric}},
        "metrics": {
            **metrics,
            ranks.metric: {**usual, "title": "Accuracy beyond training"},
            CHOOSES: {**usual, "title": "Accuracy within and beyond training"},
        },
    }
    return records, said


def table_heads(folder: RunFolder) -> list[str]:
    section = studies.study_section(folder, legend_of(folder))
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    return [column.title for column in table.columns]


def test_trials_with_patience_are_shown_by_what_chose_their_weights(
    tmp_path: Path, patient: tuple[list[Record], dict[str, Any]]
) -> None:
    records, said = patient
    facts = chose(2, 1, 0.8)
    facts["scaled_dot"]["chosen_by"] = CHOOSES
    for name, study in {"stopped": {}, "ended": facts}.items():
        folder = folder_of(tmp_path / name, records, study=study, **said)
        lines, rows, told = drawn(folder)
        assert points(lines["scaled_dot"]) == [(1, 0.6), (2, 0.8)], name
        assert rows["scaled_dot"][2:4] == ["0.800", "1"]
        assert "Accuracy within and beyond training ↑" in table_heads(folder)
    assert told == [
        "scaled_dot: trial 1 is the best of 2, with learning rate 0.00200. Accuracy within and "
        "beyond training: 0.800 on validation. Accuracy beyond training: no new seed has a score."
    ]


def test_a_study_of_before_is_shown_by_what_ranks_which_chose_its_trials(
    tmp_path: Path, patient: tuple[list[Record], dict[str, Any]]
) -> None:
    records, said = patient
    folder = folder_of(tmp_path / "run", records, study=chose(2, 0, 0.2), **said)
    lines, rows, told = drawn(folder)
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.2)]
    assert rows["scaled_dot"][2:4] == ["0.200", "0"]
    assert "Accuracy beyond training ↑" in table_heads(folder)
    assert "Accuracy beyond training: 0.200 on validation; no new" in told[0]


def test_trials_whose_options_do_not_go_together_are_spent_and_told_with_the_reason(
    tmp_path: Path,
) -> None:
    records = [trial(0, 0.2), trial(1, 0.4)]
    facts = chose(4, 1, 0.4)
    facts["scaled_dot"]["illegal"] = dict.fromkeys(("2", "3"), "one: not beside the other.")
    said = {"trials": numbered(records), "study": facts}
    lines, rows, told = drawn(folder_of(tmp_path / "run", records, **said))
    assert points(lines["scaled_dot"]) == [(1, 0.2), (2, 0.4), (4, 0.4)]
    assert rows["scaled_dot"][0] == "2"
    assert told[0].endswith(
        " 2 trials failed, because their options do not go together: one: not beside the other."
    )
    none = {"trials": 2, "best_trial": "none gave a value", "illegal": {"0": "no.", "1": "no."}}
    folder = folder_of(tmp_path / "none", [], study={"scaled_dot": none})
    section = studies.study_section(folder, legend_of(folder))
    assert section is not None
    assert "no trial of 2 gave a value. 2 trials failed, because" in str(section.blocks)


def test_new_seeds_are_those_at_the_chosen_rate(tmp_path: Path) -> None:
    """A run of the same variant in the folder, or an earlier choice, has others."""

    def tested(seed: int, value: float, rate: str) -> Record:
        cell = replace(quality_cell(REVERSAL, "scaled_dot", seed), protocol=f"adam[lr={rate}]")
        return record(cell, "ok", [Row(metric="token_accuracy", value=value, split="test")])

    records = [trial(0, 0.2), trial(1, 0.4)]
    records += [tested(seed, 0.8, "0.003") for seed in (0, 1, 2)]
    records += [tested(seed, 0.4, "0.002") for seed in (1000, 1001)]
    found = folder_of(tmp_path / "run", records, study=chose(2, 1, 0.4))
    assert drawn(found)[2][0].endswith("0.400 on validation, 0.400 on the test with 2 new seeds.")
    more = [*records, *[tested(seed, 0.1, "0.001") for seed in (1000, 1001)]]
    found = folder_of(tmp_path / "more", more, study=chose(2, 1, 0.4))
    assert drawn(found)[2][0].endswith("0.400 on validation, 0.400 on the test with 2 new seeds.")


def test_the_report_of_one_task_tells_no_study_of_another(tmp_path: Path) -> None:
    records = [trial(0, 0.2), trial(0, 0.3, task=RECALL)]
    path = tmp_path / "run"
    whole = folder_of(path, records, study=chose(1, 0, 0.2))
    assert len(studies.study_sentences(whole)) == 1
    assert len(studies.study_sentences(read_folder(path, ["reversal"]))) == 1
    assert studies.study_sentences(read_folder(path, ["recall"])) == []


@pytest.mark.parametrize("place", ["scaled_dot x", "scaled_dot \u00b2", f"a {9**99}", " 0"])
def test_a_list_that_names_no_number_is_none(tmp_path: Path, place: str) -> None:
    records = [trial(0, 0.2)]
    _, rows, _ = drawn(folder_of(tmp_path / "run", records, trials={place: records[0].id}))
    assert rows["scaled_dot"][0] == "1"
