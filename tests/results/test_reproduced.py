"""Two trainings of one cell: the same test values, or where they differ most."""

from dataclasses import replace

import pytest

from results.environment import collect
from results.reproduced import reproduced
from results.row import Row
from results.store import Store
from tests.results.test_store import record


def rows(accuracy, seconds=1.0, split="test"):
    return (
        Row(metric="accuracy", value=accuracy, split=split),
        Row(metric="loss", value=0.5, split="test"),
        Row(metric="train_cpu_s", value=seconds),
    )


@pytest.fixture
def compared(tmp_path):
    def compare(first, second):
        stores = []
        for name, made in (("a", first), ("b", second)):
            store = Store.create(tmp_path / name)
            here = store.write_environment(collect(threads=1))
            store.append(replace(record(1), rows=made, environment=here))
            stores.append(store)
        return reproduced(*stores)

    return compare


def test_equal_test_values_are_the_same_whatever_the_times(compared):
    (found,) = compared(rows(0.9), rows(0.9, seconds=7.0))
    assert found.same
    assert (found.values, found.lost, found.other_machine) == (2, 0, False)


def test_the_metric_that_differs_most_is_named(compared):
    (found,) = compared(rows(0.9), rows(0.875))
    assert not found.same
    assert (found.metric, found.difference) == ("accuracy", pytest.approx(0.025))


@pytest.mark.parametrize("order", [1, -1], ids=["stored last", "stored first"])
def test_the_greater_of_two_differences_is_named(compared, order):
    moved = {"accuracy": -0.025, "loss": 0.2}
    other = [replace(row, value=row.value + moved.get(row.metric, 0.0)) for row in rows(0.9)]
    (found,) = compared(rows(0.9)[::order], tuple(other[::order]))
    assert (found.metric, found.difference) == ("loss", pytest.approx(0.2))


def test_a_value_that_one_of_them_lacks_is_no_agreement(compared):
    (found,) = compared(rows(0.9), rows(0.9, split="validation"))
    assert (found.values, found.lost, found.same) == (1, 1, False)


@pytest.mark.parametrize(("device", "other"), [("cuda", True), ("cpu", False)])
def test_cells_of_a_gpu_were_on_another_machine_where_the_gpu_was_another(tmp_path, device, other):
    stores = []
    for name in ("H100", "A100"):
        store = Store.create(tmp_path / name)
        here = store.write_environment(replace(collect(threads=1), gpu=name))
        made = record(1, rows=rows(0.9), environment=here)
        store.append(replace(made, cell={**made.cell, "device": device}))
        stores.append(store)
    (found,) = reproduced(*stores)
    assert found.other_machine == other


@pytest.mark.parametrize(
    ("older", "newer", "other"),
    [
        ("AMD EPYC", "AMD EPYC (model 17)", False),
        ("AMD EPYC (model 1)", "AMD EPYC (model 17)", True),
        ("Intel Xeon", "AMD EPYC (model 17)", True),
    ],
)
def test_a_record_without_the_generation_of_its_processor_goes_by_the_name(
    tmp_path, older, newer, other
):
    stores = []
    for name, cpu in (("a", older), ("b", newer)):
        store = Store.create(tmp_path / name)
        here = store.write_environment(replace(collect(threads=1), cpu=cpu))
        store.append(record(1, rows=rows(0.9), environment=here))
        stores.append(store)
    (found,) = reproduced(*stores)
    assert found.other_machine == other


def test_cells_without_values_and_cells_of_one_run_alone_are_not_compared(tmp_path):
    first, second = (Store.create(tmp_path / name) for name in "ab")
    first.append(record(1))
    first.append(record(2))
    second.append(record(2, status="failed", detail="broke.", rows=()))
    second.append(record(3))
    assert reproduced(first, second) == []
