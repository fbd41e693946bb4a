"""What a run prints at its end: tables, what has no value and why, and where the report is."""

import json
from collections.abc import Callable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from bench.api.plain_text import shortened
from bench.cli.run_options import RunOptions
from bench.running.kept_results import LOG
from bench.running.session import Session
from bench.running.tally import Tally

if TYPE_CHECKING:
    from reports.folder import RunFolder
    from reports.render import RenderedReport

Shown = Callable[["RunFolder"], Sequence[str]]
"""Gives the texts that a command prints of a finished run."""

MOST_REASONS = 20
"""Why cells have no value: so many sentences at the end of a run, and all of them in the report."""
MOST_OF_A_REASON = 200
"""Characters of the reason why a certificate is red."""


def print_end(options: RunOptions, session: Session, shown: Shown) -> int:
    """Write the report, print what the run found, and return the exit code.

    Args:
        options: Of the command.
        session: What ran.
        shown: Gives the texts to print of the finished run.
    """
    from reports.folder import read_folder
    from reports.render import write_report

    folder = read_folder(options.folder)
    written = write_report(folder)
    if options.as_json:
        click.echo(_as_json(options, session.tally, folder, written))
    else:
        warnings = [f"warning: {warning}" for warning in _warnings(folder)]
        for part in (*shown(folder), *warnings):
            click.echo(f"{part}\n")
        for line in (*_left_out(folder), *_tally_lines(session.tally, options.impl)):
            click.echo(line)
        click.echo(f"report: {written.html} (Markdown twin {written.markdown})")
    endings = _endings(session.tally, folder, options)
    if not options.as_json:
        for ending in endings:
            click.echo(ending, err=True)
    return 1 if endings else 0


def _endings(tally: Tally, folder: "RunFolder", options: RunOptions) -> list[str]:
    """Why the command ends with exit code 1, a sentence each; empty for exit code 0."""
    from reports.numbers import counted

    asked, found = options.fail_on, []
    if "failed" in asked and tally.failed:
        log = folder.path / LOG  # only what nobody expected has a traceback
        traced = f"{log} has the tracebacks, and " if log.exists() else ""
        again = f"--retry {' --retry '.join(tally.failures)} runs them again"
        if not has_option("retry"):
            again = "another --out runs them again"
        found.append(f"{counted(tally.failed, 'cell')} failed; {traced}{again}.")
    if tally.refused and ("refused" in asked or not tally.with_value):
        found.append(f"{counted(tally.refused, 'cell')} refused; the reasons are above.")
    if "red" in asked:
        found += _red_endings(folder, options)
    if "worse" in asked:
        for comparison in folder.comparisons:
            worse = [one for one in comparison.ranking if one.worse_than_baseline]
            found += [
                f"{one.variant} is significantly worse than {comparison.baseline} on "
                f"{comparison.task}."
                for one in worse
            ]
    return found


def has_option(name: str) -> bool:
    """Whether the command that runs has an option; `demo` and `reproduce` have few."""
    running = click.get_current_context(silent=True)
    return running is None or any(one.name == name for one in running.command.params)


def _red_endings(folder: "RunFolder", options: RunOptions) -> list[str]:
    """A sentence for each red certificate: the first check that failed, and who shows them all."""
    from bench.api.command import verify_command
    from reports.catalog import red_reasons

    found = []
    # a certificate without cells, as a merge may bring it, takes no rank away
    for name in sorted({one.cell.variant for one in folder.outcomes}):
        reasons = red_reasons(folder.certificates, name)
        if not reasons:
            continue
        command = verify_command(name, *_checked_with(options), plugins=folder.catalog.plugins)
        first = shortened(reasons[0], MOST_OF_A_REASON).rstrip(".")
        found.append(
            f"the certificate of {name} is red; it is not ranked. Reason 1 of {len(reasons)}: "
            f"{first}. This shows all: {command}"
        )
    return found


def _checked_with(options: RunOptions) -> list[str]:
    """Options of `bench verify` without which it would certify other code than the run."""
    shapes = [("shape", shape) for shape in options.shape]
    once = [(name, getattr(options, name)) for name in ("impl", "device", "dtype")]
    told = [(name, value) for name, value in once if value != getattr(RunOptions, name)]
    return [word for name, value in (*told, *shapes) for word in (f"--{name}", value)]


