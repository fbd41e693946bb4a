"""Render a run folder: one HTML page, its Markdown twin, and the figures beside it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.blocks import EXPLAINED, PROGRAM, Document, Figure, Section, clean
from reports.choices import choices_table
from reports.curves import learning_section, legend_of, length_section
from reports.figures import Legend, quality_cost_figure
from reports.folder import RunFolder, read_folder
from reports.html import REPORT, pages
from reports.longer_inputs import fullest_longer_inputs_section, longer_inputs_section
from reports.markdown import DETAILS, FIGURES, SHORT, details, twin
from reports.numbers import counted, scaled
from reports.profiles import profiles_section
from reports.quality_cost import quality_cost
from reports.result_sentence import headline
from reports.sections.ablations import ablation_section
from reports.sections.agreement import agreement_section
from reports.sections.all_tasks import all_tasks_section
from reports.sections.certificates import certificates_section
from reports.sections.data_sources import data_section
from reports.sections.decisions import decided_share, decisions_section, scope
from reports.sections.examples import attention_section, samples_section
from reports.sections.findings import findings_section
from reports.sections.needs import needs_section
from reports.sections.not_shown import not_shown_section
from reports.sections.parity import parity_section
from reports.sections.probes import looked_at, probed_section, probes_section
from reports.sections.provenance import (
    commands_section,
    counts,
    environment_section,
    holes_section,
)
from reports.sections.quotable import quotable_section
from reports.sections.ranking import how_to_read_section, use_sections
from reports.sections.score_grid import score_grid_section
from reports.sections.slots import main_slot_section, slots_section, slots_sentence
from reports.sections.speed import other_costs_section, speed_section
from reports.sections.studies import measured_variants, study_section
from reports.sections.uses_of_attention import uses_section
from reports.sections.variants_and_tasks import names_section
from reports.sections.warnings import warnings_section
from reports.state_size import fullest_state_section, state_section
from reports.steps import steps_section
from reports.tested import tested_comparisons
from reports.tradeoffs import delay_section, pareto_section
from reports.written_files import own_folder, write_file
from results.published_commands import run_folder_of

OF_TRAINING = frozenset(("ranked", "pareto", "length", "learning", "attention", "samples"))
"""Keys of sections that have nothing to say of a run that only timed."""


@dataclass(frozen=True, kw_only=True)
class RenderedReport:
    """Paths of what was written."""

    html: Path
    markdown: Path
    """The short file, for pasting."""
    details: Path
    """The rest as Markdown."""


def render(
    folder: Path,
    *,
    publish: bool = False,
    out: Path | None = None,
    tasks: Sequence[str] = (),
) -> RenderedReport:
    """Write `report.html`, `report.md` and `figures/` from the stored files of a run.

    Args:
        folder: A run folder.
        publish: Leave out sentences of data that must not be passed on.
        out: Folder to write to; the run folder if None.
        tasks: Names of the tasks to report alone; none for the whole run.

    Raises:
        NotARunFolder: The folder has no ledger.
        UnknownName: The run has no such task.
    """
    return write_report(read_folder(folder, tasks), publish=publish, out=out)


def write_report(
    folder: RunFolder, *, publish: bool = False, out: Path | None = None
) -> RenderedReport:
    """The same, of a run folder that has been read."""
    report = document(folder, publish=publish)
    target = folder.path if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    figures = own_folder(target / FIGURES)
    written = RenderedReport(
        html=target / REPORT, markdown=target / SHORT, details=target / DETAILS
    )
    before = _shown_in(written)
    drawn = [write_file(figures / f"{figure.key}.svg", figure.svg) for figure in _figures(report)]
    for name, text in pages(report).items():
        write_file(target / name, text)
    write_file(written.markdown, twin(report))
    write_file(written.details, details(report))
    for name in before - {path.name for path in drawn}:
        (figures / name).unlink(missing_ok=True)
    return written


def _shown_in(report: RenderedReport) -> set[str]:
    """Names of the figures that an earlier report at this place shows, and no other files."""
    pages_before = [path for path in (report.markdown, report.details) if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in pages_before]
    shown = re.compile(rf"\({FIGURES}/([\w-]+\.svg)\)")
    return {name for text in texts for name in shown.findall(text)}


def _figures(report: Document) -> list[Figure]:
    blocks = [block for section in report.sections for block in section.blocks]
    found = [block for block in blocks if isinstance(block, Figure)]
    return [*found, report.overview_figure] if report.overview_figure else found


def document(folder: RunFolder, *, publish: bool = False) -> Document:
    """Arrange everything that the folder tells."""
    folder = folder.as_published() if publish else folder
    legend = legend_of(folder)
    overview = quality_cost(folder)
    sections: tuple[Section | None, ...] = (
        *use_sections(folder),
        warnings_section(folder),
        needs_section(folder),
        decisions_section(folder),
        *_quotable(folder, "summary"),
        probed_section(folder),
        main_slot_section(folder),
        all_tasks_section(folder),
        fullest_state_section(folder),
        fullest_longer_inputs_section(folder),
        *(_folded(section) for section in _details(folder, legend, publish=publish)),
    )
    return Document(
        title=f"{PROGRAM}: {clean(folder.name)}",
        lead=_lead(folder),
        headline=_headline(folder),
        notes=folder.catalog.notes,
        choices=choices_table(folder),
        overview=overview,
        overview_figure=quality_cost_figure(overview) if overview else None,
        facts=_facts(folder),
        commands=folder.commands,
        sections=tuple(
            section
            for section in sections
            if section is not None and not (section.key in OF_TRAINING and _timed_alone(folder))
        ),
    )


def _timed_alone(folder: RunFolder) -> bool:
    """Whether a run trained nothing and timed something."""
    return not folder.comparisons and any(one.cell.kind == "speed" for one in folder.outcomes)


def _headline(folder: RunFolder) -> str:
    """What the run shows, and how much of what it asked is decided."""
    if not folder.comparisons and (timed := slots_sentence(folder)):
        return f"Nothing was trained. {timed}"
    probed = probed_section(folder)
    looked = "" if probed is None else f"{looked_at(folder, probed.title)} "
    tested = tested_comparisons(folder)
    decided = f" {decided_share(tested)}" if tested else ""
    return f"{looked}{headline(folder)}{decided}"


def _details(folder: RunFolder, legend: Legend, *, publish: bool) -> list[Section | None]:
    return [
        how_to_read_section(folder),
        findings_section(folder),
        not_shown_section(folder),
        uses_section(folder) or score_grid_section(folder),
        agreement_section(folder),
        profiles_section(folder, legend),
        parity_section(folder),
        pareto_section(folder, legend),
        length_section(folder, legend),
        longer_inputs_section(folder),
        state_section(folder),
        *_quotable(folder, "details"),
        delay_section(folder, legend),
        learning_section(folder, legend),
        slots_section(folder),
        speed_section(folder, legend),
        other_costs_section(folder),
        steps_section(folder),
        attention_section(folder, legend, publish=publish),
        probes_section(folder),
        ablation_section(folder),
        study_section(folder, legend),
        certificates_section(folder),
        holes_section(folder),
        samples_section(folder, legend, publish=publish),
        data_section(folder),
        names_section(folder),
        environment_section(folder),
        commands_section(folder),
    ]


def _quotable(folder: RunFolder, group: str) -> list[Section]:
    """The section of paragraphs, where a run of its size has it."""
    found = quotable_section(folder)
    return [found] if found is not None and found.group == group else []


def _folded(section: Section | None) -> Section | None:
    return None if section is None else replace(section, folded=True, group="details")


def _lead(folder: RunFolder) -> str:
    variants = measured_variants(folder.outcomes)
    if folder.tasks:
        names = ", ".join(folder.tasks)
        many = counted(len(variants), "variant")
        return f"{many} on {names} alone; the whole run has a report of its own."
    timed = any(outcome.cell.kind == "speed" for outcome in folder.outcomes)
    what = "quality, speed and memory" if timed else "quality and the cost of training"
    below = _about_commands(folder)
    told = f"{counted(len(variants), 'variant')} on {scope(folder)}, with {what}."
    trials = sum(outcome.cell.kind == "trial" for outcome in folder.outcomes)
    if trials:
        told = f"{told} Settings were tried in {counted(trials, 'trial')}."
    if trials and not variants:
        told = f"{counted(trials, 'trial')} of settings; nothing was trained with the best yet."
    if _timed_alone(folder):
        told = f"{counted(len(variants), 'variant')}, timed alone; nothing was trained."
    return " ".join([told, *([below] if folder.commands else []), EXPLAINED])


def _facts(folder: RunFolder) -> tuple[tuple[str, str], ...]:
    ends = sorted(outcome.record.finished for outcome in folder.outcomes if outcome.record.finished)
    when = "unknown" if not ends else " to ".join(dict.fromkeys((ends[0][:10], ends[-1][:10])))
    hours = sum(outcome.record.seconds for outcome in folder.outcomes) / 3600
    return (
        ("Preset", _presets(folder)),
        ("Baseline", _baseline(folder)),
        ("Seeds", _seeds(folder)),
        *_networks(folder),
        ("Cells", counts(folder)),
        *_gpus(folder),
        ("Measured (UTC)", when),
        ("Cell time", f"{hours:.2f} h"),
    )


def _about_commands(folder: RunFolder) -> str:
    """How the commands made a run, and what they do now, where that can be promised.

    A page that is published is read beside later code, which may plan other cells, and so may one
    of a run with known limits.
    """
    commands = folder.commands
    named, does, order = "The command", "computes", ""
    if len(commands) > 1:
        named, does, order = "The commands", "compute", ", in this order"
    reused = any("--reuse" in command for command in commands)
    promised = not (reused or folder.published or folder.catalog.notes)
    done = f"{does} everything again" if promised else "made these cells"
    below = f"{named} below {done}{order}."
    if reused:
        below += " With “--reuse” a command took over cells that were finished before."
    if len({run_folder_of(command) for command in commands} - {""}) > 1:
        below += " “bench report --merge” joined their folders."
    return below


def _presets(folder: RunFolder) -> str:
    """The presets of the commands, and the last one, which a command need not name."""
    asked = re.compile(r"(?<!\S)--preset(?:=|\s+)(\S+)")
    named = [name for command in folder.catalog.commands for name in asked.findall(command)]
    last = [folder.catalog.preset] if folder.catalog.preset else []
    return ", ".join(dict.fromkeys([*named, *last])) or "none"


def _baseline(folder: RunFolder) -> str:
    """The baseline, and whether a run has none of its cells."""
    name = folder.catalog.baseline
    if not name:
        return "none"
    label = folder.catalog.label(name)
    return label if name in measured_variants(folder.outcomes) else f"{label}, not run"


def _gpus(folder: RunFolder) -> list[tuple[str, str]]:
    """The accelerators of the machines; nothing where all cells ran on a processor."""
    used = {one.record.environment for one in folder.outcomes if one.cell.device != "cpu"}
    machines = [one for name, one in folder.environments.items() if name in used]
    names = {str(one.get("gpu") or "") for one in machines} - {""}
    return [("GPU", ", ".join(sorted(names)))] if names else []


def _networks(folder: RunFolder) -> list[tuple[str, str]]:
    """How large what was trained is, and for how long, from the least to the most."""
    rows = folder.frame[folder.frame["kind"] == "quality"]
    found = []
    for metric, unit in (("parameters_count", "parameters"), ("train_steps_count", "updates")):
        values = rows.loc[rows["metric"] == metric, "value"].dropna()
        if len(values):
            least, most = scaled(values.min()), scaled(values.max())
            if least.split()[1:] != most.split()[1:]:  # "1 to 2 M" would read as two millions
                least, most = f"{values.min():,.0f}", f"{values.max():,.0f}"
            found.append(f"{most if least == most else f'{least} to {most}'} {unit}")
    return [("Networks", ", ".join(found))] if found else []


def _seeds(folder: RunFolder) -> str:
    """How many seeds the variants have, from the fewest to the most."""
    counts = [
        len(found)
        for comparison in folder.comparisons
        for name in comparison.contenders
        if (found := comparison.scores[name])
    ]
    if not counts:
        seeds = {outcome.cell.seed for outcome in folder.of_kind("quality")}
        return str(len(seeds)) if seeds else "none, for nothing was trained"
    least, most = min(counts), max(counts)
    return str(most) if least == most else f"{least} to {most}"
