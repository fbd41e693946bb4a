"""What each comparison holds equal: parameters, FLOPs, training and tuning of its entries."""

import math
from collections import Counter
from collections.abc import Mapping

from bench.api.calibration import competitor
from bench.api.errors import InvalidSelector
from bench.api.selector import parse
from reports.blocks import Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.missing_values import dash
from reports.numbers import counted, percent, scaled
from reports.ranked_table.comparison import Comparison

EQUAL = 0.02
"""Sizes that differ by a smaller share are called equal."""
FLOPS = "forward_flops_counted_count"
NETWORK_FLOPS = "network_forward_flops_count"
HOW_TO_READ = (
    "A better score of a larger network, or of one that was tuned longer, says little about its "
    "attention. Sizes are shares of the baseline's. Parameters are those of the whole network, and "
    "so are FLOPs: matrix products of one forward pass over the first batch of training. FLOPs of "
    "attention are those of one call of the attention alone, at the length of the ranked table. "
    "Trials are the learning rates that calibration tried of a variant before "
    "the run, on validation and on seeds that no run uses, and the settings that a study tried. A "
    "variant without trials has the rate that was chosen for the baseline, or that of the task. "
    "`bench run --match params` gives networks equal numbers of parameters, `--match flops` equal "
    "FLOPs and `--match time` equal times of a step."
)


def parity_section(folder: RunFolder) -> Section | None:
    """A paragraph and one table for each comparison that holds the baseline."""
    held = [one for one in folder.comparisons if folder.catalog.baseline in one.variants]
    held = [one for one in held if len(one.variants) > 1]
    if not held:
        return None
    tables = [_table(folder, one, f"parity-{at}") for at, one in enumerate(held, start=1)]
    blocks: tuple[Block, ...] = (
        Paragraph(HOW_TO_READ),
        Paragraph(_told(folder, held)),
        *tables,
    )
    return Section(key="parity", title="What was equal", blocks=blocks)


def _told(folder: RunFolder, held: list[Comparison]) -> str:
    """In how many comparisons all networks are of one size, and whether all were tuned alike."""
    checks = ", pipeline checks among them" if any(one.pipeline_check for one in held) else ""
    whole = f"{counted(len(held), 'comparison')} of the baseline with another variant{checks}"
    text = f"In {_equal(held, 'parameters_count')} of {whole}, all networks have the parameters of "
    text += "the baseline's within 2%"
    known = [
        one for one in held if math.isfinite(_share(one, folder.catalog.baseline, NETWORK_FLOPS))
    ]
    if known:
        of = "" if len(known) == len(held) else f" of {len(known)}"
        text += f", and in {_equal(known, NETWORK_FLOPS)}{of} its FLOPs"
    return f"{text}. {_tuning(folder, held)}"


def _equal(held: list[Comparison], metric: str) -> int:
    """In how many comparisons all networks are of one size."""
    sizes = [
        [_share(one, name, metric) for name in one.variants if name in one.scores] for one in held
    ]
    known = ([share for share in shares if math.isfinite(share)] for shares in sizes)
    # the baseline beside itself says nothing, and neither does one that has no size
    return sum(len(shares) > 1 and all(map(_near, shares)) for shares in known)


def _tuning(folder: RunFolder, held: list[Comparison]) -> str:
    """What tuning there was, and whether all had the same; that is not always stored."""
    told = []
    unknown = sum(folder.catalog.task(one.task).tuned is None for one in held)
    if unknown:
        where = "" if unknown == len(held) else f" of {counted(unknown, 'comparison')}"
        told.append(
            f"How many learning rates calibration tried{where} is not stored in this run; where a "
            "task was calibrated, they are in `calibration/` beside its code."
        )
    known = [one for one in held if folder.catalog.task(one.task).tuned is not None]
    tuned = [one for one in known if any(_rates(one).values())]
    if tuned:
        counts = sorted({count for one in tuned for count in _rates(one).values() if count})
        without = sum(not count for one in tuned for count in _rates(one).values())
        rates = counted(counts[-1], "learning rate")
        least = "" if len(counts) == 1 else f"{counts[0]} to "
        told.append(
            f"In {counted(len(tuned), 'comparison')} calibration tried {least}{rates} of each "
            f"variant but {without}, which have that of the baseline."
            if without
            else f"In {counted(len(tuned), 'comparison')} calibration tried {least}{rates} of each "
            "variant."
        )
    uneven = sum(len({*_trials(folder, one).values()}) > 1 for one in held)
    if uneven:
        told.append(f"Numbers of trials differ in {counted(uneven, 'comparison')}.")
    elif not unknown:
        told.append("In no comparison was a variant tuned with more trials than another.")
    return " ".join(told)