def comparison_text(folder: "RunFolder") -> str:
    """How the variants compare, for a terminal: the only place that decides what a run shows."""
    from reports.terminal import result_text

    return result_text(folder, get_terminal_size().columns)


def run_parts(folder: "RunFolder") -> list[str]:
    """What a run shows: the comparison, and the probes if there were any."""
    return [comparison_text(folder), *probe_parts(folder)]


def probe_parts(folder: "RunFolder") -> list[str]:
    """What the probes found; nothing where none ran."""
    from reports.sections.probes import probes_text

    return [text] if (text := probes_text(folder)) else []


def _warnings(folder: "RunFolder") -> list[str]:
    from reports.sections.data_sources import mixed_data, short_data

    return [*mixed_data(folder).values(), *short_data(folder), *folder.damages]


def _as_json(
    options: RunOptions, tally: Tally, folder: "RunFolder", written: "RenderedReport"
) -> str:
    reasons = [
        {"status": status, "reason": reason, "cells": count}
        for (status, reason), count in sorted(tally.reasons.items())
    ]
    return json.dumps(
        {
            "folder": str(options.folder),
            "report": str(written.html),
            "counts": tally.counts,
            "already_finished": tally.already,
            "reasons": reasons,
            "left_out": folder.plan["left_out"],
            "warnings": _warnings(folder),
            "studies": folder.catalog.study,
            "table": json.loads(folder.ranked_lines.to_json(orient="records")),
        },
        indent=1,
    )


def _left_out(folder: "RunFolder") -> list[str]:
    """What the plan does not hold: each reason once, and what it is told of where that is one."""
    about: dict[str, list[str]] = {}
    for left in folder.plan["left_out"]:
        about.setdefault(left.get("reason", "").rstrip("."), []).append(left.get("label", ""))
    lines = []
    for reason, labels in list(about.items())[:MOST_REASONS]:
        what = labels[0] if len(labels) == 1 else f"{len(labels)} parts of the plan"
        lines.append(f"left out, {what}: {reason}")
    return [*lines, *_more_reasons(len(about))]


def _tally_lines(tally: Tally, impl: str) -> list[str]:
    """What has no value and why, and how many cells ended how.

    Args:
        tally: What became of the cells.
        impl: The code that was asked for.
    """
    counts = ", ".join(f"{count} {status}" for status, count in sorted(tally.counts.items()))
    ended = f"cells: {counts or 'none new'}{_finished_before(tally)}"
    return [*_why_without(tally), *_without_code(tally, impl), ended]


def _without_code(tally: Tally, impl: str) -> list[str]:
    """What to do about cells that have no such code as was asked for."""
    refused = [why for status, why in tally.reasons if status == "refused"]
    if impl == "auto" or not any(f"impl={impl}" in why for why in refused):
        return []
    return ["leave --impl out: every variant has code of its own."]


def _why_without(tally: Tally) -> list[str]:
    """Each reason once, the one of most cells first."""
    every = sorted(tally.reasons.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        f"{status.replace('_', ' ')}, {count} {'cell' if count == 1 else 'cells'}: {reason}"
        for (status, reason), count in every[:MOST_REASONS]
    ]
    return [*lines, *_more_reasons(len(every))]


def _more_reasons(count: int) -> list[str]:
    """Where the reasons are that are not printed."""
    more = count - MOST_REASONS
    if more <= 0:
        return []
    return [f"{more} more {'reason is' if more == 1 else 'reasons are'} in the report."]


def _finished_before(tally: Tally) -> str:
    if not tally.already:
        return ""
    refused = tally.before["refused"]
    them = "it" if refused == 1 else "them"
    asks = f"--retry refused asks {them} again"
    if not has_option("retry"):
        asks = "another --out asks again"
    again = f"; {refused} refused before; {asks}" if refused else ""
    kept = tally.before["other_code"]
    other = f"; {kept} of them of other code or data, kept and not ranked" if kept else ""
    were = "was" if tally.already == 1 else "were"
    return f", {tally.already} {were} finished before{other}{again}"
