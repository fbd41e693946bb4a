"""Why a field of a table is empty."""

from collections.abc import Iterable

from reports.blocks import NO_VALUE, TableCell, clean
from reports.folder import RunFolder, StoredOutcome
from reports.ranked_table.comparison import BESIDE_SCORES, Comparison
from reports.sections.provenance import STATUS_TEXT
from reports.speed_rows import USUAL_CODE

NO_SPREAD = (
    "The value is the same in every seed, so no interval is known. If no variant of "
    "the table has any spread, p is that of the sign test: 0.25 for three seeds, 0.0625 for five, "
    "before Holm's correction."
)
LEGEND = (
    f"{NO_VALUE} means that there is no value. The reasons are listed under “What is missing, and "
    "why”."
)


def dash(reason: str) -> TableCell:
    """An empty field; its reason is shown on hovering, and stands with the missing cells."""
    return TableCell(text=NO_VALUE, sort="", help=clean(reason))


def why_no_score(folder: RunFolder, comparison: Comparison, variant: str) -> str:
    """Explain why some or all cells of a variant have no score; empty if all have."""
    name = comparison.catalog.label(variant)
    cells = [folder.by_id[cell] for cell in comparison.cells.seeds(variant)]
    bad = [cell for cell in cells if cell.record.status != "ok"]
    sentences = [_some(name, "score", reason, part, cells) for reason, part in _by_reason(bad)]
    scored = comparison.scores.get(variant, {})
    silent = [c for c in cells if c.record.status == "ok" and c.cell.seed not in scored]
    if silent:
        sentences.append(f"{name} ran, but stored no test value of {comparison.metric}.")
    waiting = [] if scored or bad or silent else [f"{name} has not run yet."]
    return " ".join(sentences + waiting)


def why_no_speed(folder: RunFolder, comparison: Comparison, variant: str) -> str:
    """Explain why a cost that is taken from speed cells is missing."""
    name = comparison.catalog.label(variant)
    if variant in comparison.red:
        return f"{name}: no speed or memory is printed under a red certificate."
    slot, dtype, device, impl = comparison.place
    mine = [
        outcome
        for outcome in folder.outcomes
        if outcome.cell.kind == "speed"
        and outcome.cell.variant == variant
        and tuple(getattr(outcome.cell, column) for column in BESIDE_SCORES) == comparison.place
    ]
    bad = [outcome for outcome in mine if outcome.record.status != "ok"]
    if bad:
        return " ".join(_some(name, "speed value", *found, mine) for found in _by_reason(bad))
    lost = dict.fromkeys(
        f"{STATUS_TEXT[one.status]}: {one.detail}" for outcome in mine for one in outcome.lost
    )
    if lost:
        return f"{name}: some of its timings have no value, {' '.join(lost)}"
    if mine:
        return f"{name}: its speed cells stored no such value at this length."
    code = "" if impl == USUAL_CODE else f" with impl={impl}"
    return f"{name}: no speed cell was asked for in the slot {slot}, {dtype} on {device}{code}."


def _by_reason(bad: Iterable[StoredOutcome]) -> list[tuple[str, list[StoredOutcome]]]:
    groups: dict[str, list[StoredOutcome]] = {}
    for outcome in bad:
        reason = f"{STATUS_TEXT[outcome.record.status]}: {outcome.record.detail}"
        groups.setdefault(reason, []).append(outcome)
    return list(groups.items())


def _some(
    name: str, quantity: str, reason: str, part: list[StoredOutcome], whole: list[StoredOutcome]
) -> str:
    which = f"{len(part)} of {len(whole)} cells" if len(part) < len(whole) else "any cell"
    if len(part) < len(whole) and part[0].cell.kind == "quality":
        which += f" (seed {', '.join(str(outcome.cell.seed) for outcome in part)})"
    return f"{name}: no {quantity} from {which}, {reason}"
