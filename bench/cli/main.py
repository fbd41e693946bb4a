"""The command line: one file a command. It selects and does not configure.

Packages that take long to import are imported inside the functions that need them.
"""

import sys

import click

from bench import __version__
from bench.cli import (
    ablate,
    analyze,
    calibrate,
    claims,
    data,
    demo,
    env,
    gpu,
    new,
    plan,
    report,
    reproduce,
    run,
    show,
    study,
    verify,
)
from bench.cli import list as list_names
from bench.cli.command_group import BenchGroup
from bench.cli.sentences import ended_with_a_sentence

COMMANDS = (
    demo,
    list_names,
    show,
    plan,
    run,
    report,
    reproduce,
    ablate,
    study,
    calibrate,
    analyze,
    claims,
    verify,
    gpu,
    new,
    data,
    env,
)
"""Modules of the commands, in the order of `--help`; each has its command as `command`."""


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bench")
def cli() -> None:
    """Prove attention mechanisms correct, then measure quality, speed and memory.

    A selector is NAME[key=value,...], for example additive[width=64] or
    shaw_rpr[normalizer=sparsemax]. Exit codes: 0 done, 1 some cell failed, a
    certificate is red or every cell was refused (see run --fail-on), 2 wrong usage,
    130 interrupted.
    """


for module in COMMANDS:
    cli.add_command(module.command)


def main() -> None:
    """Run the command line; errors of the user are one sentence and exit code 2."""
    sys.exit(ended_with_a_sentence(lambda: cli(prog_name="python -m bench", standalone_mode=False)))
