"""The rosters of the preset `modern` are planned whole, in its budget, and nothing is refused."""

import pytest

from bench.api import registry
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.catalog import describe_task
from bench.running.families import compared_tasks
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.quality_cells import sized_task
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.matching import WITHIN
from bench.training.network_size import parameters
from bench.training.refusals import cell_refusal

COMPARED = [task.name for group in compared_tasks("modern") for task in group]


@pytest.fixture(scope="module")
def whole():
    return plan(Request(preset="modern", minutes=1e6))


def test_every_size_of_the_preset_is_planned_with_controls_and_baseline(whole):
    assert {"recall", "induction", "offset", "parity", "composition"} <= {*COMPARED}
    assert not whole.speed
    for name in COMPARED:
        size = sized_task(name, "modern")[0].show()
        found = {p.cell.variant for p in whole.quality if p.cell.task == size}
        assert {"scaled_dot", "uniform"} <= found
        target = registry.find("task", name).target
        mine = [e for e in target.presets["modern"].comparison or () if not e.task]
        assert {resolve(e.variant).canonical.show() for e in mine} <= found


def test_the_preset_fits_its_budget(whole):
    within = plan(Request(preset="modern"))
    assert len(within.quality) == len(whole.quality)
    assert within.seconds <= PRESETS["modern"].budget_s


def test_no_cell_of_the_preset_is_refused(whole):
    for planned in whole.quality:
        if planned.cell.seed == 0:
            task = registry.find("task", planned.task.selector.name).target
            backbone = planned.cell.backbone
            reason = cell_refusal(planned.spec, task, parse(backbone), planned.cell.slot)
            assert reason is None, f"{planned.cell.variant} on {planned.cell.task}: {reason}"


def test_language_models_have_the_parameters_of_the_baseline_within_two_percent(whole):
    cells = {
        p.cell.variant: p.cell
        for p in whole.quality
        if p.cell.task == "stdlib_code" and p.cell.seed == 0
    }
    sizes = {}
    for name, cell in cells.items():
        built = assemble(cell, None)
        sizes[name] = parameters(built.system, built.task, cell)
    assert len(sizes) > 8
    for name, size in sizes.items():
        assert abs(size / sizes["scaled_dot"] - 1) < WITHIN, name


def test_a_size_may_be_evidence_where_the_task_is_a_pipeline_check():
    size = sized_task("parity", "modern")[0]
    assert "overlap" in describe_task("parity", size).pipeline_check
    assert "overlap" in describe_task("parity", size, "quick").pipeline_check
    assert describe_task("parity", size, "modern").pipeline_check == ""
