"""`bench ablate`: change one axis of a base at a time."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions


@click.command("ablate")
@options.what_to_change
@options.selection
@options.probes
@options.reuse
@options.running
@light_start
@options.run_options
def command(asked: "RunOptions", base: str, axis: str) -> None:
    """Change one axis of a variant at a time, and compare.

    All are trained at the learning rate of the variant as it is, unless --training gives one.

    The report has the paired difference of each change to the variant as it is. `bench plan` with
    the same --base and --axis shows what would run.
    """
    sys.exit(ablate(base, axis, asked))


def ablate(base: str, axis: str, options: "RunOptions") -> int:
    """Run an ablation; returns the exit code.

    Raises:
        InvalidConfig: Nothing says what to change, or the folder holds changes of another base.
    """
    from bench import ablate as ablations
    from bench.api.errors import InvalidConfig
    from bench.cli.budgets import jobs_of_budget, tell_of_budget
    from bench.cli.registered import load_registry
    from bench.cli.spec_file import read_spec
    from results.json_values import as_text

    options, asked_before = read_spec(options, "ablate")
    if asked_before:
        base, axis = as_text(asked_before.get("base")), as_text(asked_before.get("axis"))
    if not (base and axis):
        raise InvalidConfig("ablate: give --base and --axis, or --spec.")
    _ = options.data_directory  # one that is not there is refused before anything runs
    load_registry(options.plugin)
    asked = ablations.ablation(base, axis)
    out = options.out or ablations.usual_folder(asked)
    options = replace(ablations.compared_with(base, options), out=out)
    spec = {"command": "ablate", "base": base, "axis": axis}
    made = ablations.plan_ablation(options, asked, base, jobs_of_budget(options, spec))
    need_real_packages()
    from bench.cli.execution import execute

    _refuse_other_base(options.folder, asked.base.canonical.show())
    tell_of_budget(options, made)
    return execute(options, made, ablations.changed_axes(asked), spec)


def _refuse_other_base(folder: Path, base: str) -> None:
    """Refuse a folder with an ablation of another base: a catalog has one base for each variant.

    Args:
        folder: The run folder.
        base: Canonical selector.

    Raises:
        InvalidConfig: The folder holds one.
    """
    from bench.api.errors import InvalidConfig
    from results.catalog import RunCatalog
    from results.run_path import LEDGER
    from results.store import Store

    if not (folder / LEDGER).is_dir():
        return
    held = RunCatalog.of(Store(folder))
    others = sorted(held.ablated - {base})
    if others:
        raise InvalidConfig(
            f"ablate: {folder} holds an ablation of {others[0]}, and its table would lose the "
            f"variants that are changes of {base}, too; give another --out."
        )
