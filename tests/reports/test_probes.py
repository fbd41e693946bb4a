from dataclasses import replace

from synthetic import BASE, TASKS, quality_cell, record
from synthetic_run import write_run

from reports.folder import read_folder
from reports.sections.probes import probes_section, probes_text
from results.row import Row


def looked(name, seed, value):
    cell = replace(
        quality_cell(next(iter(TASKS)), name, seed),
        kind="analysis",
        protocol="analysis[examples=256,probe=blur,trained=adam]",
    )
    rows = [
        Row(metric="weight_entropy_nats", value=value, split="test"),
        Row(metric="align_match_at_share", value=0.5, axis="offset", x=-1.0, split="test"),
    ]
    return record(cell, "ok", rows)


def test_a_run_without_analyses_has_no_such_section(demo):
    assert probes_section(read_folder(demo)) is None


def test_the_terminal_has_the_first_value_of_each_probe(demo, tmp_path):
    assert probes_text(read_folder(demo)) == ""
    records = [looked(BASE, seed, 1.0 + seed) for seed in range(3)]
    text = probes_text(read_folder(write_run(tmp_path / "run", records=records)))
    (line,) = [line for line in text.splitlines() if line.startswith("reversal")]
    assert line.split()[:3] == ["reversal", "blur", "bahdanau"]
    assert line.endswith("2.0 ± 2.5")


def test_there_is_a_table_for_each_task_and_probe_and_one_for_each_curve(tmp_path):
    records = [looked(BASE, seed, 1.0 + seed) for seed in range(3)]
    records.append(looked("scaled_dot", 0, 0.25))
    folder = read_folder(write_run(tmp_path / "run", records=records))
    section = probes_section(folder)
    _, plain, curve = section.blocks
    assert plain.title == "reversal: blur"
    texts = {row[0].text: row[1].text for row in plain.rows}
    assert texts == {"bahdanau": "2.0 ± 2.5", "scaled_dot": "0.250"}
    assert [column.title for column in curve.columns] == ["Variant", "offset -1"]
