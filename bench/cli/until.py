"""`bench run --until decided`: seeds are added, look by look, where something is undecided."""

from collections.abc import Callable

import click

from bench.api.errors import InvalidConfig
from bench.cli.run_options import RunOptions
from bench.running.looks import Look, after_look
from bench.running.plan import Plan
from bench.running.session import Session
from results.catalog import RunCatalog
from results.certificate import certificate_entries, is_red
from results.frame import rows_of
from results.json_values import as_object
from results.looks import Looks
from results.pack import Pack
from results.primary_tables import primary_tables
from results.store import Store


def refuse_other_looks(
    options: RunOptions, run: Store | Pack, instead: str = "another --out"
) -> None:
    """Refuse a run folder or a pack whose scores were looked at otherwise: a look has its price.

    Args:
        options: Of the command.
        run: Whose scores the command takes.
        instead: What else to give.

    Raises:
        InvalidConfig: Its looks begin elsewhere.
    """
    held = RunCatalog.of(run).looks
    if options.looks and held and held != options.looks:
        raise InvalidConfig(
            f"{run.folder} was looked at from {held.first} seeds on, the first of them "
            f"{held.first_seed}; give --seeds {held.first} --first-seed {held.first_seed}, or "
            f"{instead}."
        )


def train_until_decided(
    options: RunOptions, looks: Looks, made: Plan, session: Session, planned: Callable[[], None]
) -> None:
    """Add seeds to a plan that has been trained, until nothing is undecided or nothing is left.

    Args:
        options: Of the command.
        looks: When the run looks.
        made: The plan; the cells of every look are added.
        session: What trains.
        planned: Called when cells were added, before they are trained.
    """
    last = looks.most(options.most_seeds)
    for number in range(1, last + 1):
        look = _look(made, looks, number, session.store)
        if number == last or not look.cells:
            click.echo(_ending(options, look), err=True)
            return
        click.echo(
            f"look {number + 1} of {last}: {look.undecided} of {look.hypotheses} hypotheses "
            f"undecided, {len(look.cells)} cells",
            err=True,
        )
        made.quality += look.cells
        planned()
        session.train(look.cells)


def _look(made: Plan, looks: Looks, number: int, store: Store) -> Look:
    catalog = RunCatalog.of(store)
    certificates = certificate_entries(as_object(store.read_json("certificates.json")))
    red = {variant for variant, entry in certificates.items() if is_red(entry)}
    return after_look(made, primary_tables(rows_of([store]), catalog, red), looks, number)


def _ending(options: RunOptions, look: Look) -> str:
    """Why no further look is taken."""
    if not look.hypotheses:
        return "nothing to decide: no contender and reference have scores of two common seeds."
    if not look.undecided:
        return f"decided: all {look.hypotheses} hypotheses."
    stay = f"{look.undecided} of {look.hypotheses} hypotheses stay undecided"
    if look.unaffordable and not look.cells:
        minutes = options.budget_s / 60
        return f"{stay}: more seeds do not fit {minutes:g} minutes; --minutes gives more."
    return (
        f"{stay}: the next look has more than {options.most_seeds} seeds; --most-seeds adds some."
    )
