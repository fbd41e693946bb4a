"""`bench claims`: sentences of the sources, what decides them, and what the rows say."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

import results
from bench.cli import option_groups as options
from bench.cli.command_group import BenchGroup
from bench.cli.fitted_table import fitted_table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.api.claim import Claim
    from bench.cli.run_options import RunOptions
    from bench.running.request import Request
    from reports.claims import ClaimOutcome
    from results.frame import StoredRun
    from results.store import Store

FOLDER = "runs/claims"
"""Where claims are run if nobody says otherwise."""
PUBLISHED = Path(results.__file__).parent / "published" / "claims.parquet"
"""Published rows of claims."""


@click.group("claims", cls=BenchGroup)
def command() -> None:
    """Claims of the sources, and what stored rows say of them.

    `list` shows them, `run` computes and trains what decides them, and `report` writes the page.
    """


@command.command("list")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@options.plugins
@options.json_output
def list_claims(folder: Path | None, plugin: tuple[str, ...], as_json: bool) -> None:
    """List every claim with its kind, cost and verdict.

    The verdict is by the rows of FOLDER, a run folder or a pack. Without it, runs/claims is read if
    it is there, or else the published pack.
    """
    click.echo(claims_list(folder, plugin, as_json=as_json))


@command.command("run")
@click.argument("keys", nargs=-1)
@options.out
@click.option("--minutes", default=0.0, help="Wall time to fill (minutes). 0: no limit.")
@click.option("--seeds", default=0, help="Number of seeds. 0: as many as each claim asks for.")
@options.device
@options.jobs
@options.plugins
@options.data_directory
@options.retry
@options.inline
@options.run_options
def run_claims(asked: "RunOptions", keys: tuple[str, ...]) -> None:
    """Compute and train what decides claims.

    KEYS are names of claims, such as C01; all of them without any. Finished cells stay.
    """
    sys.exit(run(asked, keys))


@command.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write. Default: FOLDER.")
@click.option(
    "--pack", type=click.Path(path_type=Path), help="Write the rows into this Parquet file too."
)
@options.plugins
def report_claims(
    folder: Path, out: Path | None, pack: Path | None, plugin: tuple[str, ...]
) -> None:
    """Write the page of a run folder or of a published pack.

    Its files are claims.html, claims.md and their figures.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.overwriting import refuse_occupied, refuse_other_pack
    from results.pack import open_run, write_pack
    from results.run_path import refuse_no_name_of_a_pack, refuse_what_is_no_run

    refuse_what_is_no_run(folder)
    if pack is not None:
        refuse_no_name_of_a_pack(pack)
        refuse_other_pack(pack, folder, "claims")
    if out is not None:
        refuse_occupied(folder, out, "claims")
    if folder.is_file() and out is None:
        raise InvalidConfig(f"claims: {folder} is a pack, which holds no report; give --out.")
    found = outcomes(open_run(folder), plugin)
    if not any(one.ran for one in found):
        raise InvalidConfig(f"{folder} has no rows of claims; `bench claims run` makes them.")
    click.echo(write_page(found, out or folder))
    if pack is not None:
        click.echo(f"pack: {write_pack(open_run(folder), pack)}")


def claims_list(folder: Path | None, plugins: tuple[str, ...], *, as_json: bool) -> str:
    """A table of all claims.

    Raises:
        InvalidConfig: The folder is the name of a claim.
    """
    from bench.api import registry
    from bench.api.claim import CLAIMS
    from bench.api.errors import InvalidConfig
    from bench.cli.registered import load_registry
    from reports.claims_document import headline, short_source
    from results.pack import open_run

    if folder is not None and not folder.exists():
        load_registry(plugins)
        if str(folder) in registry.registrations(CLAIMS):
            raise InvalidConfig(
                f"{folder} is a claim; `bench show {folder}` shows it, and `bench claims list` "
                "lists all by the rows of a run folder or a pack."
            )
    folder = folder or _usual_folder()
    found = outcomes(open_run(folder) if folder else None, plugins)
    rows = [
        {
            "claim": one.claim.key,
            "what": one.claim.title,
            "source": one.claim.source,
            "kind": one.claim.kind,
            "cpu_minutes": round(one.minutes, 1),
            "verdict": one.standing,
        }
        for one in found
    ]
    if as_json:
        return json.dumps(rows, indent=1)
    heads = ("claim", "what", "source", "kind", "CPU minutes", "verdict")
    shown = [
        [str(value) for value in {**row, "source": short_source(one.claim.source)[0]}.values()]
        for row, one in zip(rows, found, strict=True)
    ]
    sources = dict(short_source(one.claim.source) for one in found)
    told = f"the rows of {_from_here(folder)}" if folder else "no rows, for nothing was run"
    width = terminal_width()
    ending = f"{headline(found)} Verdicts by {told}."
    return "\n".join(
        (
            fitted_table(shown, heads, width),
            "",
            *(f"{short}: {title}" for short, title in sorted(sources.items())),
            *(wrap(ending, width, break_long_words=False) if width else [ending]),
        )
    )


