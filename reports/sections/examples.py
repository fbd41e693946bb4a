"""Attention maps and sample outputs from the artifacts of the run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.blocks import AnsweredExample, Block, Paragraph, SampleBlock, Section, clean
from reports.figures import Legend
from reports.figures.maps import Map, attention_maps
from reports.folder import RunFolder, StoredOutcome

MAPS_PER_TASK = 2
MAPS_BESIDE_EXAMPLES = 1
"""Of a task whose own examples are drawn and stepped through anyway."""
MAPS_PER_FIGURE = 8
SAMPLES_PER_TASK = 3

Found = Mapping[str, tuple[StoredOutcome, Mapping[str, Any]]]


def artifacts_of_one_seed(folder: RunFolder, key: str) -> dict[str, Found]:
    """Artifacts with something under a key, by task and variant.

    Examples of a task may differ between seeds, so all are of one: the seed of which most variants
    left some, the lowest of several. Of a variant that ran in several networks they are of the one
    in which most of the task's cells ran.
    """
    stored: dict[str, dict[int, dict[str, tuple[StoredOutcome, Mapping[str, Any]]]]] = {}
    outcomes = folder.of_kind("quality")
    shared = Counter((outcome.cell.task, outcome.cell.backbone) for outcome in outcomes)

    def order(outcome: StoredOutcome) -> tuple[int, int]:
        return outcome.cell.seed, -shared[outcome.cell.task, outcome.cell.backbone]

    for outcome in sorted(outcomes, key=order):
        data = folder.artifact(outcome)
        if data.get(key):
            here = stored.setdefault(outcome.cell.task, {}).setdefault(outcome.cell.seed, {})
            here.setdefault(outcome.cell.variant, (outcome, data))
    return {task: max(seeds.values(), key=len) for task, seeds in sorted(stored.items())}


def attention_section(folder: RunFolder, legend: Legend, *, publish: bool) -> Section:
    """Maps of the variants on the same example, beside the gold alignment."""
    blocks: list[Block] = []
    for task, found in artifacts_of_one_seed(folder, key="attention").items():
        hidden = publish and not folder.catalog.is_open(task)
        if hidden:
            blocks.append(_ablated(folder, task, "tokens are replaced by their positions"))
        own = any(data.get("examples") for _, data in found.values())
        most = MAPS_BESIDE_EXAMPLES if own else MAPS_PER_TASK
        for at, title in enumerate(_titles(found)[:most], start=1):
            maps = _maps(folder, found, title, legend, hidden=hidden)
            name = f"{folder.catalog.task_label(task)}, example {at}" if hidden else title
            words = {
                "title": f"Attention maps: {name}",
                "description": "Weights of each variant, source across, output down.",
                "caption": _caption(folder.catalog.task_label(task), seed_of(found), maps),
            }
            if maps:
                blocks.append(attention_maps(f"attention-{len(blocks) + 1}", words, maps))
    if not blocks:
        blocks.append(Paragraph("No attention map was stored."))
    return Section(key="attention", title="Attention maps", blocks=tuple(blocks))


def _caption(task: str, seed: int, maps: Sequence[Map]) -> str:
    """How to read the maps; a task with a gold alignment has it as the first one."""
    told = "Black is 0, white is 1. Each row is one output token."
    if any(one.is_gold for one in maps):
        told += " Small squares are the gold alignment, which the first map shows alone."
    return f"{told} Task {task}, seed {seed}."


def seed_of(found: Found) -> int:
    """The seed that artifacts are of."""
    return next(iter(found.values()))[0].cell.seed


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
        drawn = _titled(found[variant][1], title)
        if drawn is not None:
            maps.append(_map(folder.catalog.label(variant), drawn, hidden=hidden))
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


def _titled(data: Mapping[str, Any], title: str) -> Mapping[str, Any] | None:
    """The first map of a title; older runs gave it to an example of a later batch, too."""
    named = (one for one in data.get("attention") or () if str(one.get("title", "")) == title)
    return next((one for one in named if one.get("weights")), None)


def _map(name: str, entry: Mapping[str, Any], *, hidden: bool) -> Map:
    gold = entry.get("gold")
    return Map(
        title=name,
        query=_tokens(entry.get("query") or (), hidden=hidden),
        source=_tokens(entry.get("source") or (), hidden=hidden),
        weights=as_matrix(entry["weights"]),
        gold=None if gold is None else as_matrix(gold),
    )


def _tokens(tokens: Iterable[object], *, hidden: bool) -> tuple[str, ...]:
    if hidden:
        return tuple(str(at) for at, _ in enumerate(tokens, start=1))
    return tuple(clean(token) for token in tokens)


def as_matrix(rows: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    """Stored weights as tuples of numbers."""
    return tuple(tuple(float(value) for value in row) for row in rows)


def samples_section(folder: RunFolder, legend: Legend, *, publish: bool) -> Section:
    """What the variants wrote on the same examples."""
    blocks: list[Block] = []
    for task, found in artifacts_of_one_seed(folder, key="samples").items():
        if publish and not folder.catalog.is_open(task):
            blocks.append(_ablated(folder, task, "sample outputs are left out"))
            continue
        blocks.append(
            SampleBlock(
                title=folder.catalog.task_label(task), samples=_samples(folder, found, legend)
            )
        )
    if not blocks:
        blocks.append(Paragraph("No sample output was stored."))
    return Section(key="samples", title="Sample outputs", blocks=tuple(blocks))


def _samples(folder: RunFolder, found: Found, legend: Legend) -> tuple[AnsweredExample, ...]:
    order = [name for name in legend.looks if name in found]
    order += sorted(set(found) - set(order))
    outputs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for variant in order:
        for entry in found[variant][1].get("samples") or ():
            example = clean(entry.get("source", "")), clean(entry.get("reference", ""))
            line = folder.catalog.label(variant), clean(entry.get("output", ""))
            outputs.setdefault(example, []).append(line)
    return tuple(
        AnsweredExample(source=source, reference=reference, outputs=tuple(lines[:MAPS_PER_FIGURE]))
        for (source, reference), lines in [*outputs.items()][:SAMPLES_PER_TASK]
    )


def _ablated(folder: RunFolder, task: str, what: str) -> Paragraph:
    return Paragraph(
        f"{folder.catalog.task_label(task)}: {what}, because the terms of its data are "
        f"{folder.catalog.license(task)}. The report in the run folder shows them.",
        "note",
    )
