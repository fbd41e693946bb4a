"""FLOPs of whole networks, counted once a cell."""

import torch

from bench.running.plan import plan
from bench.running.request import Request
from bench.training import quality
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops
from bench.training.quality import NETWORK_FLOPS, train_cell

STEPS = "adam[steps=2,evaluate_every=2]"


def cell_of(variants, **changed):
    asked = {"tasks": "transduction", "preset": "smoke", "speed": False, "training": STEPS}
    made = plan(Request(variants=variants, **{**asked, **changed}))
    return next(one.cell for one in made.quality if one.spec.name == variants)


def test_a_cell_has_the_flops_of_its_network_and_counting_changes_nothing_else(monkeypatch):
    cell = cell_of("scaled_dot")
    counted = train_cell(cell)
    found = {row.metric: row.value for row in counted.rows}
    system = assemble(cell, None)
    assert found[NETWORK_FLOPS] == forward_flops(system.system, system.task, cell) > 0
    monkeypatch.setattr(quality, "forward_flops", lambda *_: 0)
    without = train_cell(cell)
    for name, weight in counted.system.state_dict().items():
        assert torch.equal(weight, without.system.state_dict()[name])
    assert counted.system.training == without.system.training


def test_twice_the_width_has_two_to_four_times_the_flops():
    found = []
    for width in (32, 64):
        cell = cell_of("none_state", backbone=f"rnn_seq2seq[hidden={width},embedding={width}]")
        built = assemble(cell, None)
        found.append(forward_flops(built.system, built.task, cell))
    assert 2 < found[1] / found[0] < 4, "recurrent layers grow with the square, the vocabulary not"


def test_numbers_that_are_drawn_are_those_that_would_be_drawn_without_counting():
    cell = cell_of("scaled_dot")
    built = assemble(cell, None)
    torch.manual_seed(3)
    forward_flops(built.system, built.task, cell)
    after = torch.rand(4)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(4))


def test_the_flops_are_those_before_training():
    # its number of steps is learned
    asked = {"tasks": "recall", "training": "adam[steps=30,evaluate_every=30,lr=0.1]"}
    cell = cell_of("act", **asked)
    torch.manual_seed(cell.seed)
    built = assemble(cell, None)
    found = {row.metric: row.value for row in train_cell(cell).rows}
    assert found[NETWORK_FLOPS] == forward_flops(built.system, built.task, cell)


def test_what_cannot_be_counted_ends_no_training(monkeypatch):
    def fails(*_):
        raise RuntimeError("an operation without a rule")

    monkeypatch.setattr(quality, "forward_flops", fails)
    result = train_cell(cell_of("scaled_dot"))
    assert NETWORK_FLOPS not in {row.metric for row in result.rows}
    (lost,) = result.unmeasured
    assert "an operation without a rule" in lost.detail
