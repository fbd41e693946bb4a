"""The table of what to choose: a use of attention, its test, a variant, the numbers, the cost."""

import math
from collections.abc import Sequence

from bench.api.headline import is_made
from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.catalog import capitalized, uncapitalized
from reports.evidence import equal_by_rules, evidence_of, evidence_text, stands_for
from reports.folder import RunFolder
from reports.needs import Need, divided, needs
from reports.numbers import counted, percent, plain, probability
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.training_cost import ABOUT_THE_SAME, CostNoise, cost_text, relative_cost

MOST_ROWS = 12
EVERY = "A choice for each of the other uses"
"""Title of the table with the rows that the first one has no room for."""
OTHER_TASKS = "on other tasks"
NONE_YET = "no choice"
"""In the place of a variant where none is above uniform attention."""
SEEDS_HELP = (
    "One number where both have the same seeds. Otherwise both numbers, and the difference on the "
    "seeds that they share, which are tested."
)
COST_HELP = (
    "Time of a training step (CPU time; on a GPU wall time) over that of the baseline, with its "
    "95% interval over seeds. "
    "Where the two ran on different processors, it is that of other tasks of the use, and the cell "
    "says “on other tasks”."
)
TEST_HELP = (
    "The test with most variants on which the choice is better than the baseline, or else tied "
    "with the best. In brackets: of how many tests of the use it is one, and how many variants it "
    "compares."
)
AGAINST_HELP = (
    "Score of the baseline; of uniform attention where nothing is significantly better than the "
    "baseline."
)
P_HELP = "Of no difference to what is compared with, after Holm's correction."
NON_NEURAL_HELP = "Score of the best non-neural baseline, such as counts."
TIED_HELP = (
    "Variants of the same rank that are significantly above uniform attention, as the choice is. "
    "Others of that rank are counted apart."
)
VARIANT_HELP = (
    "“By rule n”: the last rule that was needed to tell it from the other candidates. Where its "
    "network has over 10% more or fewer parameters than that of the baseline, it says so."
)
OTHER_SIZE = 0.1
"""Share of the parameters by which a choice may differ from the baseline before it says so."""
FEW_PARAMETERS = 100
"""Below so many parameters a share says little, and both counts are printed."""
COLUMNS = (
    Column(title="Use"),
    Column(title="Test", help=TEST_HELP),
    Column(title="Variant", help=VARIANT_HELP),
    Column(title="Score", help="Mean over seeds with its 95% interval."),
    Column(title="Compared with", help=AGAINST_HELP),
    Column(title="p", numeric=True, help=P_HELP),
    Column(title="Seeds", help=SEEDS_HELP),
    Column(title="Non-neural baseline", help=NON_NEURAL_HELP),
    Column(title="Tied with", help=TIED_HELP),
    Column(title="Cost of a step", help=COST_HELP),
)
"""Columns of `choice_row`."""
RULES = (
    "significantly better than the baseline on more of these tests",
    "above the best non-neural baseline in every seed of all these tests, unless that baseline is "
    "the rule of the data",
    "tied with the best on more tests",
    "the largest of these tests compares more variants",
    "no other of them is at least as good in every seed and better in one, by the score or on the "
    "longest inputs, where these are longer than any of training (unless the 95% interval of the "
    "difference lies within the margin)",
    "cheaper, where costs within the noise of the run are the same",
    "the baseline itself",
)
"""What decides between variants that are tied with the best, the first that differs."""
LAST_RULE = (
    "the smallest p on the largest of these tests, then the fewest parameters, then the name"
)
"""What decides between variants that are equal by all rules; it says nothing about quality."""
RULE = (
    "How a variant is chosen: of the variants of the first rank, those that are significantly "
    "above uniform attention are tied with the best. Tests on which nothing is above uniform "
    "attention are left out where there are others. Of a variant only those tests count on which "
    "it is tied with the best. Of several variants the first rule decides in which "
    f"they differ: {'; '.join(f'({at}) {rule}' for at, rule in enumerate(RULES, 1))}. Of those "
    f"that are equal by all rules one is named, by {LAST_RULE}, which say nothing about quality. "
    "So the variant that is named need not have the best mean, and what was entered in more tests "
    "is preferred. The number beside a variant is that of the last rule that was needed, against "
    "other candidates of the use, on this test or another one. Rule 5 chooses among tied variants, "
    "and is no evidence that one is better than the others: of two equal variants one is ahead in "
    "each of three seeds in a quarter of all cases. Where nothing is significantly "
    "above uniform attention, nothing is named."
)
ABOUT_P = (
    "A test is a comparison on one task in one network. A row shows the test with most variants: "
    "of those on which the choice is significantly better than the baseline, or else of those on "
    "which it is tied with the best. Of equally large ones it shows that with the smaller p "
    "against the baseline. The p of the row is of the difference to what stands under “Compared "
    "with”. It is corrected for the hypotheses of that test, not for the number of tests. A "
    "generated test is a small model of its use, and a choice among few variants says little."
)
ABOUT_PARTS = (
    "Where two of the best are within 1% of the best possible score, the hardest part of the test "
    "decides on which something is better than uniform attention; it stands after the test. It "
    "was chosen after looking at the scores."
)
ABOUT_AREAS = (
    "A score along training is the mean of the scores on validation over the steps of training."
)
TESTS = "Tests: "
"""Start of the note that says what the tests ask."""
MOST_NAMED = 3
"""Needs that one cell names."""


