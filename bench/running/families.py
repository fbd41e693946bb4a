"""Tasks by the use of attention that they show."""

from bench.api import registry
from bench.api.registry import Registration
from bench.api.selector import Selector
from bench.api.task import TASKS, Task


def compared_tasks(sizes: str) -> list[list[Selector]]:
    """Tasks that propose a comparison: the first member of each family, then the second, and so on.

    Real data come before generated ones; families without real data have all members first.

    Args:
        sizes: Preset whose sizes are used; tasks without a size for it are left out.
    """
    groups: list[list[Selector]] = []
    for entries in tasks_by_family().values():
        members = [registered for registered in entries if registered.target.compared_at(sizes)]
        drawn = all(registered.target.is_generated() for registered in members)
        for place, registered in enumerate(members):
            rank = 0 if drawn else place
            groups += [[]] * (rank + 1 - len(groups))
            groups[rank] = [*groups[rank], Selector(registered.name)]
    return groups


def tasks_by_family() -> dict[str, list[Registration[type[Task]]]]:
    """Tasks of each family by name, real data before generated ones; those without one last."""
    families: dict[str, list[Registration[type[Task]]]] = {}
    for registered in registry.registrations(TASKS).values():
        families.setdefault(registered.target.family, []).append(registered)
    return {
        family: sorted(families[family], key=lambda e: (e.target.is_generated(), e.name))
        for family in sorted(families, key=lambda name: (not name, name))
    }
