"""`bench ablate`: change one axis of a base at a time."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions


@click.command("ablate")
@click.option("--base", default="", help="Variant to change, as a selector.")
@click.option("--axis", default="", help="Axis to change: score, position, normalizer ...")
@options.selection
@options.probes
@options.reuse
@options.running
@light_start
@options.run_options
def command(asked: "RunOptions", base: str, axis: str) -> None:
    """Change one axis of a variant at a time, and compare.

    The report has the paired difference of each change to the variant as it is.
    """
    sys.exit(ablate(base, axis, asked))


def ablate(base: str, axis: str, options: "RunOptions") -> int:
    """Run an ablation; returns the exit code.

    Raises:
        InvalidConfig: Nothing says what to change.
    """
    from bench import ablate as ablations
    from bench.api.errors import InvalidConfig
    from bench.api.resolve import resolve
    from bench.cli.registered import load_registry
    from bench.cli.spec_file import read_spec
    from results.json_values import as_text

    options, asked_before = read_spec(options, "ablate")
    if asked_before:
        base, axis = as_text(asked_before.get("base")), as_text(asked_before.get("axis"))
    if not (base and axis):
        raise InvalidConfig("ablate: give --base and --axis, or --spec.")
    load_registry(options.plugin)
    asked = ablations.ablation(base, axis)
    folder = options.out or f"runs/ablate-{resolve(base).name}-{axis}"
    options = replace(options, out=folder, speed=False, baseline=base)
    made = ablations.plan_ablation(options, asked, base)
    need_real_packages()
    from bench.cli.execution import execute

    spec = {"command": "ablate", "base": base, "axis": axis}
    return execute(options, made, ablations.changed_axes(asked), spec)