def choices_table(folder: RunFolder) -> TableBlock | None:
    """A need, the variant to choose, the evidence, and its cost; None where nothing decides."""
    found = needs(folder)
    if not found:
        return None
    decided, clear, open_ = divided(found)
    shown = _first_shown(found)
    rows = [choice_row(need) for need in shown]
    if len(found) > MOST_ROWS:
        rows += [_merged(clear)] if len(clear) > 1 else []
        rows += [_merged_open(open_)] if len(open_) > 1 else []
    notes = (
        *(*_dropped(decided, rows), *_tests(shown), *about_scores(shown)),
        *(RULE, ABOUT_P, _about_costs(found[0].noise)),
    )
    return _table("choices", "What to choose", rows, notes)


def _first_shown(found: Sequence[Need]) -> list[Need]:
    """The needs that have a row of their own in the table of choices, whatever it merges."""
    decided, clear, open_ = divided(found)
    if len(found) <= MOST_ROWS:
        return [*decided, *clear, *open_]
    alone = [one[0] for one in (clear, open_) if len(one) == 1]
    return [*decided[: MOST_ROWS - bool(clear) - bool(open_)], *alone]


def other_needs(folder: RunFolder) -> TableBlock | None:
    """A row for each need that has none in the table of choices; None where all have one."""
    found = needs(folder)
    first = {need.title for need in _first_shown(found)}
    left = [need for need in found if need.title not in first]
    if len(found) <= MOST_ROWS or not left:
        return None
    order = sorted(left, key=lambda need: (need.is_open, not need.beats_baseline, need.title))
    return _table("every-need", EVERY, [*map(choice_row, order)])


def _about_costs(noise: CostNoise) -> str:
    """From where on two costs of the run differ."""
    told = (
        "The cost of a step is the time of a training step (CPU time; on a GPU wall time) over "
        "that of the baseline, with its 95% interval. It is "
        f"“{ABOUT_THE_SAME}” where that lies within a factor of {plain(noise.factor)}"
    )
    why = f"({noise.source})"
    if noise.measured:
        why = (
            "(twice as far from 1 as the interval of the cost of the A/A control reaches, the "
            "baseline trained a second time)"
        )
    return f"{told} {why}, and “unclear” where only a part of it does."


def _table(
    key: str,
    title: str,
    rows: Sequence[tuple[TableCell, ...]],
    notes: tuple[str, ...] = (),
) -> TableBlock:
    return TableBlock(
        key=key,
        title=title,
        columns=COLUMNS,
        rows=tuple(rows),
        notes=notes,
    )


def _dropped(decided: Sequence[Need], rows: Sequence[tuple[TableCell, ...]]) -> tuple[str, ...]:
    """Say which needs the table has no room for."""
    shown = {row[0].text for row in rows}
    left = [uncapitalized(need.title) for need in decided if capitalized(need.title) not in shown]
    return (f"A variant is significantly better also for {join(left)}.",) if left else ()


def choice_row(need: Need) -> tuple[TableCell, ...]:
    """A use, the variant to choose, the numbers behind the choice, and its cost."""
    comparison, found = need.evidence, evidence_of(need)
    known, open_ = comparison.catalog, need.is_open
    cost = TableCell(text=NO_VALUE)
    if not open_:
        cost = _cost([comparison], need.variant, need.noise, need.comparisons)
    p = probability(found.p) if math.isfinite(found.p) else ""
    seeds = "; ".join(filter(None, (found.seeds, found.gap)))
    plain_cells = (p, seeds, found.non_neural)
    return (
        TableCell(text=capitalized(need.title)),
        _shown_test(need),
        TableCell(
            text=NONE_YET if open_ else known.label(need.variant),
            code=not open_,
            marks=() if open_ else (*_rule(need), *equal_by_rules(need), *_size(need)),
        ),
        TableCell(text=found.score or NO_VALUE),
        TableCell(text=found.against or NO_VALUE, marks=found.marks),
        *(TableCell(text=text or NO_VALUE) for text in plain_cells),
        TableCell(text=found.tied or NO_VALUE, marks=found.unproved),
        cost,
    )


