"""Cells of one comparison that ran on several machines, versions of torch or commits."""

from collections.abc import Callable, Mapping

from reports.folder import RunFolder
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from results.json_values import JsonObject, as_object

LONGEST_LIST = 4
"""Variants that a note names; more are counted."""


def _torch(facts: JsonObject, device: str) -> str:
    return str(as_object(facts.get("packages")).get("torch") or "")


def _commit(facts: JsonObject, device: str) -> str:
    changed = " with uncommitted changes" if facts.get("git_dirty") else ""
    return f"{str(facts.get('git_revision') or '')[:10]}{changed}".strip()


def _processor(facts: JsonObject, device: str) -> str:
    return str(facts.get("gpu" if device.startswith("cuda") else "cpu") or "")


FACTS: Mapping[str, Callable[[JsonObject, str], str]] = {
    "torch": _torch,
    "commit": _commit,
    "processor": _processor,
}
"""What two cells should share before they are compared."""


def mixed_environments(folder: RunFolder, comparison: Comparison) -> list[str]:
    """A sentence for each fact that is not the same in all cells of a comparison."""
    cells = comparison.frame.drop_duplicates("cell")
    columns = (cells[name] for name in ("variant", "seed", "device", "environment"))
    told, places = [], list(zip(*columns, strict=True))
    for title, fact in FACTS.items():
        found: dict[str, set[tuple[str, int]]] = {}
        for variant, seed, device, name in places:
            value = fact(folder.environments.get(str(name), {}), str(device))
            found.setdefault(value or f"an unknown {title}", set()).add((str(variant), int(seed)))
        if len(found) > 1:
            told.append(_sentence(comparison, title, found))
    return told


def _sentence(comparison: Comparison, title: str, found: Mapping[str, set[tuple[str, int]]]) -> str:
    """Say which values there are, and which variants have each; which seeds if all have both."""
    variants = {value: {name for name, _ in cells} for value, cells in found.items()}
    alike = len({frozenset(names) for names in variants.values()}) == 1
    shown = []
    for value, cells in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        seeds = sorted({seed for _, seed in cells})
        labels = sorted(comparison.catalog.label(name) for name in variants[value])
        named = join(labels) if len(labels) <= LONGEST_LIST else f"{len(labels)} variants"
        which = f"{'seeds' if len(seeds) > 1 else 'seed'} {join([*map(str, seeds)])}"
        shown.append(f"{value} ({which if alike else named})")
    return f"Cells of this comparison differ in {title}: {', '.join(shown)}."