def _from_here(folder: Path) -> Path:
    """A path as short as one would type it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _usual_folder() -> Path | None:
    """The run folder of claims if there is one, or else the published pack; None without both."""
    if (Path(FOLDER) / "ledger").is_dir():
        return Path(FOLDER)
    return PUBLISHED if PUBLISHED.is_file() else None


def run(options: "RunOptions", keys: tuple[str, ...]) -> int:
    """Run claims; returns the exit code.

    Raises:
        UnknownName: No claim has one of the keys.
        BenchError: An option does not go with the claims, the machine or the folder; nothing was
            computed.
    """
    from bench.claims.cells import asked_claims, plan_of
    from bench.cli.execution import (
        execute,
        open_store,
        refuse_missing_devices,
        refuse_other_preset,
    )
    from bench.cli.registered import load_registry
    from bench.cli.sentences import INTERRUPTED
    from results.pack import open_run

    _ = options.data_directory  # one that is not there is refused before anything runs
    load_registry(options.plugin)
    claims = asked_claims(keys)
    options = replace(
        options,
        out=options.out or FOLDER,
        speed=False,
        # a probe of a later call reads the model of a cell that has finished
        keep_models=True,
    )
    made = plan_of(claims, options)
    refuse_missing_devices(made)
    with open_store(options) as store:
        if made.quality:
            refuse_other_preset(options, store)
        code = _compute(claims, store)
    if made.quality:
        trained = execute(
            options, made, spec={"command": "claims", "keys": list(keys)}, shown=lambda _: ()
        )
        if trained == INTERRUPTED:
            return trained
        code = trained or code
    for left in made.left_out:
        click.echo(f"left out: {left.label}: {left.reason}. This runs it: {left.command}", err=True)
    found = outcomes(open_run(options.folder), options.plugin, options)
    asked = {claim.key for claim in claims}
    for one in found:
        if one.claim.key in asked:
            click.echo(f"{one.claim.key} {one.standing}: {one.claim.title} {one.reason()}".rstrip())
    click.echo(write_page(found, options.folder))
    return code


def _compute(claims: "Iterable[Claim]", store: "Store") -> int:
    """Compute the numbers of claims; the exit code, 1 where a computation failed."""
    from bench.api.errors import BenchError
    from bench.claims.computed import compute

    code = 0
    for claim in claims:
        try:
            if claim.exact and compute(claim, store):
                click.echo(f"computed {claim.key}", err=True)
        except BenchError as error:
            click.echo(str(error), err=True)
            code = 1
    return code


def outcomes(
    stored: "StoredRun | None", plugins: tuple[str, ...], request: "Request | None" = None
) -> "list[ClaimOutcome]":
    """Every claim with what stored rows say of it.

    Args:
        stored: The run; None where nothing was run.
        plugins: Plug-in files.
        request: Device, number type and implementation of the cells; None for those of the rows.

    Raises:
        BenchError: The rows are of a claim that nobody registered.
    """
    from bench.api.errors import BenchError
    from bench.claims.cells import asked_claims
    from bench.claims.verdicts import outcomes_of, request_of
    from bench.cli.registered import load_registry
    from reports.prose import join
    from results.frame import rows_of

    load_registry(plugins)
    rows = rows_of([stored] if stored else [])
    claims = asked_claims(())
    others = {*rows.loc[rows["kind"] == "exact", "task"]} - {claim.key for claim in claims}
    if others:
        raise BenchError(
            f"claims: the run holds {join(sorted(others))} of a plug-in; give --plugin the file "
            "that it came from."
        )
    environments = stored.environments() if stored else {}
    found = outcomes_of(claims, rows, request or request_of(rows), environments)
    return [replace(one, plugins=plugins) for one in found]


def write_page(found: "list[ClaimOutcome]", out: Path) -> str:
    """Write the page; returns the paths as a sentence."""
    from reports.claims_page import write_claims

    html, markdown = write_claims(found, out)
    return f"claims: {html} (Markdown {markdown})"
