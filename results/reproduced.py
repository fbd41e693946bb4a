"""Cells that were trained twice: whether their test values are the same."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.api.cell import cell_from_dict
from results.json_values import JsonObject, as_object, as_text
from results.pack import Pack
from results.row import Record
from results.store import Store

ValueKey = tuple[str, str, float | None, str]
"""Metric, axis, place on the axis, and non-neural baseline, of one test value."""


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A cell whose test values are stored twice."""

    label: str
    values: int
    """Test values that both have."""
    lost: int
    """Test values that one of them has alone."""
    metric: str
    """Where they differ most; empty where they are equal."""
    difference: float
    """The greatest difference, in the unit of that metric."""
    other_machine: bool
    """Whether processors, or GPUs, or versions of torch were different, where last bits differ."""

    @property
    def same(self) -> bool:
        """Whether all values are equal, bit by bit."""
        return not self.metric and not self.lost


def reproduced(before: Store | Pack, after: Store | Pack) -> list[Reproduced]:
    """Compare the trained cells that two runs share, in the order of their labels.

    Args:
        before: What is checked.
        after: What was trained again.
    """
    old, new = before.ledger().newest(), after.ledger().newest()
    was, now = before.environments(), after.environments()
    return sorted(
        (
            _compared(old[id_], new[id_], _differ(_machine(old[id_], was), _machine(new[id_], now)))
            for id_ in old.keys() & new.keys()
            if old[id_].cell["kind"] == "quality" and old[id_].status == new[id_].status == "ok"
        ),
        key=lambda one: one.label,
    )


def values_on_test(record: Record) -> dict[ValueKey, float]:
    """Test values of a trained cell; times are none of them."""
    return {
        (row.metric, row.axis, row.x, row.baseline): row.value
        for row in record.rows
        if row.split == "test"
    }


def _machine(record: Record, environments: Mapping[str, JsonObject]) -> tuple[str, str] | None:
    """What trained a cell, processor or GPU, and the version of torch; None where it is unknown."""
    facts = environments.get(record.environment)
    if facts is None:
        return None
    chip = "gpu" if str(record.cell["device"]).startswith("cuda") else "cpu"
    return as_text(facts.get(chip)), as_text(as_object(facts.get("packages")).get("torch"))


def _differ(one: tuple[str, str] | None, other: tuple[str, str] | None) -> bool:
    """Whether two machines are known to differ; older records have no generation of a processor."""
    if one is None or other is None:
        return one != other
    bare = " (" not in one[0] or " (" not in other[0]
    chips = [chip.partition(" (")[0] if bare else chip for chip, _ in (one, other)]
    return chips[0] != chips[1] or one[1] != other[1]


def _compared(old: Record, new: Record, other_machine: bool) -> Reproduced:
    was, now = values_on_test(old), values_on_test(new)
    both = was.keys() & now.keys()
    gaps = {place: abs(was[place] - now[place]) for place in both}
    worst = max(gaps, key=lambda place: gaps[place], default=None)
    differs = worst is not None and gaps[worst] > 0
    return Reproduced(
        label=cell_from_dict(dict(old.cell)).label,
        values=len(both),
        lost=len(was.keys() ^ now.keys()),
        metric=worst[0] if worst is not None and differs else "",
        difference=gaps[worst] if worst is not None and differs else 0.0,
        other_machine=other_machine,
    )
