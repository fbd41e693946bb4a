"""The command line: it selects; it does not configure. Heavy imports wait until they are needed."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench import __version__
from bench.api.errors import BenchError
from bench.api.registry import PLAIN
from bench.running.presets import PRESETS

if TYPE_CHECKING:
    from bench.cli.options import RunOptions

PRESET_HELP = f"{', '.join(PRESETS)}; `list presets` says how big each is."


def _selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say what to run; shared by run, plan, ablate and study."""
    for option in reversed(
        (
            click.option(
                "--tasks", default="", help="Task selectors; empty for the default tasks."
            ),
            click.option("--backbone", default="", help="Backbone selector; empty for the task's."),
            click.option("--slot", default="", help="Slot that holds the variant."),
            click.option("--preset", default="quick", show_default=True, help=PRESET_HELP),
            click.option("--minutes", default=0.0, help="Time to fill; 0 for the preset's."),
            click.option("--seeds", default=0, help="Number of paired seeds; 0 for the preset's."),
            click.option("--first-seed", default=0, help="First seed."),
            click.option("--training", default="", help="Protocol options, adam[steps=200]."),
            click.option("--baseline", default=PLAIN, show_default=True),
            click.option("--device", default="cpu", show_default=True, help="cpu or cuda."),
            click.option("--dtype", default="float32", show_default=True),
            click.option("--impl", default="auto", show_default=True, help="Code to use."),
            click.option("--jobs", default=0, help="Processes at once; 0 for one a core."),
            click.option("--plugin", multiple=True, help="Python file that registers variants."),
        )
    ):
        command = option(command)
    return command


