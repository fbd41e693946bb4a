"""`bench verify`: run the conformance suite."""

import json
import sys

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages


@click.command("verify")
@click.argument("names", nargs=-1, required=True)
@options.implementation
@options.plugins
@options.jobs
@options.json_output
@light_start
def command(
    names: tuple[str, ...], impl: str, plugin: tuple[str, ...], jobs: int, as_json: bool
) -> None:
    """Run the conformance suite on the variants NAMES, or on 'all'."""
    sys.exit(verify(names, impl, plugin, jobs, as_json))


def verify(
    names: tuple[str, ...], impl: str, plugins: tuple[str, ...], jobs: int, as_json: bool
) -> int:
    """Certify variants in fresh processes; 0 if all are green."""
    from bench.api.selector import parse_list
    from bench.cli.registered import load_registry
    from bench.running.request import asked_variants

    load_registry(plugins)
    specs = asked_variants(parse_list(",".join(names)))
    need_real_packages()
    from bench.conformance import Certificate, as_text
    from bench.running.processes import ProcessExecutor
    from bench.running.runner import Job
    from bench.running.worker import WorkerSettings

    todo = [
        Job(
            kind="certificate",
            label=name,
            variant=spec.canonical.show(),
            impl=impl,
            thorough=True,
            seconds=6.0,
        )
        for name, spec in specs
    ]
    executor = ProcessExecutor(WorkerSettings(plugins=plugins))
    done = {
        job.label: Certificate.from_json(job.variant, result.certificate)
        for job, result in executor.run(todo, jobs, lambda job, share: None)
        if result.certificate is not None
    }
    certificates = [done[job.label] for job in todo]
    if as_json:
        found = {c.variant: {**c.to_json(), "green": c.green()} for c in certificates}
        click.echo(json.dumps(found, indent=1))
    else:
        click.echo(as_text(certificates))
    return 0 if all(certificate.green() for certificate in certificates) else 1
