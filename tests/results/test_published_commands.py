"""The commands of a published pack plan its cells, in the order in which they were measured."""

import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bench.api.cell import Cell, cell_from_dict
from bench.api.loading import load_package
from bench.claims.cells import asked_claims, plan_of
from bench.cli.option_groups import filled
from bench.cli.run import cell_plan
from bench.cli.run import command as run_command
from bench.cli.run_options import RunOptions
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.analysis import analysis_cells, asked_probes
from results.catalog import CATALOG
from results.json_values import as_list
from results.pack import Pack

PACKS = Path(__file__).parents[2] / "results" / "published"
OTHERS = ("claims", "serving_gpu")
"""Packs that have a test of their own."""
TRAINED = sorted({path.stem for path in PACKS.glob("*.parquet")} - {*OTHERS})
"""Packs whose commands make exactly their cells, but for `NOT_MADE` and `NO_LONGER`."""
NOT_MADE = {
    "families": (21, "the data of stsb were not on the machine"),
}
"""Planned cells that a pack does not have: their number, and why."""
NO_LONGER = {"families": (24, "third seeds of comparisons that were marked as checks later")}
"""Cells of a pack that its commands plan no more: their number, and why."""

load_package("variants")
load_package("tasks")


def commands_of(pack: Pack) -> list[tuple[str, ...]]:
    """The words of each command, after the interpreter and the name of the module."""
    catalog = pack.read_json(CATALOG)
    assert catalog is not None
    lines = [shlex.split(str(command)) for command in as_list(catalog["commands"])]
    assert all(line[:3] == ["python", "-m", "bench"] for line in lines)
    return [tuple(line[3:]) for line in lines]


@cache
def planned(words: tuple[str, ...]) -> tuple[Cell, ...]:
    """The cells of a command `run`, read and planned as the command line does it."""
    assert words[0] == "run"
    options = filled(RunOptions, dict(run_command.make_context("run", [*words[1:]]).params))
    made = cell_plan(options) if options.cells else plan(options)
    probed = []
    if options.probes:
        trained = [one.cell for one in made.quality]
        probed = analysis_cells(trained, asked_probes(options.probes))
    return (*made.cells, *probed)


@pytest.mark.parametrize("name", TRAINED)
def test_the_commands_of_a_pack_plan_exactly_its_cells(name):
    pack = Pack(PACKS / f"{name}.parquet")
    published = set(pack.ledger().newest())
    made = [{cell.id for cell in planned(words)} for words in commands_of(pack)]
    together = set().union(*made)
    more, reason = NO_LONGER.get(name, (0, ""))
    assert len(published - together) == more, reason
    lacking, reason = NOT_MADE.get(name, (0, ""))
    assert len(together - published) == lacking, reason
    # none of them stands there for nothing
    for at, cells in enumerate(made):
        others = set().union(*made[:at], *made[at + 1 :])
        assert cells - others, commands_of(pack)[at]


@pytest.mark.parametrize("name", TRAINED)
def test_the_commands_of_a_pack_stand_in_the_order_of_its_cells(name):
    pack = Pack(PACKS / f"{name}.parquet")
    finished = {id_: record.finished for id_, record in pack.ledger().newest().items()}
    seen, first = set[str](), list[str]()
    for words in commands_of(pack):
        # a cell that two commands plan was made by the first of them
        mine = {cell.id for cell in planned(words)} & set(finished) - seen
        first.append(min(finished[id_] for id_ in mine))
        seen |= mine
    assert first == sorted(first)


def test_a_pack_of_a_gpu_has_cells_of_its_commands_in_rounds_of_its_time():
    pack = Pack(PACKS / "serving_gpu.parquet")

    def without_rounds(cell: Cell) -> tuple[str, ...]:
        assert cell.kind == "speed"
        return (cell.task, cell.variant, cell.slot, cell.impl, cell.dtype, cell.device)

    stored = [cell_from_dict(dict(one.cell)) for one in pack.ledger().newest().values()]
    today = [cell for words in commands_of(pack) for cell in planned(words)]
    assert {without_rounds(cell) for cell in stored} <= {without_rounds(cell) for cell in today}
    # told among the known limits of its report
    assert not {cell.id for cell in stored} & {cell.id for cell in today}
    catalog = pack.read_json(CATALOG)
    assert catalog is not None
    assert any("35c9da56" in str(note) for note in as_list(catalog["notes"]))


def test_claims_that_were_run_plan_the_published_cells_of_claims():
    pack = Pack(PACKS / "claims.parquet")
    keys = {word for words in commands_of(pack) for word in words if word[0] == "C"}
    assert keys <= {claim.key for claim in asked_claims(())}
    assert commands_of(pack)[0][:3] == ("claims", "run", "all")
    claims = asked_claims(())
    both = [*claims, *(replace(one, again=0) for one in claims if one.again)]
    trained = {cell.id for cell in plan_of(both, Request(speed=False)).cells}
    records = pack.ledger().newest()
    assert trained == {id_ for id_, one in records.items() if one.cell["kind"] != "exact"}
