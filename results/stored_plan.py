"""What `plan.json` says: the cells that were planned, and those that were not, with the reason."""

from typing import TypedDict

from results.json_values import Json, JsonObject, as_list, as_object, as_text


class StoredPlan(TypedDict):
    """What a run was to hold."""

    cells: list[str]
    """Labels."""
    left_out: list[dict[str, str]]
    """`label`, `reason` and `command` of each."""


def plan_with(held: Json, now: StoredPlan) -> StoredPlan:
    """A plan, and what plans of other commands in the same folder hold besides."""
    before = stored_plan(as_object(held))
    planned = {*now["cells"], *(one.get("label", "") for one in now["left_out"])}
    others = (one for one in before["left_out"] if one.get("label", "") not in planned)
    return StoredPlan(
        cells=[*now["cells"], *(label for label in before["cells"] if label not in planned)],
        left_out=[*now["left_out"], *others],
    )


def stored_plan(data: JsonObject) -> StoredPlan:
    """Read `plan.json`; a part that is missing is empty."""
    left_out = (as_object(one) for one in as_list(data.get("left_out")))
    return StoredPlan(
        cells=[as_text(label) for label in as_list(data.get("cells"))],
        left_out=[{key: as_text(value) for key, value in one.items()} for one in left_out],
    )
