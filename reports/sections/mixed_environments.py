"""Cells of one comparison that ran on several machines, versions of torch or commits."""

from collections.abc import Callable, Mapping, Sequence

from reports.folder import RunFolder
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from results.environment import commit_in_words
from results.json_values import JsonObject, as_object

LONGEST_LIST = 4
"""Variants that a note names; more are counted."""


def _torch(facts: JsonObject, device: str) -> str:
    return str(as_object(facts.get("packages")).get("torch") or "")


def _commit(facts: JsonObject, device: str) -> str:
    return commit_in_words(facts)


def _processor(facts: JsonObject, device: str) -> str:
    return str(facts.get("gpu" if device.startswith("cuda") else "cpu") or "")


FACTS: Mapping[str, Callable[[JsonObject, str], str]] = {
    "torch": _torch,
    "commit": _commit,
    "processor": _processor,
}
"""What two cells should share before they are compared."""


SAME_CODE = "Each variant has the same code in all its seeds."
"""By the hash of all code that its cells can reach; a commit may change anything else."""


def mixed_environments(folder: RunFolder, comparison: Comparison) -> list[str]:
    """A sentence for each fact that is not the same in all cells of a comparison."""
    told = []
    for title in FACTS:
        found = _values(folder, comparison, title)
        if len(found) > 1:
            same = f" {SAME_CODE}" if title == "commit" and _one_code(comparison) else ""
            told.append(f"{_sentence(comparison, title, found)}{same}")
    return told


def places_of(folder: RunFolder, comparison: Comparison) -> str:
    """The mark beside the title of a comparison whose cells ran on several processors."""
    count = len(_values(folder, comparison, "processor"))
    return f" ({'two' if count == 2 else count} processors)" if count > 1 else ""


def several_commits(folder: RunFolder, comparisons: Sequence[Comparison]) -> list[str]:
    """Say that summaries of comparisons are of several commits; nothing where they are of one."""
    found = [set(_values(folder, one, "commit")) for one in comparisons]
    every = sorted(set().union(*found))
    if len(every) < 2:
        return []
    mixed = sum(len(one) > 1 for one in found)
    alone = f"In all but {mixed} of them" if mixed else "In each of them"
    return [
        f"Cells of these comparisons were made by {len(every)} commits: {join(every)}. {alone} all "
        "cells are of one commit. Counts and summaries over comparisons are of all commits."
    ]


def shared_facts(folder: RunFolder, comparison: Comparison) -> list[str]:
    """Commit, torch and processor, each where it is known and the same in all cells."""
    found = {title: _values(folder, comparison, title) for title in FACTS}
    return [
        f"{title} {next(iter(one))}"
        for title, one in found.items()
        if len(one) == 1 and _unknown(title) not in one
    ]


def _unknown(title: str) -> str:
    """What stands for a fact that no environment tells."""
    return f"an unknown {title}"


def _values(
    folder: RunFolder, comparison: Comparison, title: str
) -> dict[str, set[tuple[str, int]]]:
    """Each value of a fact, with the variants and seeds of the cells that have it."""
    cells = comparison.frame.drop_duplicates("cell")
    columns = (cells[name] for name in ("variant", "seed", "device", "environment"))
    found: dict[str, set[tuple[str, int]]] = {}
    for variant, seed, device, name in zip(*columns, strict=True):
        value = FACTS[title](folder.environments.get(str(name), {}), str(device))
        found.setdefault(value or _unknown(title), set()).add((str(variant), int(seed)))
    return found


def _one_code(comparison: Comparison) -> bool:
    """Whether the stored hash of the code is known and is one for all seeds of each variant."""
    cells = comparison.frame.drop_duplicates("cell")
    known = bool((cells["code"] != "").all())
    return known and bool((cells.groupby("variant")["code"].nunique() == 1).all())


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
