"""Slots with their heads: how fast a prompt is read and continued, and what decoding keeps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

from bench.api.selector import parse
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder, StoredOutcome
from reports.missing_values import dash
from reports.numbers import counted, plain, with_interval
from reports.prose import join
from reports.sections.timed_slots import (
    DECODE,
    HEADS,
    LAYERS,
    PEAK,
    PREFILL,
    STATE,
    STEP,
    STEP_PEAK,
    Line,
    Slots,
    batch_of,
    clocks,
    main_place,
    places_by_length,
    stacked,
    timed_slots,
)
from reports.speed_rows import USUAL_CODE, line_of

HOW_TO_READ = (
    "One attention layer with its projections, without the feed-forward network around it. "
    "Prefill reads a prompt of this many tokens at once. Decode answers one more token with "
    "everything before it in the cache. Tokens are counted over all rows of the batch. “To "
    "baseline” is the value over that of the baseline in the same round, with a 95% t interval "
    "over rounds. Each process times a baseline of its own. So a ratio may differ from the "
    "quotient of two rows, and times of two processes may differ by more than their intervals. A "
    "ratio of tokens per second above 1 means faster than the baseline. State is what one row "
    "keeps for the next token, measured from live tensors. “A token adds” is the growth of the "
    "state between this length and a neighboring one: a cache of all keys grows with every token, "
    "a recurrence or a full window does not. Peaks are the memory of tensors that come into being "
    "while the prompt is read, and during one step; of the cache only what a step copies counts. "
    "Heads are those that were timed: query heads; key heads × width of a key + width of a "
    "value."
)
OVER_LENGTHS = {
    DECODE: ("decoding", "Decoded tokens per second against {}, by keys in the cache"),
    PREFILL: ("prompts", "Tokens of a prompt per second against {}, by the length of the prompt"),
}
"""Key and title of a table over lengths, by what it shows."""
MOST_NAMED = 3
"""Variants that the sentence names."""

OF_A_STEP = Column(title="Peak, a step", unit="kB", numeric=True, better="lower")
COLUMNS = (
    Column(title="Variant"),
    Column(title="Prefill", unit="tokens/s", numeric=True, better="higher"),
    Column(title="To baseline", unit="ratio", numeric=True, better="higher"),
    Column(title="Decode", unit="tokens/s", numeric=True, better="higher"),
    Column(title="To baseline", unit="ratio", numeric=True, better="higher"),
    Column(title="A token adds", unit="bytes", numeric=True, better="lower"),
    Column(title="State of a layer", unit="kB", numeric=True, better="lower"),
    Column(title="To baseline", unit="ratio", numeric=True, better="lower"),
    Column(title="Peak, prefill", unit="MB", numeric=True, better="lower"),
    OF_A_STEP,
    Column(title="Heads", help="Query heads; key heads x width of a key + width of a value."),
)


def slots_section(folder: RunFolder) -> Section | None:
    """One table for each format, shape and length; None where no slot was timed."""
    slots = timed_slots(folder)
    order = sorted(slots.lines, key=lambda place: (*place[1:5], batch_of(place[0]), *place))
    if not order:
        return None
    tables = [_table(folder, f"slots-table-{n}", one, slots) for n, one in enumerate(order, 1)]
    blocks: tuple[Block, ...] = (Paragraph(HOW_TO_READ), *clocks(folder), *tables)
    return Section(key="slots", title="Prompts and decoding with a layer", blocks=blocks)


def main_slot_section(folder: RunFolder) -> Section | None:
    """The table of the longest cache with many variants, where nothing was trained."""
    slots = timed_slots(folder) if not folder.comparisons else Slots({})
    place = main_place(slots)
    if place is None:
        return None
    table = _table(folder, "main-slot", place, slots)
    blocks: tuple[Block, ...] = (
        Paragraph(HOW_TO_READ),
        *clocks(folder),
        table,
        *_over_lengths(folder, place, slots, DECODE),
        *_over_lengths(folder, place, slots, PREFILL),
    )
    title = "Prompts and decoding with a layer"
    return Section(key="main-slots", title=title, blocks=blocks, group="summary")


def _over_lengths(
    folder: RunFolder, chosen: tuple[Any, ...], slots: Slots, metric: str
) -> tuple[TableBlock, ...]:
    """Ratios of every variant at several lengths; nothing where there is one length."""
    shown = places_by_length(chosen, slots)
    if len(shown) < 2:
        return ()
    label, base = folder.catalog.label, folder.catalog.baseline
    names = {name for place in shown.values() for name in slots.lines[place] if name != base}
    found = {
        name: [slots.lines[place].get(name, {}).get(metric) for place in shown.values()]
        for name in names
    }

    def order(name: str) -> tuple[int, float, str]:
        """Those with the longest prompt first, by their ratio there."""
        known = [(-at, -line["ratio"]) for at, line in enumerate(found[name]) if line is not None]
        return *min(known, default=(1, 0.0)), name

    table = TableBlock(
        key=f"{OVER_LENGTHS[metric][0]}-over-lengths",
        title=OVER_LENGTHS[metric][1].format(label(base)),
        columns=(
            Column(title="Variant"),
            *(Column(title=f"{length:,.0f}", numeric=True, better="higher") for length in shown),
        ),
        rows=(
            # first, so that a table that is cut short has them
            _noise_row((slots.lines[place] for place in shown.values()), metric),
            _rounds_row((slots.lines[place] for place in shown.values()), metric),
            *(
                (TableCell(text=label(name)), *(_ratio(label(name), line) for line in found[name]))
                for name in sorted(names, key=order)
            ),
        ),
        notes=(
            "Ratios with 95% t intervals over rounds of one process; more than 1 is faster than "
            "the baseline. With three or four rounds such an interval may be narrow by chance. "
            "Variants that were timed at the longest length come first, in the "
            "order of their ratio there; then those that end one length earlier. A/A noise is "
            "how far the interval of the same code, timed twice, reaches away from 1, the "
            "largest of all processes. What lies within twice the noise of its column is not "
            "decided.",
        ),
    )
    return (table,)


def _noise_row(
    lines: Iterable[Mapping[str, Mapping[str, Line]]], metric: str
) -> tuple[TableCell, ...]:
    """The A/A noise of a measurement in each column."""
    found = [most_noise(one.values(), metric) for one in lines]
    cells = [
        TableCell(text=_percent(noise), sort=noise)
        if math.isfinite(noise)
        else dash("Nothing was timed twice here.")
        for noise in found
    ]
    return (TableCell(text="A/A noise"), *cells)


def _rounds_row(
    lines: Iterable[Mapping[str, Mapping[str, Line]]], metric: str
) -> tuple[TableCell, ...]:
    """In how many rounds the ratios of each column were measured."""
    found = [
        sorted({int(line[metric]["rounds"]) for line in one.values() if metric in line})
        for one in lines
    ]
    cells = [
        TableCell(text=NO_VALUE)
        if not counts
        else TableCell(
            text=str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}",
            sort=float(counts[0]),
        )
        for counts in found
    ]
    return (TableCell(text="Rounds"), *cells)


def slots_sentence(folder: RunFolder) -> str:
    """Who decodes faster than the baseline, with many keys and many variants, and with few keys.

    Verdicts are those on the time of a step. Empty where nothing was timed, or nothing is ranked.
    """
    slots = timed_slots(folder)
    place = main_place(slots)
    if place is None or not folder.catalog.ranks:
        return ""
    known, lines = folder.catalog, slots.lines[place]
    verdicts = _verdicts(known.baseline, lines)
    faster, slower = (_of(verdicts, one) for one in ("FAST", "SLOW"))
    rows = counted(batch_of(place[0]), "row")
    length = f"{place[-1]:,.0f} keys in the cache of one layer ({rows}, {place[2]} on {place[3]})"
    rest = len(verdicts) - len(faster) - len(slower)
    told = (
        f"With {length}, {len(faster)} of {counted(len(verdicts), 'variant')} "
        f"{'decodes' if len(verdicts) == 1 else 'decode'} faster than "
        f"{known.label(known.baseline)} by more than twice the A/A noise"
    )
    told += f" and {len(slower)} slower" if slower else ""
    told += f"; {rest} {'is' if rest == 1 else 'are'} not decided or the same." if rest else "."
    ratios = {name: lines[name][DECODE]["ratio"] for name in faster if DECODE in lines[name]}
    best = sorted(ratios, key=lambda name: -ratios[name])[:MOST_NAMED]
    if best:
        bounds = {name: lines[name][DECODE] for name in best}
        named = [
            f"{known.label(name)} ({plain(ratios[name])}×, interval {plain(one['ratio_low'])} to "
            f"{plain(one['ratio_high'])})"
            for name, one in bounds.items()
        ]
        told += f" Fastest: {join(named)}."
    return f"{told}{_with_fewest_keys(folder, place, slots)}{_noise_in_words(lines)}"


def _verdicts(baseline: str, lines: Mapping[str, Mapping[str, Line]]) -> Mapping[str, str]:
    """Verdict on the time of a step of each variant but the baseline."""
    steps = {name: found[STEP] for name, found in lines.items() if STEP in found}
    return {name: str(one["verdict"]) for name, one in steps.items() if name != baseline}


def _of(verdicts: Mapping[str, str], wanted: str) -> list[str]:
    return [name for name, verdict in verdicts.items() if verdict == wanted]


def _with_fewest_keys(folder: RunFolder, place: tuple[Any, ...], slots: Slots) -> str:
    """How many are faster at the shortest length; empty where there is one length."""
    length, shortest = min(places_by_length(place, slots).items())
    if length == place[-1]:
        return ""
    verdicts = _verdicts(folder.catalog.baseline, slots.lines[shortest])
    faster = [folder.catalog.label(name) for name in _of(verdicts, "FAST")]
    names = f" ({join(sorted(faster))})" if 0 < len(faster) <= MOST_NAMED else ""
    are = "is" if len(faster) == 1 else "are"
    return f" With {length:,.0f} keys {len(faster)} of {len(verdicts)} {are} faster{names}."


def _noise_in_words(lines: Mapping[str, Mapping[str, Line]]) -> str:
    noise = most_noise(lines.values(), DECODE)
    if not math.isfinite(noise):
        return ""
    return (
        " The A/A noise is how far the interval of the same code, timed twice, reaches away from "
        f"equal speed: up to {_percent(noise)}."
    )


def _table(folder: RunFolder, key: str, place: tuple[Any, ...], slots: Slots) -> TableBlock:
    shape, slot, dtype, device, impl, protocol, length = place
    options = parse(shape).options
    heads, width = options.get("heads", 2), options.get("width", 32)
    codes = {one[4] for one in slots.lines}
    code = "" if codes == {USUAL_CODE} else f", impl={impl}"
    alike = [one for one in slots.lines if (*one[:5], one[-1]) == (*place[:5], length)]
    how = f", {protocol}" if len(alike) > 1 else ""
    rows = counted(batch_of(shape), "row")
    where = "" if slot == "causal" else f", {slot} slot"
    base = folder.catalog.baseline
    variants = slots.lines[place]
    names = sorted(variants, key=lambda one: (one != base, *_slowest_last(variants[one])))
    refused = _refused(folder, place, variants)
    # runs of earlier versions measured no memory of a step
    known = any(STEP_PEAK in lines for lines in variants.values())
    shown = [known or column is not OF_A_STEP for column in COLUMNS]
    return TableBlock(
        key=key,
        title=f"{rows} of {length:,.0f} tokens, {heads} heads of width {width}, {dtype} on "
        f"{device}{code}{how}{where}",
        columns=tuple(compress(COLUMNS, shown)),
        rows=tuple(tuple(compress(_row(folder, one, place, slots), shown)) for one in names),
        notes=(*_noise(variants), *_stacks(folder, variants), *refused),
    )


def _stacks(folder: RunFolder, variants: Mapping[str, Mapping[str, Line]]) -> list[str]:
    """What stands for a layer where layers read each other."""
    found: dict[int, list[str]] = {}
    for name, lines in variants.items():
        if LAYERS in lines:
            found.setdefault(int(_median(lines[LAYERS])), []).append(folder.catalog.label(name))
    return stacked(found)


def _noise(variants: Mapping[str, Mapping[str, Line]]) -> list[str]:
    """How far apart the same code is under two names, at most; nothing where it is not known."""
    found = [
        f"{title} {_percent(most)}"
        for title, metric in (("prefill", PREFILL), ("decode", DECODE))
        if math.isfinite(most := most_noise(variants.values(), metric))
    ]
    return [f"A/A noise, the largest of all processes: {join(found)}."] if found else []


def most_noise(lines: Iterable[Mapping[str, Line]], metric: str) -> float:
    """The largest A/A noise of some variants, as a fraction; NaN where none is known."""
    known = [float(one[metric]["aa_half_width"]) for one in lines if metric in one]
    return max((noise for noise in known if math.isfinite(noise)), default=math.nan)


def _percent(noise: float) -> str:
    return f"{100 * noise:.2g}%"


def _median(line: Line | None) -> float:
    return math.nan if line is None else float(line["median"])


def _row(
    folder: RunFolder, variant: str, place: tuple[Any, ...], slots: Slots
) -> tuple[TableCell, ...]:
    name, lines = folder.catalog.label(variant), slots.lines[place][variant]
    base = variant == folder.catalog.baseline
    why = {one.metric: one.detail for one in _lost(folder, variant, place)}
    grown = slots.grows(place, variant)
    added = (
        TableCell(text=plain(grown, 0), sort=grown)
        if math.isfinite(grown)
        else dash(f"{name}: timed at one length only, so no growth of its state is known.")
    )
    return (
        TableCell(text=name, marks=("baseline",) if base else ()),
        _value(name, lines.get(PREFILL), why.get("forward_time_ms", "")),
        _ratio(name, lines.get(PREFILL)),
        _value(name, lines.get(DECODE), why.get(STEP, "")),
        _ratio(name, lines.get(DECODE)),
        added,
        _value(name, lines.get(STATE), why.get(STATE, ""), 1e3),
        _ratio(name, lines.get(STATE)),
        _value(name, lines.get(PEAK), why.get(PEAK, ""), 1e6),
        _value(name, lines.get(STEP_PEAK), why.get(STEP_PEAK, ""), 1e3),
        _heads(name, lines),
    )


def _value(name: str, line: Line | None, why: str, unit: float = 1.0) -> TableCell:
    if line is None:
        return dash(f"{name}: {why or 'it has no such value.'}")
    return TableCell(text=plain(float(line["median"]) / unit), sort=float(line["median"]))


def _ratio(name: str, line: Line | None) -> TableCell:
    if line is None or math.isnan(line["ratio"]):
        return dash(f"{name}: the baseline has no such value beside it.")
    text = with_interval(line["ratio"], line["ratio_low"], line["ratio_high"])
    return TableCell(text=text, sort=float(line["ratio"]))


def _heads(name: str, lines: Mapping[str, Line]) -> TableCell:
    if any(one not in lines for one in HEADS):
        return dash(f"{name}: the heads were not stored.")
    heads, shared, key, value = (int(lines[one]["median"]) for one in HEADS)
    return TableCell(text=f"{heads}; {shared} × {key} + {value}", sort=float(heads))


def _here(outcome: StoredOutcome, place: tuple[Any, ...]) -> bool:
    cell = outcome.cell
    length = parse(cell.task).options.get("length", 256)
    return cell.kind == "speed" and (*line_of(cell)[:-1], length) == place


def _lost(folder: RunFolder, variant: str, place: tuple[Any, ...]) -> Sequence[Any]:
    return [
        lost
        for one in folder.of_kind("speed")
        if one.cell.variant == variant and _here(one, place)
        for lost in one.lost
    ]


def _slowest_last(lines: Mapping[str, Line]) -> tuple[bool, float]:
    """Order of rows by how many tokens of a prompt are read in a second; last without a time."""
    speed = _median(lines.get(PREFILL))
    return math.isnan(speed), -speed


def _refused(
    folder: RunFolder, place: tuple[Any, ...], variants: Mapping[str, object]
) -> list[str]:
    """A sentence for each variant that has no line here."""
    said = {
        folder.catalog.label(one.cell.variant): one.record
        for one in folder.outcomes
        if one.cell.variant not in variants and _here(one, place) and one.record.status != "ok"
    }
    return [
        f"{name}: {record.status.replace('_', ' ')}, {record.detail}"
        for name, record in said.items()
    ]
