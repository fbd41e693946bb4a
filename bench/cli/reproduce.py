"""`bench reproduce`: train some cells of a run again, and compare their test scores."""

import math
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.api.cell import Cell
    from bench.cli.run_options import RunOptions
    from reports.folder import RunFolder
    from results.pack import Pack
    from results.reproduced import Reproduced
    from results.row import Record
    from results.store import Store


def _tolerance(context: click.Context, option: click.Parameter, value: float) -> float:
    """A difference; beyond one that is no number, nothing could ever be."""
    from bench.api.errors import InvalidConfig

    if not (math.isfinite(value) and value >= 0):
        raise InvalidConfig(f"--tolerance must be a number of at least 0, got {value:g}.")
    return value


@click.command("reproduce")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--cells",
    "count",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many trained cells are drawn.",
)
@click.option("--draw", default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "--tolerance",
    default=0.0,
    show_default=True,
    callback=_tolerance,
    help="Greatest difference of a test value that is no failure. On another processor or version "
    "of torch the last bits of sums differ, and trainings drift apart.",
)
@options.jobs
@options.out
@options.data_directory
@options.plugins
@options.inline
@light_start
@options.run_options
def command(asked: "RunOptions", run: Path, count: int, draw: int, tolerance: float) -> None:
    """Train some cells of a run again, and compare test scores.

    Cells are drawn at random among those that were trained, and run with the code of today. Every
    test value is compared; times are not. The exit code is 1 if one differs by more than the
    tolerance. Started again, it goes on where it stopped.
    """
    sys.exit(reproduce(asked, run, count, draw, tolerance))


