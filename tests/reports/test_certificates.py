"""The table of checks: one line for all shapes of a place, and one for each code."""

import json
from pathlib import Path

from synthetic_run import certificates, write_run

from reports.blocks import TableBlock
from reports.folder import read_folder
from reports.sections.certificates import certificates_section


def test_shapes_are_one_line_and_other_code_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    at = "timed_shape_on_cpu_bfloat16_at_causal_B2_H2_L{}_E32".format
    found = certificates()
    first, second = [*found][:2]
    entry: dict[str, object] = {"failed": {}, "told": {}, "expected": []}
    passed = ["oracle", "oracle_on_eager", "answers_on_cpu_bfloat16", at(64), at(128)]
    found[first] = {**entry, "passed": passed, "skipped": {at(4096): "no memory."}}
    found[second] = {**entry, "passed": ["timed_shape_on_cpu_bfloat16"], "skipped": {}}
    (run / "certificates.json").write_text(json.dumps(found), encoding="utf-8")
    _, checks, _ = certificates_section(read_folder(run)).blocks
    assert isinstance(checks, TableBlock)
    lines = {row[0].text: [cell.text for cell in row[1:]] for row in checks.rows}
    shapes = lines["timed_shape_on_cpu_bfloat16"]
    assert shapes == [
        "answers at timed shapes equal those in float64, on cpu bfloat16",
        "2",
        "1",
        "0",
    ]
    assert not [name for name in lines if "_at_" in name]
    assert lines["oracle_on_eager"][0] == f"{lines['oracle'][0]}, with the code eager"
    assert lines["answers_on_cpu_bfloat16"][0] == "answers equal those in float64, on cpu bfloat16"
