"""`bench verify`: run the conformance suite."""

import json
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from bench.api.checks import MEANING
from bench.api.errors import InvalidConfig, UnknownName
from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.api.resolve import VariantSpec
    from bench.cli.run_options import RunOptions
    from bench.conformance import Certificate, RunsOn
    from bench.running.job import Job
    from bench.timing.shape import AttendShape


@click.command("verify")
@click.argument("names", nargs=-1, required=True)
@options.implementation
@options.device
@options.dtype
@click.option(
    "--shape",
    multiple=True,
    metavar="SHAPE",
    help="Compare at this shape, too, several times if wanted: rows, heads, lengths and width of a "
    "head as B=4,H=16,L=64+256,E=64, or small, model, long, serving or serving_long. "
    "Default: small shapes of the suite.",
)
@options.plugins
@options.jobs
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME",
    help="Run this check alone, several times if wanted. Default: all of them.",
)
@options.json_output
@light_start
@options.without_training
@options.run_options
def command(asked: "RunOptions", names: tuple[str, ...], checks: tuple[str, ...]) -> None:
    """Run the conformance suite on variants, or on 'all'.

    With --device, --dtype or --shape the answers and gradients are also computed there, and
    compared with float64 on the processor.
    """
    sys.exit(verify(replace(asked, variants=",".join(names)), checks))


def verify(options: "RunOptions", checks: tuple[str, ...] = ()) -> int:
    """Certify variants in worker processes; 0 if all that have such code are green, and one is."""
    from bench.cli.registered import load_registry
    from bench.running.devices import refuse_missing_device

    refuse_unknown_checks(checks)
    load_registry(options.plugin)
    _ = options.specs  # a wrong name is refused before torch is there
    shapes = every_regime(options) if options.shape else []
    need_real_packages()
    refuse_missing_device(options.device)
    from bench.conformance import as_text, compared_on

    on = compared_on(options.device, options.dtype, shapes, options.impl)
    if checks and on is not None:
        raise InvalidConfig(
            "--check runs checks in float64 on the processor, which those of --device, --dtype, "
            "--shape and compiled code are not; leave these out, or leave out --check."
        )
    certificates = _certified(options, _jobs(options, checks, on))
    if options.as_json:
        found = {
            c.variant: {**c.to_json(), "green": c.green(), "refused": c.refused}
            for c in certificates
        }
        click.echo(json.dumps(found, indent=1))
    else:
        click.echo(as_text(certificates))
    return 0 if {one.verdict for one in certificates} - {"refused"} == {"green"} else 1


def refuse_unknown_checks(names: tuple[str, ...]) -> None:
    """Refuse a misspelled check here, where one sentence says it for all variants.

    Raises:
        UnknownName: There is no such check.
    """
    for name in names:
        if name not in MEANING:
            raise UnknownName.among("check", name, MEANING)


def _jobs(options: "RunOptions", checks: tuple[str, ...], on: "RunsOn | None") -> "list[Job]":
    """A certificate in float64 of each variant and, where one was asked, one of where it runs."""
    from bench.running.job import Job

    return [
        Job(
            kind="certificate",
            label=name,
            variant=spec.canonical.show(),
            impl=options.impl,
            thorough=True,
            checks=checks,
            seconds=6.0,
            on=where,
        )
        for name, spec in options.specs
        for where in ([None] if on is None else [None, _where_it_stands(spec, on)])
    ]


def _where_it_stands(spec: "VariantSpec", on: "RunsOn") -> "RunsOn":
    """Without the shapes of regimes in which a variant has no place, unless it has none at all."""
    from bench.api.places import timed_place

    here = [
        shape
        for shape in on.shapes
        if spec.refusal(timed_place(shape.regime, with_heads=shape.place == "slot")) is None
    ]
    return replace(on, shapes=tuple(here) or on.shapes)


def _certified(options: "RunOptions", todo: "list[Job]") -> "list[Certificate]":
    """Run the jobs, and show how far they are; a variant has the checks of all its jobs."""
    from bench.conformance import Certificate
    from bench.running.machine_lock import machine_lock
    from bench.running.processes import ProcessExecutor
    from bench.running.progress import Display
    from bench.running.worker import WorkerSettings
    from results.certificate import CertificateEntry, with_checks

    executor = ProcessExecutor(WorkerSettings(plugins=options.plugin))
    done: dict[str, CertificateEntry] = {}
    display = Display(todo, options.jobs, sys.stderr) if len(todo) > 1 else None
    watch = display.watch if display else (lambda job, share: None)
    say = display.say if display else partial(click.echo, err=True)
    try:
        with machine_lock(exclusive=False, say=say):
            for job, result in executor.run(todo, options.jobs, watch):
                assert result.certificate is not None, "what this job is for"
                known = done.get(job.variant)
                done[job.variant] = (
                    result.certificate if known is None else with_checks(known, result.certificate)
                )
                if display:
                    told = Certificate.from_json(job.variant, result.certificate)
                    display.finish(job, told.verdict)
    finally:
        if display:
            display.close()
    names = dict.fromkeys(job.variant for job in todo)
    return [Certificate.from_json(name, done[name]) for name in names]


def every_regime(options: "RunOptions") -> "list[AttendShape]":
    """The shapes that were asked for, in every regime; a variant is compared where it can stand."""
    from bench.api.call import REGIMES

    return [replace(shape, regime=regime) for shape in options.shapes for regime in REGIMES]
