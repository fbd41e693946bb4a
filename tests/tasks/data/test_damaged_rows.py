"""Rows that no writer of ours makes: a sentence that quotes little of them."""

import pytest

from bench.api.errors import DataDamaged
from tasks.data.mimic3_demo import read_csv
from tasks.data.tables import numbered, read_json_lines, read_table

HUGE = "y" * 300_000


def test_a_field_longer_than_the_csv_reader_takes_is_a_sentence(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,2\n1,{HUGE}\n")
    with pytest.raises(DataDamaged, match="line 3 cannot be read") as error:
        read_csv(path, ["a", "b"])
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}", "{"])
def test_a_line_that_is_no_json_of_ours_is_a_sentence(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DataDamaged, match="line 1 is not JSON") as error:
        read_json_lines(path, {"a": str})
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[1]", "no field 'a'"),
        ('{"b": 1}', "no field 'a'"),
        ('{"a": "x"}', "no field 'b'"),
        ('{"a": null, "b": 1}', "null in 'a' where str is expected"),
        ('{"a": "x", "b": true}', "bool in 'b' where float is expected"),
        ('{"a": "x", "b": 1, "c": "y"}', "str in 'c' where list is expected"),
    ],
)
def test_a_line_with_a_value_of_another_type_is_named(tmp_path, line, says):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "x", "b": 1}\n{"a": "x", "b": 1.5, "c": []}\n' + line + "\n")
    with pytest.raises(DataDamaged, match=f"line 3 has {says}; copy the file"):
        read_json_lines(path, {"a": str, "b": float, "c": list}, may_lack=["c"])


def test_a_huge_value_is_quoted_in_part(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(f"{HUGE}\tb\n")
    with pytest.raises(DataDamaged, match="line 1 names") as error:
        read_table(path, ["a", "b"], header=True)
    assert len(str(error.value)) < 600
    with pytest.raises(DataDamaged, match="line 1 has a") as error:
        numbered(({"a": HUGE},), "a", {"x": 0}, path)
    assert len(str(error.value)) < 600
