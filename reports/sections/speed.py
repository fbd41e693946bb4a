"""Speed and memory against length: verdicts, growth exponents, and the A/A control."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from bench.api.selector import parse
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.catalog import red_reasons
from reports.curves import DRAWN, speed_figures
from reports.figures import Legend
from reports.folder import RunFolder, StoredOutcome
from reports.missing_values import dash
from reports.numbers import between, plain, scaled, with_interval
from reports.sections.timed_slots import LAYERS, PEAK, SHOWN, clocks, is_slot, stacked
from reports.speed_rows import ONE_LINE, TIMED_TOGETHER, line_of, place_text
from results.row import Unmeasured
from results.statistics import STRAIGHT_WITHIN

HOW_TO_READ = (
    "Every round times the variant, the baseline, and the baseline once more as an A/A control. "
    "Ratios are to the baseline of the same round, with 95% t intervals. FAST and SLOW mean that "
    "the whole interval lies outside both 1% and twice the A/A noise. SAME means that a test of "
    "equivalence at 5% shows the ratio to lie within 2%, and that the A/A noise is no more. "
    "Everything else is AMBIGUOUS. Attention is timed beneath its heads, and with them where a "
    "shape says place=slot. So variants that differ elsewhere (decoder, output, loss) run the same "
    "code and share their times."
)
HOW_COST_GROWS = (
    "Growth k is that of cost = c · lengthᵏ over the lengths that were timed, and over no others. "
    "Its 95% interval is by the spread of the rounds at each length; what is counted has none. "
    "“Between lengths” is k from each length to the next one. Costs are “not straight” if k before "
    f"and after a length is shown to differ by more than {STRAIGHT_WITHIN:g}, and “straight” if it "
    "is shown to differ by less at every length; without such a mark neither is shown. Lengths are "
    "timed one after another. So a machine that is slower for a while moves one length as a whole, "
    "and looks like growth. No interval of k has that in it. It cancels in “beside the baseline”, "
    "which is k less that of the baseline, by ratios of the same round."
)


def speed_section(folder: RunFolder, legend: Legend) -> Section:
    """Figures, and one table for each shape and each cost that a figure shows."""
    title = "Speed and memory against length"
    if folder.speed_lines.empty:
        text = Paragraph("No speed was measured.")
        return Section(key="speed", title=title, blocks=(text,))
    blocks: list[Block] = [Paragraph(HOW_TO_READ), *clocks(folder), Paragraph(HOW_COST_GROWS)]
    if not folder.catalog.ranks:
        blocks.append(Paragraph("This preset ranks nothing, so it prints no verdict.", "warning"))
    blocks += speed_figures(folder, legend)
    blocks += _tables(folder, drawn=True)
    return Section(key="speed", title=title, blocks=tuple(blocks))


def other_costs_section(folder: RunFolder) -> Section | None:
    """Tables of what no figure shows: operations, parameters, state, times of other calls."""
    tables = tuple(_tables(folder, drawn=False))
    if not tables:
        return None
    return Section(key="other-costs", title="Other costs against length", blocks=tables)


def _tables(folder: RunFolder, *, drawn: bool) -> list[TableBlock]:
    """One for each shape and metric: those that a figure shows, or the others."""
    table = folder.speed_lines
    if table.empty:
        return []
    order = {metric: at for at, metric in enumerate(DRAWN)}
    table = table.assign(order=table["metric"].map(lambda metric: order.get(metric, len(order))))
    table = table[~(table["metric"].isin(SHOWN) & table["shape"].map(is_slot))]
    places = [*TIMED_TOGETHER, "order", "metric"]
    found = []
    for at, (place, group) in enumerate(table.groupby(places, sort=True), start=1):
        *timed, _, metric = map(str, place)
        if (metric in DRAWN) != drawn:
            continue
        where = place_text(timed, folder.speed_lines)
        found.append(_table(folder, f"speed-table-{at}", metric, where, group))
    return found


def _table(folder: RunFolder, key: str, metric: str, where: str, group: pd.DataFrame) -> TableBlock:
    known = folder.catalog.metric(metric)
    timed = metric.endswith("_time_ms")
    lines = [dict(line) for line in group.to_dict("records")]
    longest = max(float(line["length"]) for line in lines)
    rows = [_row(folder, line, longest, timed=timed) for line in lines]
    rows += [_empty_row(folder, *found, timed=timed) for found in _without(folder, metric, lines)]
    unit = "MB" if known.unit == "bytes" else known.unit
    columns = [
        Column(title="Variant"),
        Column(title="Length", unit="tokens", numeric=True),
        Column(title="Median", unit=unit, numeric=True, help="With 10% and 90% quantiles."),
        Column(title="Growth k", numeric=True, help="Over all lengths, with 95% interval."),
        Column(title="Between lengths", unit="k", numeric=True, help="From each to the next one."),
    ]
    if timed:
        columns += [
            Column(
                title="Beside the baseline",
                unit="k less that of the baseline",
                numeric=True,
                help="95% interval.",
            ),
            Column(title="To baseline", unit="ratio", numeric=True, help="95% t interval."),
            Column(title="A/A noise", unit="%", numeric=True),
            Column(title="Verdict"),
        ]
    return TableBlock(
        key=key,
        title=f"{known.title}: {where}",
        columns=(*columns, Column(title="Cells", numeric=True)),
        rows=tuple(rows),
        notes=_of_stacks(folder, group) if metric == PEAK else (),
        folded=metric not in DRAWN,
    )


def _of_stacks(folder: RunFolder, group: pd.DataFrame) -> tuple[str, ...]:
    """Whose numbers are those of several layers."""
    counts = folder.speed[folder.speed["metric"] == LAYERS]
    counts = counts[counts["shape"].isin(group["shape"]) & counts["variant"].isin(group["variant"])]
    found: dict[int, set[str]] = {}
    for variant, layers in zip(counts["variant"], counts["median"], strict=True):
        found.setdefault(int(layers), set()).add(folder.catalog.label(variant))
    return tuple(stacked(found))


def _row(
    folder: RunFolder, line: dict[Any, Any], longest: float, *, timed: bool
) -> tuple[TableCell, ...]:
    unit = 1e6 if str(line["metric"]).endswith("_bytes") else 1.0
    name = str(line["name"])
    variant = str(line["variant"])
    found = ["baseline"] if variant == folder.catalog.baseline else []
    found += ["control"] if folder.catalog.variant(variant).is_control else []
    length = float(line["length"])
    cells = folder.speed_cells.get(tuple(str(line[column]) for column in ONE_LINE), [])
    entries = [
        TableCell(text=name, marks=tuple(found)),
        TableCell(
            text=f"{length:g}",
            sort=length,
            help=_why_short(folder, line) if length < longest else "",
        ),
        TableCell(text=_median(line, unit), sort=line["median"]),
        _exponent(line),
        _pieces(line),
    ]
    if timed:
        entries += [_beside(line, folder.catalog.baseline)]
        entries += _verdict(line, folder.catalog.baseline)
    link = f"#{cells[0].anchor}" if cells else ""
    return (*entries, TableCell(text=str(len(cells)), sort=len(cells), href=link))


def _without(
    folder: RunFolder, metric: str, lines: Sequence[dict[Any, Any]]
) -> list[tuple[StoredOutcome, Unmeasured]]:
    """Variants that lost a metric at every length, each with the first reason."""
    there = {tuple(str(line[column]) for column in ONE_LINE) for line in lines}
    around = {place[:-1] for place in there}
    found: dict[tuple[str, ...], tuple[StoredOutcome, Unmeasured]] = {}
    for outcome in folder.of_kind("speed"):
        cell = outcome.cell
        place = line_of(cell)
        if place in there or place[:-1] not in around:
            continue
        if red_reasons(folder.certificates, cell.variant):
            continue
        for one in outcome.lost:
            if one.metric == metric:
                found.setdefault(place, (outcome, one))
    return list(found.values())


def _empty_row(
    folder: RunFolder, outcome: StoredOutcome, one: Unmeasured, *, timed: bool
) -> tuple[TableCell, ...]:
    """A dash with the reason in the place of the median."""
    name = folder.catalog.label(outcome.cell.variant)
    why = dash(f"{name}: {one.status.replace('_', ' ')}, {one.detail}")
    nothing = TableCell(text=NO_VALUE, sort="")
    length = parse(outcome.cell.task).options.get("length", "")
    empty = (nothing,) * (6 if timed else 2)
    link = TableCell(text="1", sort=1, href=f"#{outcome.anchor}")
    return (TableCell(text=name), TableCell(text=str(length)), why, *empty, link)


def _median(line: dict[Any, Any], unit: float) -> str:
    value, low, high = (line[key] / unit for key in ("median", "q10", "q90"))
    if int(line["rounds"]) == 1 or low == high:
        return scaled(value) if str(line["metric"]).endswith("_count") else plain(value)
    return between(value, low, high)


def _exponent(line: dict[Any, Any]) -> TableCell:
    if math.isnan(line["exponent"]):
        return dash(f"{line['name']}: timed at one length only, so no growth is known.")
    text = with_interval(line["exponent"], line["exponent_low"], line["exponent_high"])
    told = line["line"]
    return TableCell(
        text=text,
        sort=line["exponent"],
        marks=() if told == "not told" else (told,),
        help="Two lengths cannot show whether k is the same elsewhere."
        if len(line["pieces"]) == 1
        else "",
    )


def _pieces(line: dict[Any, Any]) -> TableCell:
    """Growth from each length to the next one."""
    pieces = line["pieces"]
    text = ", ".join(plain(one, 2) for one in pieces) or NO_VALUE
    return TableCell(text=text, sort=pieces[-1] if pieces else "")


def _beside(line: dict[Any, Any], baseline: str) -> TableCell:
    """Growth less that of the baseline."""
    if math.isnan(line["exponent"]):
        return TableCell(text=NO_VALUE, sort="")
    if line["variant"] == baseline:
        return TableCell(text="0", sort=0.0)
    if math.isnan(line["beside"]):
        return dash(f"{line['name']}: the baseline was not timed in the same rounds.")
    text = with_interval(line["beside"], line["beside_low"], line["beside_high"], signed=True)
    return TableCell(text=text, sort=line["beside"])


def _verdict(line: dict[Any, Any], baseline: str) -> list[TableCell]:
    noise = float(line["aa_half_width"])
    if math.isnan(line["ratio"]):
        ratio = dash(f"{line['name']}: the baseline was not timed in the same rounds.")
    else:
        text = with_interval(line["ratio"], line["ratio_low"], line["ratio_high"])
        ratio = TableCell(text=text, sort=line["ratio"])
    if math.isfinite(noise):
        control = TableCell(text=f"±{plain(100 * noise)}", sort=noise)
    else:
        control = dash(
            f"{line['name']}: too few rounds of the A/A control, or none that differ, so no claim."
        )
    verdict = str(line["verdict"]) or NO_VALUE
    if line["variant"] == baseline and line["verdict"]:
        verdict = "baseline"
    return [ratio, control, TableCell(text=verdict)]


def _why_short(folder: RunFolder, line: dict[Any, Any]) -> str:
    """Why the longest length of others is missing here."""
    here = tuple(str(line[column]) for column in ONE_LINE)
    mine = [
        outcome
        for outcome in folder.outcomes
        if outcome.cell.kind == "speed" and line_of(outcome.cell) == here
    ]
    reasons = {
        f"{outcome.record.status.replace('_', ' ')}: {outcome.record.detail}": None
        for outcome in mine
        if outcome.record.status != "ok"
    }
    lost = [one for outcome in mine for one in outcome.lost if one.metric == line["metric"]]
    reasons |= {f"{one.status.replace('_', ' ')}: {one.detail}": None for one in lost}
    why = " ".join(reasons) or "no longer length was asked for."
    return f"{line['name']} stops at length {line['length']:g}, {why}"
