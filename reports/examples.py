"""Attention maps and sample outputs from the artifacts of the run."""

from collections.abc import Iterable, Mapping
from typing import Any

from reports.blocks import Block, Sample, Samples, Section, Text, clean
from reports.figures import Legend
from reports.folder import Outcome, RunFolder
from reports.maps import Map, attention_maps

MAPS_PER_TASK = 2
MAPS_PER_FIGURE = 8
SAMPLES_PER_TASK = 3

Found = Mapping[str, tuple[Outcome, Mapping[str, Any]]]


def first_artifacts(folder: RunFolder, key: str = "") -> dict[str, Found]:
    """Artifacts by task and variant, of the first seed that has some, or some under a key."""
    found: dict[str, dict[str, tuple[Outcome, Mapping[str, Any]]]] = {}
    for outcome in sorted(folder.of_kind("quality"), key=lambda outcome: outcome.cell.seed):
        here = found.setdefault(outcome.cell.task, {})
        if outcome.cell.variant not in here:
            data = folder.artifact(outcome)
            if data.get(key) if key else data:
                here[outcome.cell.variant] = (outcome, data)
    return {task: here for task, here in sorted(found.items()) if here}


def first_map(folder: RunFolder, variant: str, task: str) -> Map | None:
    """The first map that a variant left on a task, as a person types it; None without one."""
    for selector, found in first_artifacts(folder).items():
        open_data = folder.catalog.is_open(selector)
        if folder.catalog.task_label(selector) == task and variant in found:
            for entry in found[variant][1].get("attention") or ():
                if entry.get("weights"):
                    return _map("", entry, hidden=not open_data)
    return None


def attention_section(folder: RunFolder, legend: Legend, *, publish: bool) -> Section:
    """Maps of the variants on the same example, beside the gold alignment."""
    blocks: list[Block] = []
    for task, found in first_artifacts(folder).items():
        hidden = publish and not folder.catalog.is_open(task)
        if hidden:
            blocks.append(_withheld(folder, task, "tokens are replaced by their positions"))
        for at, title in enumerate(_titles(found)[:MAPS_PER_TASK], start=1):
            maps = _maps(folder, found, title, legend, hidden=hidden)
            name = f"{folder.catalog.task_label(task)}, example {at}" if hidden else title
            words = {
                "title": f"Attention maps: {name}",
                "description": "Weights of each variant, source across, output down.",
                "caption": "Black is 0, white is 1. Each row is one output token. Small squares "
                "are the gold alignment, which the first map shows alone. "
                f"Task {folder.catalog.task_label(task)}, seed {_seeds(found)}.",
            }
            if maps:
                blocks.append(attention_maps(f"attention-{len(blocks) + 1}", words, maps))
    if not blocks:
        blocks.append(Text("No attention map was stored."))
    return Section(key="attention", title="Attention maps", blocks=tuple(blocks))


def _seeds(found: Found) -> str:
    return ", ".join(
        str(seed) for seed in sorted({outcome.cell.seed for outcome, _ in found.values()})
    )


def _titles(found: Found) -> list[str]:
    """Titles that most variants share come first."""
    count: dict[str, int] = {}
    for _, data in found.values():
        for entry in data.get("attention") or ():
            count[str(entry.get("title", ""))] = count.get(str(entry.get("title", "")), 0) + 1
    return sorted(count, key=lambda title: (-count[title], title))


def _maps(
    folder: RunFolder, found: Found, title: str, legend: Legend, *, hidden: bool
) -> list[Map]:
    order = [name for name in legend.looks if name in found]
    order += sorted(set(found) - set(order))
    maps: list[Map] = []
    for variant in order:
        for entry in found[variant][1].get("attention") or ():
            if str(entry.get("title", "")) == title and entry.get("weights"):
                maps.append(_map(folder.catalog.label(variant), entry, hidden=hidden))
    gold = next((one for one in maps if one.gold), None)
    shown = maps[: MAPS_PER_FIGURE - (gold is not None)]
    if gold is None or gold.gold is None:
        return shown
    first = Map(
        title="gold",
        query=gold.query,
        source=gold.source,
        weights=gold.gold,
        gold=gold.gold,
        is_gold=True,
    )
    return [first, *shown]


def _map(name: str, entry: Mapping[str, Any], *, hidden: bool) -> Map:
    gold = entry.get("gold")
    return Map(
        title=name,
        query=_tokens(entry.get("query") or (), hidden=hidden),
        source=_tokens(entry.get("source") or (), hidden=hidden),
        weights=_matrix(entry["weights"]),
        gold=None if gold is None else _matrix(gold),
    )


def _tokens(tokens: Iterable[object], *, hidden: bool) -> tuple[str, ...]:
    if hidden:
        return tuple(str(at) for at, _ in enumerate(tokens, start=1))
    return tuple(clean(token) for token in tokens)


def _matrix(rows: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in rows)


def samples_section(folder: RunFolder, legend: Legend, *, publish: bool) -> Section:
    """What the variants wrote on the same examples."""
    blocks: list[Block] = []
    for task, found in first_artifacts(folder).items():
        if not any(data.get("samples") for _, data in found.values()):
            continue
        if publish and not folder.catalog.is_open(task):
            blocks.append(_withheld(folder, task, "sample outputs are left out"))
            continue
        blocks.append(
            Samples(title=folder.catalog.task_label(task), samples=_samples(folder, found, legend))
        )
    if not blocks:
        blocks.append(Text("No sample output was stored."))
    return Section(key="samples", title="Sample outputs", blocks=tuple(blocks))


def _samples(folder: RunFolder, found: Found, legend: Legend) -> tuple[Sample, ...]:
    order = [name for name in legend.looks if name in found]
    order += sorted(set(found) - set(order))
    outputs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for variant in order:
        for entry in found[variant][1].get("samples") or ():
            example = clean(entry.get("source", "")), clean(entry.get("reference", ""))
            line = folder.catalog.label(variant), clean(entry.get("output", ""))
            outputs.setdefault(example, []).append(line)
    return tuple(
        Sample(source=source, reference=reference, outputs=tuple(lines[:MAPS_PER_FIGURE]))
        for (source, reference), lines in [*outputs.items()][:SAMPLES_PER_TASK]
    )


def _withheld(folder: RunFolder, task: str, what: str) -> Text:
    return Text(
        f"{folder.catalog.task_label(task)}: {what}, because the terms of its data are "
        f"{folder.catalog.license(task)}. The report in the run folder shows them.",
        "note",
    )
