"""`bench report`: write the report of a run folder."""

from pathlib import Path

import click


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write. Default: FOLDER.")
@click.option(
    "--publish", is_flag=True, help="Leave out sentences of data sets without an open license."
)
@click.option("--export", is_flag=True, help="Write the tables as CSV and LaTeX too.")
@click.option(
    "--handbook", type=click.Path(path_type=Path), help="Write mechanisms.md into this folder too."
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
    help="Add the results of this run folder; may be given several times.",
)
@click.option(
    "--tasks", default="", help="Report these tasks only, separated by commas. Needs --out."
)
def command(
    folder: Path,
    out: Path | None,
    tasks: str,
    publish: bool,
    export: bool,
    handbook: Path | None,
    figures: Path | None,
    merge: tuple[Path, ...],
) -> None:
    """Write report.html and report.md of a run folder."""
    written = report(
        folder,
        out,
        publish=publish,
        export=export,
        handbook=handbook,
        figures=figures,
        merge=merge,
        tasks=tasks,
    )
    click.echo(written)


def report(
    folder: Path,
    out: Path | None,
    *,
    publish: bool,
    export: bool,
    handbook: Path | None,
    figures: Path | None,
    merge: tuple[Path, ...],
    tasks: str,
) -> str:
    """Write the report of a run folder, after adding other runs to it if asked.

    Raises:
        InvalidConfig: A report of some tasks would overwrite that of the whole run.
    """
    from bench.api.errors import InvalidConfig
    from bench.api.selector import parse_list
    from reports.export import export_tables
    from reports.handbook import write_handbook
    from reports.pictures import write_figures
    from reports.render import render
    from results import store

    alone = [one.name for one in parse_list(tasks)] if tasks else []
    if alone and out is None:
        raise InvalidConfig(
            "report: --tasks would overwrite the report of the whole run; give --out."
        )
    if merge:
        store.merge(folder, merge)
    written = render(folder, publish=publish, out=out, tasks=alone)
    lines = [f"report: {written.html}", f"Markdown: {written.markdown}"]
    if export:
        tables = export_tables(folder, (out or folder) / "tables", publish=publish)
        lines += [f"table: {path}" for path in tables]
    if handbook is not None:
        lines.append(f"handbook: {write_handbook(folder, handbook)}")
    if figures is not None:
        lines += [f"figure: {path}" for path in write_figures(folder, figures, alone)]
    return "\n".join(lines)
