"""Types of what is read from files."""

import json
from dataclasses import asdict

import pytest

from bench.api.cell import Cell
from results.json_values import as_number, read_value
from results.ledger import LedgerReader
from results.row import Record, Row, record_from_json
from results.store import Store
from results.stored_types import refuse_wrong_types

CELL = Cell(
    kind="quality", task="recall", backbone="b", variant="dot", slot="cross", protocol="adam"
)
RECORD = Record(
    cell=asdict(CELL),
    id=CELL.id,
    status="ok",
    environment="e",
    rows=(Row(metric="accuracy", value=1.0), Row(metric="a", value=1, axis="step", x=2)),
)


def test_what_was_written_has_the_types_that_were_written():
    assert record_from_json(json.loads(json.dumps(RECORD.to_json()))) == RECORD


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"status": "fine"}, "status is none of ok"),
        ({"status": 3}, "status is int, not str"),
        ({"attempt": "2"}, "attempt is str, not int"),
        ({"attempt": True}, "attempt is bool, not int"),
        ({"attempt": 10**30}, "attempt is too large"),
        ({"seconds": None}, "seconds is NoneType, not float or int"),
        ({"finished": []}, "finished is list, not str"),
        ({"cell": []}, "cell is list, not dict"),
        ({"cell": {**asdict(CELL), "seed": "1"}}, "seed is str, not int"),
        ({"cell": {"kind": "quality"}}, "task is missing"),
        ({"rows": {}}, "rows must be a list"),
        ({"rows": [3]}, "rows must be a list of objects"),
        ({"rows": [{"metric": "a", "value": "1"}]}, "value is str, not float or int"),
        ({"rows": [{"metric": "a", "value": True}]}, "value is bool"),
        ({"rows": [{"value": 1.0}]}, "metric is missing"),
    ],
)
def test_another_type_is_refused_with_its_name(change, complaint):
    data = {**json.loads(json.dumps(RECORD.to_json())), **change}
    with pytest.raises((TypeError, ValueError), match=complaint):
        record_from_json(data)


def test_a_damaged_line_is_told_in_few_words_and_the_others_are_read(tmp_path):
    with Store.create(tmp_path / "run") as store:
        store.append(RECORD)
    (path,) = (tmp_path / "run" / "ledger").glob("*.jsonl")
    whole = path.read_text()
    wrong = json.dumps({**RECORD.to_json(), "detail": "y" * 1_000_000})
    deep = "[" * 100_000
    path.write_text(f"{whole}{wrong}\n{deep}\n{{}}\n" + '{"schema": "x"}\n')
    found = LedgerReader(tmp_path / "run" / "ledger").read()
    assert found.records == (RECORD,)
    assert len(found.corrupt_lines) == 4
    assert all(len(line) < 500 for line in found.corrupt_lines)


def test_optional_and_unknown_fields_are_no_fault():
    told = {"metric": "a", "value": 1, "x": None, "later": object()}
    assert refuse_wrong_types(Row, told) is None, "it raises where something is wrong"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("NaN", "NaN is no number of JSON"),
        ("[Infinity]", "Infinity is no number of JSON"),
        ("1e999", "1e999 is too large for a number"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_what_is_no_json_is_a_value_error(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_value(text)


def test_half_of_a_surrogate_pair_is_replaced():
    assert read_value(rb'{"a": "\ud800", "b": "\ud83d\ude42"}') == {"a": "\ufffd", "b": "🙂"}


@pytest.mark.parametrize("value", ["1", True, None, [], {}, 10**400, float("nan")])
def test_what_is_no_finite_number_is_none(value):
    assert as_number(value) is None


def test_a_record_that_went_with_its_folder_is_an_error_and_not_stored(tmp_path):
    with Store.create(tmp_path / "run") as store:
        store.append(RECORD)
        for path in (tmp_path / "run" / "ledger").glob("*.jsonl"):
            path.unlink()
        with pytest.raises(FileNotFoundError, match="the ledger file was deleted"):
            store.append(RECORD)
