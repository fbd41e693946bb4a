"""A part of a run: the cells of some of its tasks, read like a whole run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.api.cell import parse_label
from bench.api.errors import InvalidSelector, UnknownName
from bench.api.selector import parse
from results.catalog import CATALOG
from results.json_values import Json, JsonObject, as_object, as_text
from results.ledger import Ledger
from results.pack import Pack
from results.row import Record
from results.store import Store
from results.stored_plan import PLAN, plan_to_json, stored_plan


class Part:
    """The cells of some tasks; timings of attention are of no task, and stay outside."""

    def __init__(self, whole: Store | Pack, tasks: Sequence[str]) -> None:
        """Choose the cells.

        Args:
            whole: A run folder or a pack; it is only read.
            tasks: Names of tasks.

        Raises:
            UnknownName: No cell of the run is of such a task.
        """
        self.whole = whole
        self.folder = whole.folder
        self.tasks = frozenset(tasks)
        found = whole.ledger()
        named = [(_task_of(one.cell), one) for one in found.records]
        known = {name for name, _ in named if name}
        for name in tasks:
            if name not in known:
                raise UnknownName.among("task of this run", name, sorted(known))
        chosen = tuple(one for name, one in named if name in self.tasks)
        self._ledger = replace(found, records=chosen)

    def ledger(self) -> Ledger:
        """Every record of the chosen tasks."""
        return self._ledger

    def records(self) -> list[Record]:
        """The newest record of every chosen cell."""
        return [*self.ledger().newest().values()]

    def environments(self) -> dict[str, JsonObject]:
        """Facts of the machines that the chosen cells ran on, by environment id."""
        used = {record.environment for record in self.records()}
        return {name: facts for name, facts in self.whole.environments().items() if name in used}

    def read_json(self, name: str) -> dict[str, Json] | None:
        """What the run says beside its rows; of catalog and plan the chosen cells alone."""
        found = self.whole.read_json(name)
        if name == CATALOG and isinstance(found, dict):
            return self._catalog(found)
        if name == PLAN and isinstance(found, dict):
            plan = stored_plan(found)
            left_out = [one for one in plan["left_out"] if self._plans(one.get("label", ""))]
            cells = {i: label for i, label in plan["cells"].items() if self._plans(label)}
            return plan_to_json({**plan, "cells": cells, "left_out": left_out})
        return found

    def read_artifact(self, cell_id: str) -> JsonObject | None:
        """Attention maps and samples of a cell."""
        return self.whole.read_artifact(cell_id)

    def _catalog(self, names: JsonObject) -> dict[str, Json]:
        """The catalog without variants and tasks that no chosen cell is of."""
        cells = [record.cell for record in self.records()]
        used = {
            "variants": {str(cell["variant"]) for cell in cells} | {as_text(names.get("baseline"))},
            "tasks": {str(cell["task"]) for cell in cells},
        }
        kept: dict[str, Json] = {
            key: {
                name: facts for name, facts in as_object(names.get(key)).items() if name in chosen
            }
            for key, chosen in used.items()
        }
        return {**names, **kept}

    def _plans(self, label: str) -> bool:
        try:
            return _task_of(vars(parse_label(label))) in self.tasks
        except InvalidSelector:
            return False  # as a later version writes it


def _task_of(cell: Mapping[str, object]) -> str:
    """Name of the task; empty for a timing, whose `task` is a shape."""
    return "" if cell.get("kind") == "speed" else parse(str(cell.get("task"))).name