def reproduce(options: "RunOptions", run: Path, count: int, draw: int, tolerance: float) -> int:
    """Train and compare; returns the exit code.

    Raises:
        InvalidConfig: The run has no trained cell that this version of the code knows, had a
            plug-in that was not given, or would be compared with itself or with copies of itself.
        NotARunFolder: The path is no run.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.registered import load_registry, refuse_without_plugins
    from bench.cli.run import cell_plan
    from results.pack import open_run
    from results.run_path import refuse_occupied, refuse_what_is_no_run

    refuse_what_is_no_run(run)
    out = options.out or str(Path("runs", "reproduce", run.stem))
    if Path(out).resolve() == run.resolve():
        raise InvalidConfig(f"{out} is the run that is checked; give another --out.")
    refuse_occupied(Path(out))
    _ = options.data_directory  # one that is not there is refused before torch is there
    load_registry(options.plugin)
    need_real_packages()
    from bench.cli.execution import execute
    from results.reproduced import reproduced
    from results.store import Store

    source = open_run(run)
    refuse_without_plugins(source, options.plugin)
    _refuse_copies(source, Path(out))
    labels, others = _drawn(source, count, draw)
    # whoever was too slow is asked again by the same command
    asked = replace(options, cells=tuple(labels), out=out, verify=False, retry=("timeout",))
    asked = replace(asked, preset=_preset_of(source) or asked.preset)
    found: "list[Reproduced]" = []
    came_to_an_end = False

    def compared(folder: "RunFolder") -> list[str]:
        nonlocal came_to_an_end
        came_to_an_end = True
        with Store(asked.folder) as store:
            found.extend(one for one in reproduced(source, store) if one.label in labels)
        return [_told(found, len(labels), others)]

    ended = execute(asked, cell_plan(asked, labels), shown=compared)
    if not came_to_an_end:
        return ended or 1
    why = _why_not(found, len(labels), tolerance)
    if why:
        click.echo(why, err=True)
    return ended or int(bool(why))


def _why_not(found: "list[Reproduced]", asked: int, tolerance: float) -> str:
    """Why the run was not reproduced, in one sentence; empty where it was."""
    counts = {
        f"differ by more than {tolerance:g}": sum(one.difference > tolerance for one in found),
        "have other test values": sum(bool(one.lost) for one in found),
        "have no test values here": asked - len(found),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return f"not reproduced: of {asked} cells {', '.join(said)}." if said else ""


def _refuse_copies(source: "Store | Pack", out: Path) -> None:
    """Refuse a folder that holds results of the run, which would be compared with themselves.

    A run takes them with --reuse, and a report with --merge.

    Raises:
        InvalidConfig: It holds some.
    """
    from bench.api.errors import InvalidConfig
    from reports.numbers import counted
    from results.run_path import LEDGER
    from results.store import Store

    if not (out / LEDGER).is_dir():
        return
    checked = {_training(one) for one in source.ledger().newest().values()}
    held = [one for one in Store(out).records() if one.cell["kind"] == "quality"]
    copies = sum(_training(one) in checked for one in held)
    if copies:
        raise InvalidConfig(
            f"{out} holds {counted(copies, 'trained cell')} of the run that is checked, as --reuse "
            "and --merge copy them; give another --out."
        )


def _training(record: "Record") -> tuple[str, ...]:
    """What two trainings of one cell never share."""
    return record.id, record.environment, record.finished


def _preset_of(source: "Store | Pack") -> str:
    """The preset of a run, so that a report says the same of its cells; empty if unknown."""
    from bench.running.presets import PRESETS
    from results.catalog import RunCatalog

    preset = RunCatalog.of(source).preset
    return preset if preset in PRESETS else ""


def _is_of_today(cell: "Cell") -> bool:
    """Whether this version of the code knows a cell, and in the same revisions."""
    from bench.api.errors import BenchError
    from bench.running.revisions import canonical_cell, revisions_of

    try:
        return revisions_of(canonical_cell(cell)) == cell.revisions
    except BenchError:  # a name that is gone, or that a plug-in has elsewhere
        return False


def _drawn(source: "Store | Pack", count: int, draw: int) -> tuple[dict[str, float], int]:
    """Labels of some cells that were trained, with the seconds that each took.

    Also how many cells of another revision were left out.
    """
    from bench.api.cell import cell_from_dict
    from bench.api.errors import InvalidConfig

    trained = [
        (cell_from_dict(dict(record.cell)), record.seconds)
        for record in source.ledger().newest().values()
        if record.status == "ok" and record.cell["kind"] == "quality"
    ]
    known = {cell.label: seconds for cell, seconds in trained if _is_of_today(cell)}
    if not known:
        raise InvalidConfig(
            "there is no trained cell that this version of the code could train again; give a run "
            "folder or a pack with trained cells."
        )
    drawn = random.Random(draw).sample(sorted(known), min(count, len(known)))
    return {label: known[label] for label in drawn}, len(trained) - len(known)


def _scores(one: "Reproduced") -> str:
    """How the scores of a cell differ."""
    lost = f"{one.lost} are stored by one run alone" if one.lost else ""
    differs = f"{one.metric} differs by {one.difference:.3g}" if one.metric else ""
    return ", ".join(filter(None, (differs, lost))) or "same"


def _told(found: "list[Reproduced]", asked: int, others: int) -> str:
    """A line for each cell, and a sentence about all of them.

    Args:
        found: What came of the cells.
        asked: How many were drawn.
        others: How many were not drawn from, for another revision of the code trained them.
    """
    from tabulate import tabulate

    lines = [
        (
            _scores(one),
            one.values,
            "other" if one.other_machine else "same",
            one.label,
        )
        for one in found
    ]
    table = tabulate(lines, ["scores", "compared", "machine", "cell"], tablefmt="simple")
    same = sum(one.same for one in found)
    told = f"{same} of {asked} cells have the same test scores to the last bit"
    if same < len(found):
        worst = max(one.difference for one in found)
        told += f"; the greatest difference of the others is {worst:.3g}" if worst else ""
    if len(found) < asked:
        told += f"; {asked - len(found)} could not be trained again"
    if others:
        told += f"; {others} cells of other revisions of the code were not among those drawn from"
    return f"{table}\n\n{told}."