def _running(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say where results go and how work is done."""
    for option in reversed(
        (
            click.option("--spec", default="", help="spec.json of an earlier run, to do it again."),
            click.option("--out", default="", help="Run folder; under runs/ if not given."),
            click.option("--data-dir", default="", help="Data directory (BENCH_DATA_DIR)."),
            click.option("--retry", multiple=True, help="Ask cells of this status again."),
            click.option("--keep-models", is_flag=True, help="Keep trained weights."),
            click.option("--inline", is_flag=True, help="No processes; for debuggers."),
            click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout."),
        )
    ):
        command = option(command)
    return command


class BenchGroup(click.Group):
    """Commands whose errors are one sentence, and that suggest a name for a wrong one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the closest command."""
        if args and self.get_command(ctx, args[0]) is None:
            from bench.api.errors import UnknownName

            found = UnknownName.among("command", args[0], self.list_commands(ctx))
            raise click.UsageError(str(found))
        return super().resolve_command(ctx, args)


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bench")
def cli() -> None:
    """Prove attention mechanisms correct, then measure them honestly.

    Selectors read NAME[key=value,...], for example additive[width=64] or
    shaw_rpr[normalizer=softmax]. Exit codes: 0 done (refused cells included), 1 some cell failed,
    2 wrong usage, 130 interrupted.
    """


@cli.command()
@click.option("--variants", default="all", show_default=True, help="Selectors, or 'all'.")
@_selection
@click.option("--quality/--no-quality", default=True, help="Train and score.")
@click.option("--speed/--no-speed", default=True, help="Time the variants.")
@click.option("--verify/--no-verify", default=True, help="Certify before ranking.")
@click.option("--cell", "cells", multiple=True, help="A cell label; replaces the selection.")
@click.option("--probes", default="", help="Look at each trained model: names, or 'all'.")
@_running
def run(**options: Any) -> None:
    """Run variants on tasks, time them, and write a report."""
    from bench.cli import runs

    sys.exit(runs.run(_options(options)))


@cli.command()
@click.option("--variants", default="all", show_default=True, help="Selectors, or 'all'.")
@_selection
@click.option("--quality/--no-quality", default=True, help="Train and score.")
@click.option("--speed/--no-speed", default=True, help="Time the variants.")
@click.option("--data-dir", default="", help="Data directory (BENCH_DATA_DIR).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout.")
def plan(**options: Any) -> None:
    """Show what a run would do, without doing it."""
    from bench.cli import runs

    runs.show_plan(_options(options))


@cli.command()
@click.option("--base", default="", help="Variant to change.")
@click.option("--axis", default="", help="Axis to change: score, position, normalizer ...")
@_selection
@click.option("--probes", default="", help="Look at each trained model: names, or 'all'.")
@_running
def ablate(base: str, axis: str, **options: Any) -> None:
    """Change one axis of a base at a time; a table with the paired difference to the base."""
    from bench.cli import runs

    sys.exit(runs.ablate(base, axis, _options(options)))


@cli.command()
@click.option("--variants", default="", help="Selectors, each tuned with the same budget.")
@_selection
@click.option("--trials", default=8, show_default=True, help="Trials of every variant.")
@click.option("--trial-seconds", default=0.0, help="CPU seconds a trial; 0 for the task's steps.")
@click.option("--sampler", default="random", show_default=True, help="random, qmc or tpe.")
@click.option("--storage", default="", help="Optuna storage URL; empty for the run folder.")
@click.option("--final-seeds", default=3, show_default=True, help="Fresh seeds of the winner.")
@_running
def study(
    trials: int,
    trial_seconds: float,
    sampler: str,
    storage: str,
    final_seeds: int,
    **options: Any,
) -> None:
    """Tune variants with equal budgets; rerun each winner on fresh seeds."""
    from bench.cli import runs

    tuning = {
        "trials": trials,
        "trial_seconds": trial_seconds,
        "sampler": sampler,
        "storage": storage,
        "final_seeds": final_seeds,
    }
    sys.exit(runs.study(_options(options), tuning))


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--probes", default="all", show_default=True, help="Selectors, or 'all'.")
@click.option("--examples", default=256, show_default=True, help="Test examples a model.")
@click.option("--jobs", default=0, help="Processes at once; 0 for one a core.")
@click.option("--data-dir", default="", help="Data directory (BENCH_DATA_DIR).")
@click.option("--plugin", multiple=True, help="Python file that registers probes.")
@click.option("--inline", is_flag=True, help="No processes; for debuggers.")
def analyze(folder: Path, probes: str, examples: int, **options: Any) -> None:
    """Look at the models that a run kept (--keep-models); rows go into its folder."""
    from bench.cli import runs

    sys.exit(runs.analyze(folder, probes, examples, _options(options)))


@cli.command("list")
@click.argument("kind", default="variants")
@click.option("--plugin", multiple=True, help="Python file that registers variants.")
@click.option("--matrix", is_flag=True, help="Variants by regimes, with the reasons of refusals.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout.")
def list_names(kind: str, plugin: tuple[str, ...], matrix: bool, as_json: bool) -> None:
    """List variants, tasks, backbones, probes, presets, metrics, or an axis's components."""
    from bench.cli import shows

    if matrix and kind != "variants":
        raise click.UsageError(f"--matrix is about variants, not {kind}.")
    shown = shows.matrix(plugin, as_json) if matrix else shows.listing(kind, plugin, as_json)
    click.echo(shown)


@cli.command()
@click.argument("name")
@click.option("--plugin", multiple=True, help="Python file that registers variants.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout.")
@click.option("--markdown", is_flag=True, help="With the name `tasks`: all of them as one page.")
@click.option("--data-dir", default="", help="Data directory (BENCH_DATA_DIR).")
def show(name: str, plugin: tuple[str, ...], as_json: bool, markdown: bool, data_dir: str) -> None:
    """Show a variant, a task or a component: paper, options, ranges, default task."""
    from bench.cli import shows

    if markdown:
        if name != "tasks" or as_json:
            raise click.UsageError("--markdown is for `show tasks`, without --json.")
        click.echo(shows.tasks_page(plugin, data_dir), nl=False)
        return
    click.echo(shows.showing(name, plugin, as_json))


@cli.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--impl", default="auto", show_default=True, help="Code to certify.")
@click.option("--plugin", multiple=True, help="Python file that registers variants.")
@click.option("--jobs", default=0, help="Processes at once; 0 for one a core.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout.")
def verify(
    names: tuple[str, ...], impl: str, plugin: tuple[str, ...], jobs: int, as_json: bool
) -> None:
    """Run the conformance suite on NAMES (or all)."""
    from bench.cli import shows

    sys.exit(shows.verify(names, impl, plugin, jobs, as_json))


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write; default FOLDER.")
@click.option("--publish", is_flag=True, help="Leave out sentences without an open licence.")
@click.option("--pack", type=click.Path(path_type=Path), help="Write the rows to this file too.")
@click.option("--export", is_flag=True, help="Write CSV and LaTeX tables too.")
@click.option(
    "--handbook", type=click.Path(path_type=Path), help="Write mechanisms.md into this folder too."
)
@click.option(
    "--figures", type=click.Path(path_type=Path), help="Draw every showcase into this folder too."
)
@click.option("--merge", multiple=True, type=click.Path(path_type=Path), help="Add other runs.")
@click.option("--tasks", default="", help="Report these tasks alone, into --out; by name.")
def report(
    folder: Path,
    out: Path | None,
    tasks: str,
    publish: bool,
    pack: Path | None,
    export: bool,
    handbook: Path | None,
    figures: Path | None,
    merge: tuple[Path, ...],
) -> None:
    """Write report.html and report.md of a run folder or a published pack."""
    from bench.cli import shows

    written = shows.report(
        folder,
        out,
        publish=publish,
        pack=pack,
        export=export,
        handbook=handbook,
        figures=figures,
        merge=merge,
        tasks=tasks,
    )
    click.echo(written)


@cli.group()
def data() -> None:
    """Get data sets and look at what is here."""


@data.command("list")
@click.option("--data-dir", default="", help="Data directory (BENCH_DATA_DIR).")
def data_list(data_dir: str) -> None:
    """List data sets and where they would come from."""
    from bench.cli import shows

    click.echo(shows.data_sets(data_dir))


@data.command("fetch")
@click.argument("name")
def data_fetch(name: str) -> None:
    """Download a data set from the hub; records revision and hash."""
    from bench.cli import shows

    click.echo(shows.fetch(name))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON alone on stdout.")
def env(as_json: bool) -> None:
    """Print the facts of this machine that every row carries."""
    from bench.cli import shows

    click.echo(shows.environment(as_json))


def _options(given: dict[str, Any]) -> "RunOptions":
    from bench.cli.options import RunOptions

    return RunOptions(**given)


def main() -> None:
    """Run the command line; errors of the user are one sentence and exit code 2."""
    try:
        cli(prog_name="python -m bench", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        click.echo(f"{error.format_message()}", err=True)
        sys.exit(2)
    except BenchError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(2)
