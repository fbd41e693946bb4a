"""What was to be decided before the run, and how much of it was, a line a comparison."""

from collections import Counter
from collections.abc import Collection, Sequence

from reports.blocks import Block, Bullets, Paragraph, Section
from reports.catalog import Catalog
from reports.folder import RunFolder
from reports.numbers import counted
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.verdicts import AT_EDGE, OUTCOMES, decision_counts
from reports.sections.decisions_table import decisions_table, references_of
from reports.sections.mixed_environments import several_commits
from reports.sections.not_shown import (
    NO_REASON,
    NOT_SHOWN,
    OwnTest,
    not_shown,
    on_checks,
    own_tests,
)
from reports.tested import is_input_ablation, tested_comparisons

HYPOTHESES = (
    "A primary hypothesis is fixed before the run: a contender against the baseline, a contender "
    "against uniform attention, or the baseline against uniform attention. It is decided if the "
    "difference is significant, or shown to be smaller than the margin. To be better than uniform "
    "attention shows only that something was learned."
)
ERRORS = (
    "In simulations of usual scores, a comparison of equal variants has a false “better” or "
    "“worse” in at most 5% of cases. Some kinds of scores exceed it: 6 to 7% with three seeds "
    "where some variants spread ten times as widely as others, 6 to 8% with strongly skewed "
    "scores (up to 10% with 36 variants or more), and up to 40% where one variant fails in some "
    "runs and is better in the others by as much; three more kinds, with 5 to 6%, are in the page "
    "on statistics. A comparison whose variants all differ by the margin has a false “equivalent” "
    "in at most 5%."
)
LOOKS = (
    "Seeds were added where a hypothesis was undecided, so variants differ in their numbers of "
    "seeds. The run looked at its scores at {counts} seeds and so on. Each look spends a quarter "
    "of the error rate that earlier looks left, and p values and intervals of differences are of "
    "all looks together, so the error rate of 5% holds for all looks together."
)
CHECKS = (
    "Pipeline checks are left out here and in every summary, for they are no evidence. The reason "
    "is about the size that it names. A mark may be set after scores were seen, because it only "
    "takes evidence away:"
)


def decisions_section(folder: RunFolder) -> Section | None:
    """How many primary hypotheses were decided; None where nothing was tested."""
    tested = tested_comparisons(folder)
    if not tested:
        return None
    return Section(
        key="decisions",
        title="What was decided",
        blocks=(
            Paragraph(HYPOTHESES),
            Paragraph(
                " ".join(
                    (
                        *_of_all(folder),
                        decided_share(tested),
                        outcomes_text(tested),
                        *comparisons_text(tested),
                    )
                )
            ),
            *map(Paragraph, several_commits(folder, tested)),
            Paragraph(ERRORS),
            *_about_looks(folder),
            decisions_table(folder, tested),
            *_not_shown(folder),
            *_checks(folder),
        ),
        group="summary",
    )


def scope(folder: RunFolder) -> str:
    """How many tasks and comparisons a run has, and how many of them are no evidence.

    A task counts once, whatever its options; `with options` counts each choice of them.
    """
    selectors = {outcome.cell.task for outcome in folder.of_kind("quality")}
    names = {text.partition("[")[0] for text in selectors}
    more = f" ({len(selectors)} with options)" if len(selectors) > len(names) else ""
    tasks = f"{counted(len(names), 'task')}{more}"
    if not folder.comparisons:
        return tasks
    parts = _kinds_of_comparisons(folder)
    of_which = f", of which {join(parts)}" if parts else ""
    return f"{tasks}, {counted(len(folder.comparisons), 'comparison')}{of_which}"


def _kinds_of_comparisons(folder: RunFolder) -> list[str]:
    """How many comparisons are of each kind, those that are tested last; nothing if all are."""
    checks = sum(bool(one.pipeline_check) for one in folder.comparisons)
    ablations = sum(map(is_input_ablation, folder.comparisons))
    tested = len(tested_comparisons(folder))
    rest = len(folder.comparisons) - checks - ablations - tested if tested else 0
    parts = [
        (checks, "is a pipeline check" if checks == 1 else "are pipeline checks"),
        (ablations, "is an input ablation" if ablations == 1 else "are input ablations"),
        (rest, f"{'has' if rest == 1 else 'have'} no hypothesis to test"),
        (tested, f"{'is' if tested == 1 else 'are'} tested"),
    ]
    apart = checks or ablations or rest
    return [f"{count} {what}" for count, what in parts if count] if apart else []


def _of_all(folder: RunFolder) -> list[str]:
    """Which comparisons are counted here, a sentence; none where all are."""
    parts, every = _kinds_of_comparisons(folder), counted(len(folder.comparisons), "comparison")
    return [f"Of {every}, {join(parts)}; these last are counted here."] if parts else []


