"""What controls say of a comparison, in sentences: A/A control, uniform attention, and others."""

from collections.abc import Iterator

from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import is_about_longer_inputs, validation_inputs
from reports.ranked_table.verdicts import planned
from results.statistics import Ranked

MOST_NAMED = 6
"""Variants that a sentence names; the rest are counted."""


def is_control(comparison: Comparison, line: Ranked) -> bool:
    """Whether a line is there to read the others by."""
    return comparison.catalog.variant(line.variant).is_control


def controls(comparison: Comparison) -> list[str]:
    """What the controls say: the A/A control must be tied with the baseline, others must not."""
    label, known = comparison.catalog.label, comparison.catalog.variant
    told = [*_about_aa_controls(comparison)]
    level = [
        line.variant
        for line in comparison.ranking
        if is_control(comparison, line)
        and not known(line.variant).aa_control
        and not line.differs_from_best
        and not comparison.is_worse_by_plan(line.variant)
    ]
    first = {line.variant for line in comparison.leading}
    turned = comparison.turned(comparison.ranking[0].variant)
    groups: dict[str, list[str]] = {}
    for name in level:
        place = "among the best" if name in first else "n.s. against the best"
        place = "better than the best mean on common seeds" if name in turned else place
        groups.setdefault(f"{place}{_beaten(comparison, name)}", []).append(label(name))
    for said, lazy in groups.items():
        many = len(lazy) > 1
        subject = f"The control{'s' if many else ''} {join(lazy)} {'are' if many else 'is'}"
        told.append(f"{subject} {said.format(join(lazy))}.")
    return told


def _about_aa_controls(comparison: Comparison) -> Iterator[str]:
    """Whether the baseline differs from itself, by the test of the two on common seeds."""
    for name, line in comparison.compared.items():
        test = line.against_baseline
        if not comparison.catalog.variant(name).aa_control or test is None:
            continue
        told = f"{comparison.catalog.label(name)} is the baseline under another name"
        if test.outcome in ("better", "worse"):
            yield (
                f"{told}, and yet significantly {test.outcome} than it. So two trainings of the "
                "same network differ here, and a significant difference in this table may be "
                "chance."
            )
        else:
            yield f"{told}. The two are tied, as they must be."


def _beaten(comparison: Comparison, control: str) -> str:
    """What planned tests say of a control, or scores where they say nothing."""
    fair = [name for name in comparison.contenders if name in comparison.compared]
    tests = {name: planned(comparison, name, control) for name in fair}
    better = [name for name, test in tests.items() if test and test.outcome == "better"]
    if better:
        some = join([comparison.catalog.label(name) for name in better], MOST_NAMED)
        are = "is" if len(better) == 1 else "are"
        return f", though by the planned tests {some} {are} better than {{}}"
    above = comparison.above_every_seed(control)
    if not above:
        return ". These seeds and this budget do not show what attention is for here"
    seeds = comparison.most_seeds
    if len(above) == len(fair):
        return (
            ". Every seed of every variant is better than every seed of {} on the test. With "
            f"{seeds} seeds this is not significant after correction"
        )
    some = join([comparison.catalog.label(name) for name in above])
    return (
        f". Every seed of {some} is better than every seed of {{}} on the test. With {seeds} seeds "
        "this is not significant after correction"
    )


def learned(comparison: Comparison) -> str:
    """Say who is no better than uniform attention, in every seed or in some."""
    if comparison.uniform_baseline is None:
        return ""
    label = comparison.catalog.label
    uniform_baseline = label(comparison.uniform_baseline)
    lost = {
        label(line.variant): comparison.lost_seeds(line.variant)
        for line in comparison.whole.ranking
        if not is_control(comparison, line)
    }
    never = [name for name, (bad, seeds) in lost.items() if seeds and bad == seeds]
    partly = [f"{name} ({bad} of {n})" for name, (bad, n) in lost.items() if 0 < bad < n]
    said = []
    longer = is_about_longer_inputs(comparison)
    where = f"{uniform_baseline} on {validation_inputs(comparison)}"
    if never and longer:
        said.append(f"In no seed above {where}: {join(never)}.")
    elif never:
        said.append(
            f"Did not train (no seed above {where}), which is no evidence about a mechanism: "
            f"{join(never)}."
        )
    if partly:
        said.append(f"Some seeds are not above {where}: {join(partly)}.")
    return " ".join(said) or f"Every seed of every variant is above {where}."