def _size(need: Need) -> tuple[str, ...]:
    """How many parameters more or less than the baseline the choice has, where it is many."""
    mine, base = (
        need.evidence.cells.trained(name, "parameters_count").estimate
        for name in (need.variant, need.evidence.catalog.baseline)
    )
    share = mine / base if base else math.nan
    if not abs(share - 1) > OTHER_SIZE:
        return ()
    if max(mine, base) < FEW_PARAMETERS:
        return (f"network of {counted(round(mine), 'parameter')}, that of the baseline {base:.0f}",)
    return (f"{percent(share)} parameters",)


def _rule(need: Need) -> tuple[str, ...]:
    """The number of the rule that decided, where there was something to decide."""
    return (f"by rule {need.decided_by}",) if need.decided_by else ()


def about_scores(shown: Sequence[Need]) -> tuple[str, ...]:
    """What has to be known of parts of tests and of scores along training, where rows have some."""
    parts = any(need.evidence.part for need in shown)
    areas = any(is_made(need.evidence.metric, "area_under_curve") for need in shown)
    return (*((ABOUT_PARTS,) if parts else ()), *((ABOUT_AREAS,) if areas else ()))


def _shown_test(need: Need) -> TableCell:
    """The test that a row shows."""
    return TableCell(text=need.evidence.whole.title, marks=_about_test(need))


def _about_test(need: Need) -> tuple[str, ...]:
    """The part of the test, of how many of the use it is one, and how many were compared on it."""
    comparison, count = need.evidence, len(need.comparisons)
    share = f"1 of {count} tests, " if count > 1 else ""
    about = f"{share}{counted(need.compared, 'variant')}"
    return (comparison.part, about) if comparison.part else (about,)


def _tests(found: Sequence[Need]) -> tuple[str, ...]:
    """What the tests ask."""
    told = dict.fromkeys(stands_for(need.evidence) for need in found)
    return (f"{TESTS}{'; '.join(told)}.",) if told else ()


def synopsis(need: Need | None) -> str:
    """One line beside the title of a use of attention."""
    if need is None:
        return ""
    if need.is_open:
        return f"{capitalized(evidence_text(need))}."
    return f"{need.evidence.catalog.label(need.variant)}: {evidence_text(need)}"


def _cost(
    found: Sequence[Comparison],
    variant: str,
    noise: CostNoise,
    others: Sequence[Comparison] = (),
) -> TableCell:
    """Cost on some tasks; on others where a variant and the baseline ran on other processors."""
    if found and variant == found[0].catalog.baseline:
        return TableCell(text="the baseline")
    for tasks, marks in ((found, ()), (others, (OTHER_TASKS,))):
        cost = relative_cost(tasks, variant)
        if math.isfinite(cost.estimate):
            return TableCell(text=cost_text(cost, noise), marks=marks)
    return TableCell(text=NO_VALUE)


def _merged(found: Sequence[Need]) -> tuple[TableCell, ...]:
    """One row for several uses where no variant is better than the baseline."""
    known = found[0].comparisons[0].catalog
    told = f"The choices are in the table “{EVERY}”"
    if known.baseline:
        tied = sum(known.baseline in need.candidates for need in found)
        told = (
            f"No choice is significantly better than {known.label(known.baseline)}, which is tied "
            f"with the best in {tied} of {len(found)} uses. {told}"
        )
    return _shared_row(found, NO_VALUE, told)


def _merged_open(found: Sequence[Need]) -> tuple[TableCell, ...]:
    """One row for several needs where no variant is above uniform attention."""
    told = "No variant is significantly above uniform attention, or nothing is decided"
    return _shared_row(found, NONE_YET, told)


def _shared_row(found: Sequence[Need], name: str, told: str) -> tuple[TableCell, ...]:
    """One row for several uses, with a sentence in the place of numbers."""
    names = join([uncapitalized(need.title) for need in found], MOST_NAMED)
    use = TableCell(text=f"{len(found)} other uses", marks=(names,))
    nothing = TableCell(text=NO_VALUE)
    return (use, nothing, TableCell(text=name), TableCell(text=told), *[nothing] * 6)