def _table(folder: RunFolder, comparison: Comparison, key: str) -> TableBlock:
    base, trials = folder.catalog.baseline, _trials(folder, comparison)
    names = sorted(comparison.variants, key=lambda name: (name != base, name))
    return TableBlock(
        key=key,
        title=f"{comparison.title}: sizes and tuning beside {comparison.catalog.label(base)}",
        columns=(
            Column(title="Variant"),
            Column(title="Parameters", numeric=True),
            Column(title="To baseline", unit="%", numeric=True),
            Column(title="FLOPs to baseline", unit="%", numeric=True),
            Column(title="FLOPs of attention to baseline", unit="%", numeric=True),
            Column(title="Training"),
            Column(title="Trials", numeric=True),
        ),
        rows=tuple(_row(folder, comparison, name, trials) for name in names),
        folded=True,
    )


def _row(
    folder: RunFolder, comparison: Comparison, name: str, trials: Mapping[str, int]
) -> tuple[TableCell, ...]:
    label = comparison.catalog.label(name)
    count = comparison.cells.trained(name, "parameters_count").estimate
    why = f"{label}: it has no trained network here."
    size = TableCell(text=scaled(count), sort=count) if math.isfinite(count) else dash(why)
    base = folder.catalog.baseline
    same = comparison.cells.setting(name, "protocol") == comparison.cells.setting(base, "protocol")
    marks = ("baseline",) if name == base else ()
    return (
        TableCell(text=label, marks=marks),
        size,
        _percent(_share(comparison, name, "parameters_count"), why),
        _percent(
            _share(comparison, name, NETWORK_FLOPS),
            f"{label}: FLOPs of its network are not stored in this run.",
        ),
        _percent(
            _flops_share(folder, comparison, name),
            f"{label}: it was not timed beside the baseline at that length.",
        ),
        TableCell(text="the same" if same else comparison.cells.setting(name, "protocol")),
        _tried(folder, comparison, trials[name]),
    )


def _tried(folder: RunFolder, comparison: Comparison, count: int) -> TableCell:
    """Number of trials; what calibration did is not in every run."""
    if folder.catalog.task(comparison.task).tuned is not None:
        return TableCell(text=str(count), sort=count)
    return TableCell(text=f"{count} and not stored" if count else "not stored", sort=count)


def _percent(share: float, why: str) -> TableCell:
    return TableCell(text=percent(share), sort=share) if math.isfinite(share) else dash(why)


def _share(comparison: Comparison, name: str, metric: str) -> float:
    """A size over that of the baseline; NaN where one is unknown."""
    return comparison.cells.share(name, comparison.catalog.baseline, metric)


def _flops_share(folder: RunFolder, comparison: Comparison, name: str) -> float:
    found = [
        folder.costs.get((*comparison.place, one, FLOPS))
        for one in (name, comparison.catalog.baseline)
    ]
    mine, base = (math.nan if one is None else one[0].estimate for one in found)
    return mine / base if base else math.nan


def _trials(folder: RunFolder, comparison: Comparison) -> dict[str, int]:
    """Settings tried of each variant on the task, whatever their options: by a study, and rates."""
    tried = {
        (outcome.cell.variant, outcome.cell.backbone, outcome.cell.protocol): None
        for outcome in folder.of_kind("trial")
        if outcome.cell.task == comparison.task
    }
    count = Counter(_name(variant) for variant, _, _ in tried)
    rates = _rates(comparison)
    return {name: count[_name(name)] + rates[name] for name in comparison.variants}


def _rates(comparison: Comparison) -> dict[str, int]:
    """Learning rates that calibration tried of each variant in its place."""
    tuned = comparison.catalog.task(comparison.task).tuned or {}
    backbones = {name: comparison.cells.setting(name, "backbone") for name in comparison.variants}
    return {
        name: tuned.get(competitor(name, backbone, comparison.place[0]), 0)
        for name, backbone in backbones.items()
    }


def _name(variant: str) -> str:
    try:
        return parse(variant).name
    except InvalidSelector:  # of a run that another version stored
        return variant


def _near(share: float) -> bool:
    return abs(share - 1) <= EQUAL
