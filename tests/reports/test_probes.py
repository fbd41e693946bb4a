from dataclasses import replace

import pytest
from synthetic import BASE, TASKS, quality_cell, record
from synthetic_run import write_run

from reports.folder import read_folder
from reports.render import document
from reports.sections.probes import probed_section, probes_section, probes_text
from results.row import Row


def looked(name, seed, value, probe="blur", **more):
    usual = {"protocol": f"analysis[examples=256,probe={probe},trained=adam]"}
    cell = quality_cell(next(iter(TASKS)), name, seed)
    cell = replace(cell, kind="analysis", **{**usual, **more})
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


def test_the_section_says_which_examples_were_looked_at(tmp_path):
    """The usual number is left out of a protocol."""
    usual = [
        looked(BASE, seed, 1.0, protocol="analysis[probe=blur,trained=adam]") for seed in (0, 1)
    ]
    more = [looked(BASE, 0, 1.0, protocol="analysis[examples=1024,probe=blur,trained=adam]")]
    for name, stored, told in (
        ("usual", usual, "256"),
        ("more", more, "1024"),
        ("both", [*usual, *more], "256 or 1024"),
    ):
        section = probes_section(read_folder(write_run(tmp_path / name, records=stored)))
        lead = str(section.blocks[0])
        assert f"looked at the first {told} test examples of every trained model" in lead
        assert "these are the shortest where lengths differ" in lead


def tables_of(tmp_path, records):
    """Texts of the first value by title and variant, and the titles of curves."""
    section = probes_section(read_folder(write_run(tmp_path / "run", records=records)))
    plain = [block for block in section.blocks[1:] if not block.folded]
    curves = [block.title for block in section.blocks[1:] if block.folded]
    return {one.title: {row[0].text: row[1].text for row in one.rows} for one in plain}, curves


@pytest.mark.parametrize(
    ("more", "ends"),
    [
        ({"backbone": "seq2seq[width=128]"}, ("blur (width=128)", "blur (width=64)")),
        ({"probe": "blur[share=0.5]"}, ("blur", "blur[share=0.5]")),
        ({"dtype": "bfloat16"}, ("blur (bfloat16)", "blur (float32)")),
        ({"device": "cuda"}, ("blur (cpu)", "blur (cuda)")),
        ({"slot": "self"}, ("blur (cross)", "blur (self)")),
        ({"impl": "compiled"}, ("blur (auto)", "blur (compiled)")),
        ({"revisions": "seq2seq:1 task:1 variant:2"}, None),
    ],
)
def test_no_mean_is_over_two_networks_probes_or_formats(tmp_path, more, ends):
    records = [looked(BASE, seed, 1.0) for seed in range(2)]
    records += [looked(BASE, seed, 3.0, **more) for seed in range(2)]
    found, curves = tables_of(tmp_path, records)
    assert sorted(one["bahdanau"] for one in found.values()) == ["1.00", "3.00"]
    assert len(set(curves)) == 2
    if ends:
        assert sorted(found) == [f"reversal: {end}" for end in ends]
    text = probes_text(read_folder(tmp_path / "run"))
    assert len([line for line in text.splitlines() if line.startswith("reversal")]) == 2


def test_a_probe_that_ended_badly_has_no_value_in_a_mean(tmp_path):
    bad = looked(BASE, 2, 9.0)
    records = [
        *(looked(BASE, seed, 1.0) for seed in range(2)),
        replace(bad, status="failed", detail="no"),
    ]
    found, _ = tables_of(tmp_path, records)
    assert found == {"reversal: blur": {"bahdanau": "1.00"}}


@pytest.mark.parametrize(
    ("trained", "probes"), [(3, ["blur"]), (9, ["blur"]), (9, ["blur", "dim"])]
)
def test_probes_stand_on_the_first_page_where_most_trained_models_were_looked_at(
    tmp_path, trained, probes
):
    task = next(iter(TASKS))
    records = [looked(BASE, seed, 1.0 + seed, probe=probe) for seed in range(3) for probe in probes]
    rows = [Row(metric="token_accuracy", value=0.5, split="test")]
    records += [record(quality_cell(task, BASE, seed), "ok", rows) for seed in range(trained)]
    folder = read_folder(write_run(tmp_path / "run", records=records))
    section = probed_section(folder)
    told = document(folder).headline
    if trained == 9:
        assert section is None
        assert "looked into" not in told
        return
    assert told.startswith("This run looked into trained models (by the probe blur): what was seen")
    assert section.group == "summary"
    (table,) = section.blocks[1:]
    assert [row[0].text for row in table.rows] == ["bahdanau"]


def bounded(seed, value):
    """What a probe saw, by a metric between 0 and 1."""
    one = looked(BASE, seed, value)
    at = {"axis": "offset", "x": -1.0}
    rows = [Row(metric="token_accuracy", value=value, split="test", **more) for more in ({}, at)]
    return replace(one, rows=tuple(rows))


def test_a_value_of_a_probe_keeps_to_the_range_of_its_metric(tmp_path):
    records = [bounded(seed, value) for seed, value in enumerate((1.0, 0.9, 1.0))]
    folder = read_folder(write_run(tmp_path / "run", records=records))
    shown = "0.967 (0.90–1.00, 3 seeds)"  # the t interval goes to 1.11
    _, plain, curve = probes_section(folder).blocks
    assert [table.rows[0][1].text for table in (plain, curve)] == [shown, shown]
    assert shown in probes_text(folder)
