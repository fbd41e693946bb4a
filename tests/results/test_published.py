"""The published packs are of this code: their cells are read, resolved and planned as today."""

import random
import re
from pathlib import Path

import pytest

import results
from bench.api.cell import cell_from_dict, parse_label
from bench.api.loading import load_package
from bench.claims.cells import asked_claims
from bench.claims.verdicts import outcomes_of, request_of
from bench.running.plan import plan
from bench.running.request import Request
from bench.running.revisions import canonical_cell, revisions_of
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops
from bench.training.quality import NETWORK_FLOPS
from reports.folder import read_folder
from reports.sections.mixed_environments import mixed_environments, places_of, shared_facts
from results.frame import rows_of
from results.pack import Pack

PACKS = sorted((Path(__file__).parents[2] / "results" / "published").glob("*.parquet"))
NAMES = [path.stem for path in PACKS]
MOST_BYTES = 5_000_000
NOT_RUN = {
    "quick": (set(), "a whole run, with a fifth seed"),
    "modern": (set(), "a whole run, some tasks later than the rest"),
    "flagship": (
        {"translation"},
        "its transformers take days on two cores",
    ),
    "families": ({"stsb"}, "its data were not on the machine"),
}
"""Tasks of the plan with cells that were not run, and why."""

load_package("variants")
load_package("tasks")


@pytest.fixture(scope="module")
def runs():
    return {path.stem: read_folder(path) for path in PACKS}


def test_packs_are_small():
    assert NAMES == [
        "claims",
        "erasure",
        "families",
        "flagship",
        "fresh_seeds",
        "milk_latency",
        "modern",
        "multi30k",
        "quantity_end",
        "quick",
        "serving",
        "serving_gpu",
    ]
    assert sum(path.stat().st_size for path in PACKS) < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_every_published_cell_has_the_id_and_the_text_that_it_would_have_today(runs, name):
    for outcome in runs[name].outcomes:
        cell = outcome.cell
        assert cell.id == outcome.record.id, cell.label
        assert parse_label(cell.label) == cell
        assert canonical_cell(cell) == cell, cell.label
        assert cell.revisions == revisions_of(cell), cell.label


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_a_planned_cell_is_published_or_its_task_is_named_with_a_reason(runs, name):
    published = {outcome.record.id for outcome in runs[name].outcomes}
    planned = {cell.id: cell for cell in plan(Request(preset=name, jobs=2)).cells}
    missing = {cell.task.partition("[")[0] for id_, cell in planned.items() if id_ not in published}
    tasks, reason = NOT_RUN[name]
    assert missing == tasks, reason


@pytest.mark.parametrize("name", NAMES)
def test_what_a_pack_says_beside_its_rows_is_about_its_cells(runs, name):
    folder, run = runs[name], results.load(PACKS[NAMES.index(name)])
    assert set(run.rows["environment"]) <= set(run.environments)
    # computed numbers of claims are named in their claim
    rows, cells = (one[one["kind"] != "exact"] for one in (run.rows, run.cells))
    assert set(rows["metric"]) <= {"", *run.catalog["metrics"]}
    assert set(cells[cells["kind"] != "speed"]["task"]) <= set(run.catalog["tasks"])
    assert {*cells["variant"], run.catalog["baseline"]} <= set(run.catalog["variants"])
    assert set(run.certificates) <= set(run.catalog["variants"])
    assert not folder.damage


def test_the_numbers_of_a_published_claim_are_of_one_clean_commit():
    pack = Pack(PACKS[NAMES.index("claims")])
    rows, environments = rows_of([pack]), pack.environments()
    found = outcomes_of(asked_claims(()), rows, request_of(rows), environments)
    commits = {one.claim.key: one.commits for one in found if one.ran}
    waiting = sorted(one.claim.key for one in found if not one.ran and not one.claim.missing)
    limits = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
    told = re.search(r"Not run since: (.*?)\.", limits)
    assert waiting == (re.findall(r"C\d\d", told[1]) if told else [])
    assert {key for key, of in commits.items() if len(of) != 1} == set()
    assert not [key for key, of in commits.items() if "uncommitted" in of[0]]


@pytest.mark.parametrize("name", NAMES)
def test_every_published_cell_is_of_code_that_was_committed(name):
    pack = Pack(PACKS[NAMES.index(name)])
    environments = pack.environments()
    cells = pack.ledger().newest().values()
    dirty = [one.id for one in cells if environments[one.environment]["git_dirty"]]
    assert not dirty


@pytest.mark.parametrize("name", [name for name in NAMES if name != "claims"])
def test_a_published_comparison_is_of_one_commit_and_processor_or_says_that_it_is_not(runs, name):
    folder = runs[name]
    timed = [outcome for outcome in folder.outcomes if outcome.cell.kind == "speed"]
    assert folder.comparisons or timed
    for comparison in folder.comparisons:
        shared = [fact.partition(" ")[0] for fact in shared_facts(folder, comparison)]
        assert "processor" in shared or places_of(folder, comparison), comparison.title
        assert "commit" in shared or mixed_environments(folder, comparison), comparison.title
    # times of one place are compared without a note, so they have no two kinds at all
    places: dict[object, set[tuple[object, ...]]] = {}
    for outcome in timed:
        cell, facts = outcome.cell, folder.environments[outcome.record.environment]
        place = (cell.task, cell.slot, cell.dtype, cell.device, cell.impl, cell.protocol)
        kind = tuple(facts[fact] for fact in ("git_revision", "cpu", "gpu"))
        places.setdefault(place, set()).add(kind)
    assert [place for place, kinds in places.items() if len(kinds) > 1] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "claims"])
def test_today_one_published_comparison_needs_to_say_so(runs, name):
    folder = runs[name]
    mixed = [one.title for one in folder.comparisons if mixed_environments(folder, one)]
    assert mixed == (["translation"] if name == "flagship" else [])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick", "modern", "flagship", "families"])
def test_published_flops_of_networks_are_counted_again(name):
    records = Pack(PACKS[NAMES.index(name)]).ledger().newest().values()
    counted = {
        cell_from_dict(dict(record.cell)): row.value
        for record in records
        for row in record.rows
        if row.metric == NETWORK_FLOPS and record.cell["seed"] == 0 and not record.data
    }
    for cell in random.Random(0).sample(sorted(counted, key=lambda cell: cell.id), 8):
        built = assemble(cell, None)
        assert forward_flops(built.system, built.task, cell) == counted[cell], cell.label


def test_every_published_figure_is_shown_by_its_report():
    reports = Path(__file__).parents[2] / "reports" / "published"
    figures = list(reports.glob("*/figures/*.svg"))
    assert figures
    for path in figures:
        pages = [page.read_text(encoding="utf-8") for page in path.parents[1].glob("*.md")]
        assert any(f"figures/{path.name})" in page for page in pages), path
