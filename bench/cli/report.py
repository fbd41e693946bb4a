"""`bench report`: write the report of a run folder."""

from pathlib import Path

import click


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write. Default: FOLDER.")
@click.option(
    "--publish", is_flag=True, help="Leave out sentences of data sets without an open license."
)
@click.option(
    "--export",
    is_flag=True,
    help="Write ranked tables, timings, ablations, non-neural baselines, published numbers and the "
    "list of cells as CSV too, and all but the list as LaTeX.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    help="Write figures of every task's examples into this folder too.",
)
@click.option(
    "--merge",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Add the results of this run folder or pack; may be given several times. The run of all "
    "is written to --out.",
)
@click.option(
    "--tasks",
    default="",
    help="Report these tasks only, names separated by commas, and write their rows only. A name "
    "stands for the task with all of its options. Needs --out.",
)
@click.option(
    "--pack", type=click.Path(path_type=Path), help="Write the rows into this Parquet file too."
)
def command(
    folder: Path,
    out: Path | None,
    tasks: str,
    publish: bool,
    export: bool,
    figures: Path | None,
    merge: tuple[Path, ...],
    pack: Path | None,
) -> None:
    """Write the report of a run folder or of a published pack."""
    written = report(
        folder,
        out,
        publish=publish,
        export=export,
        figures=figures,
        merge=merge,
        tasks=tasks,
        pack=pack,
    )
    click.echo(written)


def report(
    folder: Path,
    out: Path | None,
    *,
    publish: bool,
    export: bool,
    figures: Path | None,
    merge: tuple[Path, ...],
    tasks: str,
    pack: Path | None = None,
) -> str:
    """Write the report of a run folder or a pack, or of several as one.

    Raises:
        InvalidConfig: What was asked would overwrite something, or does not go together, or a task
            has options.
        NotARunFolder: A path is no run, or the pack has no name of one.
    """
    from reports.export import export_tables
    from reports.folder import read_folder
    from reports.pictures import write_figures
    from reports.render import write_report
    from results.run_path import refuse_no_name_of_a_pack, refuse_what_is_no_run

    alone = _task_names(tasks) if tasks else []
    _refuse(folder, out, figures, whole=not alone, merged=bool(merge))
    for one in merge:
        refuse_what_is_no_run(one)
    if pack is not None:
        refuse_no_name_of_a_pack(pack)
    folder, merged = _merged(folder, out, merge) if merge else (folder, [])
    packed = [] if pack is None else _packed(folder, pack, alone)
    shown = read_folder(folder, alone)
    for warning in filter(None, (shown.torn, *shown.damages)):
        click.echo(warning, err=True)
    written = write_report(shown, publish=publish, out=out)
    lines = [*merged, f"report: {written.html}", f"Markdown: {written.markdown}"]
    if export:
        tables = export_tables(folder, (out or folder) / "tables", publish=publish, tasks=alone)
        lines += [f"table: {path}" for path in tables]
    if figures is not None:
        drawn = write_figures(folder, figures, alone, publish=publish)
        lines += [f"figure: {path}" for path in drawn]
    return "\n".join([*lines, *packed])


def _task_names(tasks: str) -> list[str]:
    """Names of tasks; a name stands for the task with all of its options.

    Raises:
        InvalidConfig: One has options, which would choose no cells.
    """
    from bench.api.errors import InvalidConfig
    from bench.api.selector import parse_list

    asked = parse_list(tasks)
    for one in asked:
        if one.options:
            raise InvalidConfig(
                f"report: --tasks takes names, each for all cells of the task, and {one.show()} "
                f"has options; give {one.name}."
            )
    return [one.name for one in asked]


def _packed(folder: Path, pack: Path, alone: "list[str]") -> list[str]:
    """Write the pack of a run, or of some of its tasks: a line with its name.

    This comes before the report, because it needs every file whole, and a report needs not.

    Raises:
        DataDamaged: A file of the run cannot be read.
        InvalidConfig: The pack would overwrite another one.
    """
    from bench.cli.overwriting import refuse_other_pack
    from results.pack import open_run, write_pack
    from results.part import Part

    refuse_other_pack(pack, folder, tasks=alone)
    whole = open_run(folder)
    return [f"pack: {write_pack(Part(whole, alone) if alone else whole, pack)}"]


def _merged(folder: Path, out: Path | None, others: tuple[Path, ...]) -> tuple[Path, list[str]]:
    """Merge runs into a folder of its own: that folder, and a line of each cell that differs.

    Raises:
        InvalidConfig: The folder is not given, or is one of those that are merged.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.overwriting import refuse_other_merge
    from reports.folder import damaged_lines, torn_lines
    from results.merge import merge

    if out is None or out.resolve() in [one.resolve() for one in (folder, *others)]:
        raise InvalidConfig(
            "report: --merge writes a run folder of its own; give --out a new or empty folder."
        )
    refuse_other_merge([folder, *others], out)
    done = merge(out, [folder, *others])
    for warning in filter(None, (torn_lines(done.torn_tails), damaged_lines(done.corrupt_lines))):
        click.echo(warning, err=True)
    return out, [f"different test values, the newest kept: cell {id_}" for id_ in done.differing]


def _refuse(
    folder: Path, out: Path | None, figures: Path | None, *, whole: bool, merged: bool
) -> None:
    """Refuse what would overwrite the report of another run, or a file of somebody else.

    Args:
        folder: The run.
        out: Where to write.
        figures: The folder of figures.
        whole: Whether every task is reported.
        merged: Whether several runs become one, in a run folder of its own.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.overwriting import refuse_occupied
    from results.run_path import refuse_what_is_no_run

    refuse_what_is_no_run(folder)
    if merged and not whole:
        raise InvalidConfig(
            "report: --merge makes a whole run, and --tasks a report of some of its tasks; merge "
            "first, and report the tasks of the merged folder into another one."
        )
    if not whole and (out is None or out.resolve() == folder.resolve()):
        raise InvalidConfig(
            "report: --tasks would overwrite the report of the whole run; give --out another "
            "folder."
        )
    if out is not None and not merged:
        refuse_occupied(folder, out)
    if folder.is_file() and out is None:
        raise InvalidConfig(f"report: {folder} is a pack, which holds no report; give --out.")
    if figures is not None and figures.exists() and not figures.is_dir():
        raise InvalidConfig(f"report: {figures} is a file; give --figures a folder.")