def left_out(folder: RunFolder) -> list[str]:
    """Pipeline checks, each with the reason why it is no evidence, and how it was in this run."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for one in folder.comparisons:
        if one.pipeline_check:
            found.setdefault((one.task, one.pipeline_check), []).append(one)
    return [
        f"{folder.catalog.task_label(task)}: {why}{in_this_run(comparisons)}"
        for (task, why), comparisons in found.items()
    ]


def in_this_run(comparisons: Sequence[Comparison]) -> str:
    """How many variants passed the references of a pipeline check after all; empty where none did.

    Both numbers are told, because the reason of a mark is about one of the two references.
    """
    better = {name for one in comparisons for name in one.beats_the_rest}
    tested = [
        (asked.variant, found.outcome == "better")
        for one in comparisons
        for asked, found in one.primary.items()
        if asked.reference == one.uniform_baseline
    ]
    above = {name for name, passed in tested if passed}
    if not better and not above:
        return ""
    every = counted(len({name for one in comparisons for name in one.contenders}), "variant")
    told = []
    if tested:
        told.append(f"{_count(above)} significantly above uniform attention")
    if any(one.without for one in comparisons):
        told.append(f"{_count(better)} better than the best non-neural baseline in every seed")
    return f" In this run, of {every}, {join(told)}. A mark is not lifted after scores were seen."


def _count(names: Collection[str]) -> str:
    """A number with its verb."""
    return "none is" if not names else f"{len(names)} {'is' if len(names) == 1 else 'are'}"


def _not_shown(folder: RunFolder) -> list[Block]:
    """How many variants show what their papers report, and where the page says why not."""
    found, every = not_shown(folder), [*own_tests(folder)]
    if not found:
        return []
    checks = len(on_checks(folder))
    outcomes = Counter(one.decision.outcome for one in every)
    edges = sum(one.at_edge for one in found)
    lower = sum(_below(one) for one in found if one.decision.outcome == "undecided")
    base = folder.catalog.label(folder.catalog.baseline)
    silent = sum(not one.reason for one in found)
    told = (
        "The default task of a mechanism is meant to show what it is for. Of "
        f"{counted(len(every), 'contender')} there, {outcomes['better']} "
        f"{'is' if outcomes['better'] == 1 else 'are'} significantly better than {base}, "
        f"{outcomes['worse']} worse, {outcomes['equivalent']} equivalent"
        f"{_of_them(edges, f'{AT_EDGE}, which shows nothing')} and {outcomes['undecided']} "
        f"undecided{_of_them(lower, 'with a worse mean')}. “{NOT_SHOWN}” among the details lists "
        "those that are not better, each with the reason as far as is known."
    )
    if checks:
        told = f"{told} The default task of {counted(checks, 'contender')} is a pipeline check."
    return [Paragraph(f"{told} For {silent} {NO_REASON}." if silent else told)]


def _of_them(count: int, what: str) -> str:
    return f" ({count} of them {what})" if count else ""


def _below(one: OwnTest) -> bool:
    sign = -1.0 if one.comparison.better == "lower" else 1.0
    return sign * one.decision.difference.estimate < 0


def _checks(folder: RunFolder) -> list[Block]:
    found = left_out(folder)
    return [Paragraph(CHECKS), Bullets(tuple(found))] if found else []


def decided_share(tested: Sequence[Comparison]) -> str:
    """How much of what was tested is decided; what is equivalent at an edge is not."""
    totals, known = _totals(tested), tested[0].catalog
    parts = {
        _reference(known, name): (
            found.total() - found[AT_EDGE] - found["undecided"],
            found.total(),
        )
        for name, found in totals.items()
    }
    decided, every = (sum(counts) for counts in zip(*parts.values(), strict=True))
    share = f"{decided} of {every} primary hypotheses ({decided / every:.0%})"
    apart = [f"{mine} of {all_} against {name}" for name, (mine, all_) in parts.items()]
    by_reference = f": {join(apart)}" if len(apart) > 1 else ""
    return f"The run decides {share} in {counted(len(tested), 'comparison')}{by_reference}."


def outcomes_text(tested: Sequence[Comparison]) -> str:
    """What was decided against the baseline, and against uniform attention.

    The two references are not added up. To be better than uniform attention shows that something
    was learned; only the other count speaks for a variant. What is equivalent at the ceiling or at
    chance is counted apart.
    """
    totals, known = _totals(tested), tested[0].catalog
    edges, undecided = (
        sum(found[outcome] for found in totals.values()) for outcome in (AT_EDGE, "undecided")
    )
    parts = []
    if edges:
        are = "is" if edges == 1 else "are"
        parts.append(
            f"Of the rest, {edges} {are} equivalent {AT_EDGE}, which shows nothing, and "
            f"{undecided} undecided."
        )
    for name, found in totals.items():
        kinds = [*OUTCOMES, AT_EDGE] if found[AT_EDGE] else OUTCOMES
        told_ = ", ".join(f"{found[outcome]} {outcome}" for outcome in kinds)
        parts.append(f"Against {_reference(known, name)}: {told_}.")
    return " ".join(parts)


def comparisons_text(tested: Sequence[Comparison]) -> list[str]:
    """In how many comparisons something is decided, a sentence; none where there is only one."""
    if len(tested) == 1:
        return []
    counts = [(decision_counts(one), len(one.primary)) for one in tested]
    open_ = [found[AT_EDGE] + found["undecided"] for found, _ in counts]
    whole = sum(not left for left in open_)
    some = sum(left < every for left, (_, every) in zip(open_, counts, strict=True))
    return [
        f"At least one hypothesis is decided in {some} of {len(tested)} comparisons, all of them "
        f"in {whole}."
    ]


def _reference(known: Catalog, name: str) -> str:
    """What others are compared with, in words."""
    return "uniform attention" if known.variant(name).uniform_baseline else known.label(name)


def _totals(tested: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Outcomes of all comparisons, by reference."""
    totals = {name: Counter[str]() for name in references_of(tested)}
    for comparison in tested:
        for name, found in totals.items():
            found.update(decision_counts(comparison, name))
    return totals


def _about_looks(folder: RunFolder) -> list[Paragraph]:
    """How seeds were added, where they were."""
    looks = folder.catalog.looks
    if looks is None:
        return []
    counts = ", ".join(str(len(looks.seeds(number))) for number in (1, 2, 3))
    return [Paragraph(LOOKS.format(counts=counts))]
