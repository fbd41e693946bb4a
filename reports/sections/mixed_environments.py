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
    told = []
    for title, fact in FACTS.items():
        variants: dict[str, set[str]] = {}
        for variant, device, name in zip(
            cells["variant"], cells["device"], cells["environment"], strict=True
        ):
            value = fact(folder.environments.get(str(name), {}), str(device))
            variants.setdefault(value or f"an unknown {title}", set()).add(str(variant))
        if len(variants) > 1:
            told.append(_sentence(comparison, title, variants))
    return told


def _sentence(comparison: Comparison, title: str, variants: Mapping[str, set[str]]) -> str:
    """Say which values there are, and which variants have each."""
    shown = []
    for value, names in sorted(variants.items(), key=lambda item: (-len(item[1]), item[0])):
        labels = sorted(comparison.catalog.label(name) for name in names)
        few = join(labels) if len(labels) <= LONGEST_LIST else f"{len(labels)} variants"
        shown.append(f"{value} ({few})")
    return f"Cells of this comparison differ in {title}: {', '.join(shown)}."
