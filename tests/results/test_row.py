"""The value of a record is the variant's own, over a whole split."""

from results.row import Record, Row


def test_a_value_is_neither_a_point_of_a_curve_nor_of_a_baseline_nor_of_another_split() -> None:
    record = Record(
        cell={},
        id="0123456789ab",
        status="ok",
        environment="0123456789ab",
        rows=(
            Row(metric="accuracy", value=0.1, split="validation", axis="step", x=1.0),
            Row(metric="accuracy", value=0.2, split="validation", baseline="majority"),
            Row(metric="accuracy", value=0.3, split="test"),
            Row(metric="accuracy", value=0.4, split="validation"),
            Row(metric="parameters_count", value=5.0),
        ),
    )
    assert record.value("accuracy", "validation") == 0.4
    assert record.value("accuracy", "test") == 0.3
    assert record.value("parameters_count", "") == 5.0
    assert record.value("accuracy", "") is None
    assert record.value("loss", "test") is None
