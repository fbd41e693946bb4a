"""`bench gpu`: measure what is worth measuring on a machine with a GPU."""

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions
    from bench.gpu.kit import Kit
    from bench.gpu.pieces import State
    from bench.gpu.work import Workshop
    from results.json_values import JsonObject
    from results.store import Store


@click.command("gpu")
@click.option(
    "--variants",
    default="",
    help="Variants to measure, as selectors separated by commas, or 'all'. Default: the roster of "
    "the preset quick.",
)
@click.option(
    "--minutes",
    default=40.0,
    show_default=True,
    help="Wall time of this call (minutes). What does not fit is left for the next call.",
)
@options.out
@options.plugins
@click.option(
    "--rehearse", is_flag=True, help="Do all of it on the processor, at tiny sizes, in minutes."
)
@light_start
@options.run_options
def command(asked: "RunOptions", rehearse: bool) -> None:
    """Measure on a GPU, offline, in pieces that are kept.

    Certificates on the device, ceilings (matrix products, copies, special functions), an A/A
    control, speed at model sizes beside PyTorch's fused attention and torch.compile, prefill and
    decode, the longest sequence that fits, and a few training cells. The same command goes on where
    it stopped; what is finished is in report.md and gpu.md after every call.
    """
    sys.exit(gpu(asked, rehearse=rehearse))


def gpu(options: "RunOptions", *, rehearse: bool) -> int:
    """Do the pieces that are open and fit the time; 0 if none failed and nothing is red."""
    from bench.api.errors import InvalidConfig
    from bench.cli.registered import load_registry
    from bench.running.quality_cells import roster_of

    load_registry(options.plugin)
    if options.minutes <= 0:
        raise InvalidConfig(f"minutes must be above 0, got {options.minutes}.")
    if not options.variants:
        options = replace(options, variants=",".join(roster_of("quick")))
    _ = options.specs  # a wrong name is refused before torch is there
    need_real_packages()
    from bench.cli.execution import make_session, open_store
    from bench.gpu.kit import GPU, REHEARSAL
    from bench.gpu.pieces import State, do_pieces
    from bench.gpu.work import Workshop
    from bench.running.devices import refuse_missing_device

    kit = REHEARSAL if rehearse else GPU
    if not rehearse:
        refuse_missing_device(kit.device, "add --rehearse to do all of it on the processor.")
    out = options.out or ("runs/gpu-rehearsal" if rehearse else "runs/gpu")
    asked = _with_kit(replace(options, out=out), kit)
    store = open_store(asked)
    _refuse_other_machine(store)
    session = make_session(asked, store)
    session.patient = False  # the machine may be lent until the minutes are over
    shop = Workshop(kit, asked, session)
    try:
        pieces, state = shop.pieces(), State(store.folder)
        _write_names(asked, store, shop)
        click.echo(f"{len(pieces)} pieces into {store.folder}", err=True)
        left = do_pieces(pieces, state, options.minutes, lambda line: click.echo(line, err=True))
    except KeyboardInterrupt:
        click.echo(f"\nstopped. What is finished is in {store.folder}.", err=True)
        return 130
    finally:
        store.close()
    return _end(asked, shop, state, len(left))


def _refuse_other_machine(store: "Store") -> None:
    """Refuse to go on with what was measured on another device, or by another torch.

    Times of both would stand in one table, and cells that have finished are not timed again.

    Raises:
        InvalidConfig: The run folder has such measurements.
    """
    from bench.api.errors import InvalidConfig
    from bench.running.worker import WorkerSettings
    from results.environment import collect

    here = _measured_on(asdict(collect(WorkerSettings.threads)))
    for facts in store.environments().values():
        if (there := _measured_on(facts)) != here:
            raise InvalidConfig(
                f"{store.folder} has measurements of {there}, and this is {here}; give another "
                "--out."
            )


def _measured_on(facts: "JsonObject") -> str:
    """The device and the version of torch, of stored facts of a machine."""
    from results.json_values import as_object, as_text

    torch = as_text(as_object(facts.get("packages")).get("torch")) or "unknown"
    return f"{facts.get('gpu') or facts.get('cpu')} with torch {torch}"


def _with_kit(options: "RunOptions", kit: "Kit") -> "RunOptions":
    """The options of every piece; the time is that of the call, not of a piece."""
    return replace(
        options,
        device=kit.device,
        dtype=kit.dtype,
        preset=kit.preset,
        jobs=kit.jobs,
        retry=("timeout", "failed"),
        minutes=0.0,
    )


def _write_names(options: "RunOptions", store: "Store", shop: "Workshop") -> None:
    """Write what a report must know: names and the plan."""
    from bench.cli.written_catalog import write_catalog
    from results.stored_plan import PLAN, StoredPlan, plan_with

    planned = shop.planned()
    tasks = {one.cell.task: one.task for one in planned if one.task}.values()
    write_catalog(options, store, shop.variants, tasks)
    cells = StoredPlan(cells={one.cell.id: one.cell.label for one in planned}, left_out=[])
    store.update_json(PLAN, lambda held: plan_with(held, cells))


def _end(options: "RunOptions", shop: "Workshop", state: "State", left: int) -> int:
    """Write report and summary, and say how to go on."""
    from bench.gpu.summary import SUMMARY, red_variants, summary_text
    from reports.folder import read_folder
    from reports.render import write_report
    from results.environment import collect

    folder = options.folder
    pieces = shop.pieces()
    facts = asdict(collect(shop.session.settings.threads))
    (folder / SUMMARY).write_text(summary_text(pieces, state, facts), encoding="utf-8")
    report = write_report(read_folder(folder)).markdown
    failed = [one for one in pieces if state.of(one.name).get("status") not in (None, "ok")]
    for one in failed:
        known = state.of(one.name)
        click.echo(f"{one.title}: {known['status']}, {known['detail']}", err=True)
    red = red_variants(pieces, state)
    if red:
        click.echo(f"the certificate of {', '.join(red)} is red; report.html says why.", err=True)
    done = sum(state.of(one.name).get("status") == "ok" for one in pieces)
    click.echo(f"{done} of {len(pieces)} pieces are done; {folder / SUMMARY}, {report}")
    if left:
        click.echo("The same command goes on with the rest.")
    return 1 if failed or red else 0
