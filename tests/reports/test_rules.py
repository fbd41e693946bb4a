"""What a report may claim, publish and leave out."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from synthetic import BASE, TASKS, VARIANTS, catalog, quality_cell, quality_rows, record
from synthetic_run import certificates, markdown_of, speed_records, write_json, write_run

from reports.ablation_rows import ablation_table
from reports.catalog import Catalog, red_reasons
from reports.export import export_tables
from reports.folder import read_folder
from reports.ranked_table.grouping import _differing, comparisons
from reports.ranked_table.terminal import as_text
from reports.render import render
from reports.sections.ablations import ablation_section
from reports.speed_rows import speed_table
from results import load
from results.row import Row

TASK = "reversal[length=24]"
PRIVATE = "translation[pair=de-en]"


def some(task: str, seeds: int, names: tuple[str, ...] = (BASE, "scaled_dot")) -> list[Any]:
    return [
        record(quality_cell(task, name, seed), "ok", quality_rows(task, VARIANTS[name], seed))
        for name in names
        for seed in range(seeds)
    ]


def scored(variant: str, seed: int, value: float, **changes: str) -> Any:
    cell = quality_cell(TASK, variant, seed)
    cell = type(cell)(
        **{**{key: getattr(cell, key) for key in cell.__dataclass_fields__}, **changes}
    )
    return record(cell, "ok", [Row(metric="token_accuracy", value=value, split="test")])


def lines_of(folder: Path, frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """Lines of the ranked tables of a run, as they are printed; of other rows if given."""
    run = read_folder(folder)
    if frame is not None:
        vars(run)["frame"] = frame
    return run.ranked_lines


def test_a_preset_that_ranks_nothing_ranks_nothing(tmp_path: Path) -> None:
    names = catalog(ranks=False, preset="smoke")
    timed = [entry for entry in speed_records() if entry.cell["variant"] == "scaled_dot"]
    records = [*some(TASK, 2), *timed]
    folder = write_run(tmp_path / "run", records=records, catalog_data=names, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "Choose nothing from this run" in text
    assert "The preset “smoke” ranks nothing" in text
    for claim in ("FAST |", "SLOW |", "Choose shaw", "\n| 1 |", "1=", "**0."):
        assert claim not in text
    table = lines_of(folder)
    assert table["rank"].isna().all()
    assert table["p_adjusted"].isna().all()
    assert "Nothing is ranked" in as_text(table)


def test_a_table_without_ranks_says_which_cause_it_has(tmp_path: Path) -> None:
    def said(records: list[Any], *, ranks: bool = True) -> str:
        at = tmp_path / str(len(list(tmp_path.iterdir())))
        names = catalog(ranks=ranks)
        write_run(at, records=records, catalog_data=names, tasks=[TASK])
        return as_text(lines_of(at), ranks=ranks)

    several = some(TASK, 2)
    assert "Nothing is ranked" not in said(several)
    assert said(several, ranks=False).endswith("the preset is too small to show differences.")
    assert "one seed cannot show a significant difference" in said(some(TASK, 1))
    refused = [replace(one, status="refused", detail="no data.", rows=()) for one in several]
    assert said(refused).endswith("Nothing is ranked: no cell has a value.")
    red = next(name for name, shape in VARIANTS.items() if shape.red)
    assert said([scored(red, seed, 0.5) for seed in range(2)]).endswith(
        "no variant with a value has a green certificate."
    )


def test_published_reports_hold_no_sentence_of_closed_data(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=some(PRIVATE, 1), tasks=[PRIVATE])
    private = render(folder, out=tmp_path / "private")
    public = render(folder, out=tmp_path / "public", publish=True)
    assert "Katze" in private.html.read_text(encoding="utf-8")
    for path in public.html.parent.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert "Katze" not in text, path
            assert "sitting" not in text, path
    assert "tokens are replaced by their positions" in public.html.read_text(encoding="utf-8")
    assert "non-commercial" in markdown_of(public)


def test_published_reports_keep_sentences_of_open_data(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=some(TASK, 1), tasks=[TASK])
    assert "Katze" in render(folder, publish=True).html.read_text(encoding="utf-8")


def test_one_seed_has_no_interval_and_no_rank(tmp_path: Path) -> None:
    records = [scored(BASE, 0, 0.5), scored("scaled_dot", 0, 0.6)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "| 1= |" not in text
    assert "**0." not in text
    assert "### reversal: token accuracy, one seed" in text
    assert "One seed each: no interval is known, and nothing is ranked." in text
    assert "One seed each cannot show a significant difference" in text


def test_one_token_in_each_seed_is_no_claim_and_says_so(tmp_path: Path) -> None:
    levels = {BASE: 1023 / 1024, "scaled_dot": 1.0, "shaw_rpr": 0.5}
    records = [scored(name, seed, level) for name, level in levels.items() for seed in range(3)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "No variant is significantly better than bahdanau." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| 1= | [scaled_dot]")]
    assert "| **1.00** | +0.000977 | 0.50 | — | — | undecided |" in row
    assert text.partition("## Ablations")[0].count("that of the sign test: 0.25 for three") == 1
    table = lines_of(folder).set_index("selector")
    assert math.isinf(table.loc["scaled_dot", "difference_high"])
    (csv,) = [path for path in export_tables(folder, tmp_path / "out") if path.name == "ranked.csv"]
    line = pd.read_csv(csv).set_index("selector").loc["scaled_dot"]
    assert line[["difference_low", "difference_high", "score_low"]].isna().all()


def test_a_table_in_which_one_variant_varies_lends_its_spread_to_the_others(tmp_path: Path) -> None:
    levels = {BASE: 1023 / 1024, "scaled_dot": 1.0, "shaw_rpr": 0.5}
    records = [
        scored(name, seed, level + 0.001 * seed * (name == "shaw_rpr"))
        for name, level in levels.items()
        for seed in range(3)
    ]
    text = markdown_of(render(write_run(tmp_path / "run", records=records, tasks=[TASK])))
    assert "Significantly worse: shaw_rpr." in text
    (other,) = [line for line in text.splitlines() if "| shaw_rpr" in line and "±" in line]
    assert "<sup>" not in other.partition("±")[0]
    assert "| worse |" in other


def test_a_change_that_does_the_same_in_each_seed_has_a_note_in_the_ablation(
    tmp_path: Path,
) -> None:
    records = [
        scored(name, seed, level + 0.01 * seed)
        for name, level in {BASE: 0.5, "scaled_dot": 0.25}.items()
        for seed in range(3)
    ]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    part = text.partition("## Ablations")[2].partition("\n## ")[0]
    assert "| -0.250 | 0.25 |" in part
    assert "that of the sign test" in part


def test_changes_have_no_p_where_the_preset_ranks_nothing(tmp_path: Path) -> None:
    records = some(TASK, 5)
    for ranks in (True, False):
        made = catalog(ranks=ranks)
        folder = write_run(tmp_path / str(ranks), records=records, catalog_data=made)
        lines = ablation_table(read_folder(folder).comparisons)
        assert list(lines["axis"]) == ["(base)", "score"]
        assert list(lines["p_adjusted"].notna()) == [False, ranks]
        assert list(lines["difference"].notna()) == [False, True]


@pytest.mark.parametrize("rate", ["0.005", "0.01"])
def test_an_ablation_at_another_rate_does_not_say_that_nothing_else_was_changed(
    tmp_path: Path, rate: str
) -> None:
    """Before the base gave its rate, calibration may have chosen one for the base alone."""
    records = [
        scored(name, seed, 0.5 + 0.01 * seed, protocol=f"adam[lr={chosen}]")
        for name, chosen in ((BASE, "0.01"), ("scaled_dot", rate))
        for seed in range(3)
    ]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    section = ablation_section(read_folder(folder))
    assert section is not None
    told = str(section.blocks[0])
    assert ("and nothing else" in told) == (rate == "0.01")
    assert ("at another learning rate, too: scaled_dot." in told) == (rate != "0.01")


def test_a_single_seed_beside_several_has_a_mark_and_no_rank(tmp_path: Path) -> None:
    low, high = {BASE: 0.5}, {"scaled_dot": 0.8, "shaw_rpr": 0.82}
    # differences without spread would be no evidence
    bend = {BASE: 1e-4, "scaled_dot": 0.0, "shaw_rpr": -1e-4}
    records = [
        scored(name, seed, level + 0.001 * seed + bend[name] * seed * seed)
        for name, level in (low | high).items()
        for seed in range(5)
    ]
    records.append(scored("lstmn", 0, 0.99))
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    (row,) = [line for line in text.splitlines() if line.startswith("| — |") and "lstmn" in line]
    assert "*(1 of 5 seeds)*" in row
    assert "**" not in row
    # the best of one seed opens no rank that the others would join
    table = lines_of(folder).set_index("selector")
    assert table.loc[BASE, "rank"] == 3
    assert "Choose shaw_rpr" in text


def test_times_of_two_processors_are_never_averaged(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=some(TASK, 3), tasks=[TASK])
    frame = load(folder).rows
    frame["processor"] = "EPYC"
    moved = (frame["variant"] == BASE) & (frame["seed"] == 0)
    frame.loc[moved, "processor"] = "Xeon"
    slow = moved & (frame["metric"] == "train_step_time_ms")
    assert slow.any()
    frame.loc[slow, "value"] = 1e6
    lines = lines_of(folder, frame).set_index("selector")
    assert lines.loc[BASE, "train_step_time_ms"] < 1000
    assert lines.loc[BASE, "seeds"] == 3
    # nothing is left of one that ran elsewhere alone, and its scores stay
    frame.loc[frame["variant"] == BASE, "processor"] = "Xeon"
    frame.loc[frame["variant"] == "scaled_dot", "processor"] = "EPYC"
    (comparison,) = comparisons(frame, Catalog.of(catalog()))
    gone = {"EPYC": BASE, "Xeon": "scaled_dot"}[comparison.cells.processor]
    lines = lines_of(folder, frame).set_index("selector")
    assert pd.isna(lines.loc[gone, "train_step_time_ms"])
    assert lines["score"].notna().all()


def test_a_table_says_whose_times_it_shows(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=some(TASK, 3), tasks=[TASK])
    ledger = next((folder / "ledger").glob("*.jsonl"))
    first, *rest = ledger.read_text(encoding="utf-8").splitlines(keepends=True)
    known = json.loads(first)["environment"]
    ledger.write_text(first.replace(known, "other") + "".join(rest), encoding="utf-8")
    for name, cpu in ((known, "EPYC"), ("other", "Xeon")):
        write_json(folder / "environments" / f"{name}.json", {"id": name, "cpu": cpu})
    text = markdown_of(render(folder))
    assert "of cells that ran on EPYC. Others ran on Xeon. Scores are of all cells." in text


def test_a_variant_alone_is_not_chosen(tmp_path: Path) -> None:
    records = [scored(BASE, seed, 0.5 + 0.01 * seed) for seed in range(3)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "there is nothing to compare it with." in text


def test_a_clear_winner_is_chosen(tmp_path: Path) -> None:
    records = [scored(BASE, seed, 0.5 + 0.001 * seed) for seed in range(5)]
    records += [
        scored("scaled_dot", seed, 0.8 + 0.001 * seed + 1e-4 * seed**2) for seed in range(5)
    ]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "Choose scaled_dot. No other contender is among the best" in text
    assert "Significantly better than bahdanau: scaled_dot." in text


def test_a_leading_control_is_called_out(tmp_path: Path) -> None:
    names = (BASE, "no_attention")
    records = [scored(name, seed, 0.5 + 0.01 * seed) for name in names for seed in range(3)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "The control no_attention is among the best" in text


def test_an_expected_check_that_did_not_run_is_red() -> None:
    found = {
        "rope": {"passed": ["a"], "skipped": {"b": "no."}, "failed": {}, "expected": ["a", "b"]}
    }
    assert red_reasons(found, "rope[base=10000]") == ["b: expected, but no."]
    assert red_reasons(found, "alibi") == []


def test_a_red_certificate_takes_speed_away_in_every_table(demo: Path, tmp_path: Path) -> None:
    frame, names = load(demo).rows, catalog()
    assert "mocha" not in set(speed_table(frame, names, certificates())["name"])
    assert "mocha" in set(speed_table(frame, names, {})["name"])
    export_tables(demo, tmp_path)
    ranked = pd.read_csv(tmp_path / "ranked.csv")
    mine = ranked[ranked["variant"] == "mocha"]
    assert mine["rank"].isna().all()
    assert mine["train_step_time_ms"].isna().all()
    assert mine["score"].notna().all()


def test_settings_are_compared_only_where_they_agree(tmp_path: Path) -> None:
    records = [scored(BASE, seed, 0.5, backbone="big") for seed in range(2)]
    records += [scored(BASE, seed, 0.6) for seed in range(2)]
    records += [scored("scaled_dot", seed, 0.7) for seed in range(2)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    found = comparisons(load(folder).rows, Catalog(catalog()), {})
    assert [comparison.title for comparison in found] == [
        "reversal (big)",
        "reversal (seq2seq)",
    ]
    assert [len(comparison.variants) for comparison in found] == [1, 2]


def test_another_backbone_in_one_comparison_is_marked(tmp_path: Path) -> None:
    records = [scored(BASE, seed, 0.5) for seed in range(2)]
    records += [scored("scaled_dot", seed, 0.6, backbone="big") for seed in range(2)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    table = lines_of(folder).set_index("variant")
    assert table.loc["scaled_dot", "marks"] == "other backbone"


def test_a_network_of_another_width_is_not_called_another_backbone(tmp_path: Path) -> None:
    records = [scored(BASE, seed, 0.5) for seed in range(2)]
    records += [scored("scaled_dot", seed, 0.6, backbone="seq2seq[hidden=30]") for seed in range(2)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    table = lines_of(folder).set_index("variant")
    assert table.loc["scaled_dot", "marks"] == "other network options"


def test_parameters_are_printed_beside_the_score(markdown: str) -> None:
    assert "260 k (+24 %)" in markdown


@pytest.mark.parametrize("records", [[], None])
def test_runs_without_results_still_render(tmp_path: Path, records: list[Any] | None) -> None:
    refused = record(quality_cell(TASK, BASE, 0), "refused", detail="no causal form.")
    chosen = [refused] if records is None else records
    folder = write_run(tmp_path / "run", records=chosen, tasks=[TASK])
    text = markdown_of(render(folder))
    assert "There is no score that could choose a variant." in text
    export_tables(folder, tmp_path / "tables")


def test_planned_cells_that_have_not_run_are_listed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=[scored(BASE, 0, 0.5)], tasks=[TASK])
    waiting = quality_cell(TASK, "lstmn", 7).label
    write_json(folder / "plan.json", {"asked": {}, "cells": [waiting, "not a label"]})
    text = markdown_of(render(folder))
    assert "2 not run yet" in text, "of a plan of an earlier version, which has labels alone"
    assert f"--cell '{waiting}'" in text


def test_a_finished_cell_that_is_printed_in_another_way_is_not_waited_for(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=[scored(BASE, 0, 0.5)], tasks=[TASK])
    finished = quality_cell(TASK, BASE, 0)
    write_json(folder / "plan.json", {"cells": {finished.id: f"{finished.label} / dtype=float32"}})
    assert "not run yet" not in markdown_of(render(folder))


def test_a_damaged_ledger_is_admitted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=[scored(BASE, 0, 0.5)], tasks=[TASK])
    with (folder / "ledger" / "host-1-0000.jsonl").open("a", encoding="utf-8") as ledger:
        ledger.write('{"broken": 1}\n{"torn')
    written = render(folder)
    assert "1 line of the ledger cannot be read" in written.markdown.read_text()
    assert "1 unfinished last line of killed writers was left out" in markdown_of(written)


def test_a_damaged_artifact_is_admitted_and_hides_no_score(tmp_path: Path) -> None:
    cells = [scored(BASE, seed, 0.5) for seed in range(2)]
    folder = write_run(tmp_path / "run", records=cells, tasks=[TASK])
    artifact = folder / "artifacts" / f"{cells[0].id}.json"
    artifact.parent.mkdir(exist_ok=True)
    artifact.write_text('{"attention": [')
    text = markdown_of(render(folder))
    assert "samples and notes of 1 cell cannot be read and are missing below" in text
    assert f"{artifact} is damaged (no JSON: line 1" in text.replace("\\_", "_")
    assert "0.5" in text


def test_the_terminal_table_has_one_block_per_task(demo: Path) -> None:
    text = as_text(lines_of(demo))
    assert len(text.split("\n\n")) == len(TASKS)
    assert "mocha (red certificate)" in text


def test_comparisons_of_one_task_are_significantly_different_by_what_differs():
    birnn = "pool[encoder=birnn[cell=gru],width=8]"
    others = {"pool[encoder=embed,width=8]", "pool[encoder=birnn[cell=gru],width=16]"}
    assert _differing(birnn, {"pool[encoder=embed,width=8]"}) == "encoder=birnn"
    assert _differing(birnn, others) == "encoder=birnn, width=8"
    assert _differing("rnn[width=4]", {birnn}) == "rnn"
    lstm = birnn.replace("gru", "lstm")
    assert _differing(birnn, {lstm, "pool[encoder=embed,width=8]"}) == "encoder=birnn[cell=gru]"


def test_a_length_without_the_baseline_has_no_ratio_of_a_shorter_one(demo: Path) -> None:
    frame = load(demo).rows
    longest = frame.loc[frame["axis"] == "length", "x"].max()
    alone = (frame["variant"] == "scaled_dot") & (frame["x"] == longest)
    frame = frame[~(alone & (frame["baseline"] != ""))]
    found = speed_table(frame, catalog(), {}).set_index(["name", "metric"])
    line = found.loc[("scaled_dot", "forward_time_ms")]
    assert line["length"] == longest
    assert math.isnan(line["ratio"])
    assert not math.isfinite(line["aa_half_width"])
    assert line["verdict"] == ""
    assert line["median"] > 0
