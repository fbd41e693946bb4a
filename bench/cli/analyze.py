"""`bench analyze`: run probes on the models that a run saved."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.api.command import EXAMPLES
from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions


@click.command("analyze")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--probes", default="all", show_default=True, help="Probes to run, or 'all'.")
@click.option(
    "--examples",
    default=EXAMPLES,
    show_default=True,
    help="Test examples for each model, in whole batches. A test begins with its shortest inputs, "
    "so these are the shortest; more than it has are all.",
)
@options.jobs
@options.data_directory
@options.plugins
@options.retry
@options.inline
@light_start
@options.run_options
def command(asked: "RunOptions", folder: Path, examples: int) -> None:
    """Run probes on the models that a run saved.

    A run saves them with --keep-models; rows go into its folder.
    """
    sys.exit(analyze(folder, examples, asked))


def analyze(folder: Path, examples: int, options: "RunOptions") -> int:
    """Run probes on every model that a run saved; returns the exit code.

    Raises:
        NotARunFolder: The folder has no ledger.
        InvalidConfig: The run saved no models, or had a plug-in that was not given.
    """
    from bench.cli.registered import load_registry, refuse_without_plugins
    from bench.training.analysis import asked_probes
    from results.run_path import refuse_what_is_no_folder

    refuse_what_is_no_folder(folder)
    load_registry(options.plugin)
    _ = options.data_directory  # one that is not there is refused before anything runs
    chosen = asked_probes(options.probes)
    need_real_packages()
    from bench.api.cell import cell_from_dict
    from bench.api.errors import InvalidConfig
    from bench.cli.execution import guarded, make_session
    from bench.cli.option_groups import jobs_on
    from bench.cli.run_end import probe_parts
    from bench.cli.written_catalog import add_to_catalog
    from bench.running.devices import refuse_missing_device
    from bench.training.analysis import analysis_cells, model_path
    from results.store import Store

    store = Store(folder)
    refuse_without_plugins(store, options.plugin)
    finished = [record for record in store.ledger().newest().values() if record.status == "ok"]
    cells = [cell_from_dict(dict(record.cell)) for record in finished]
    models = folder / "models"
    trained = [c for c in cells if c.kind == "quality" and model_path(models, c).is_file()]
    if not trained:
        raise InvalidConfig(
            f"{folder} has no models; run with --keep-models into another --out, "
            "because finished cells are not trained again."
        )
    for cell in trained:
        refuse_missing_device(cell.device)
    wanted = analysis_cells(trained, chosen, examples)  # refuses before anything is written
    jobs = jobs_on({cell.device for cell in trained}, options.jobs)
    options = replace(options, out=str(folder), jobs=jobs)
    session = make_session(options, store)
    add_to_catalog(options, store)
    return guarded(options, session, lambda: session.analyze(wanted), probe_parts)
