"""The comparisons of the preset `flagship`: whole, refused nowhere, trained with patience."""

import pytest

from bench.api import registry
from bench.api.config import build_config
from bench.api.selector import parse
from bench.running.families import compared_tasks
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.protocol import read_protocol
from bench.training.refusals import cell_refusal

COMPARED = [task.name for group in compared_tasks("flagship") for task in group]


@pytest.fixture(scope="module")
def first_seeds():
    whole = plan(Request(preset="flagship"))
    assert not whole.speed
    assert {p.cell.seed for p in whole.quality} == {0, 1, 2, 3, 4}
    return [p for p in whole.quality if p.cell.seed == 0]


def test_each_flagship_has_its_mechanisms_and_controls(first_seeds):
    assert set(COMPARED) == {"translation", "inflection", "transduction", "spoken_digits"}
    compared = {}
    for planned in first_seeds:
        network = parse(planned.cell.backbone).name
        name = planned.task.selector.name, network
        compared.setdefault(name, set()).add(planned.spec.name)
    for names in compared.values():
        assert {"scaled_dot", "uniform"} <= names
    assert {"none_state", "additive", "location_aware", "coverage_eq1", "luong_local_p"} <= (
        compared["translation", "rnn_seq2seq"]
    )
    assert {"sinusoid", "learned", "shaw_rpr", "rope"} <= (
        compared["translation", "transformer_seq2seq"]
    )
    assert {"additive", "raffel_monotonic", "hard_exact"} <= compared["inflection", "rnn_seq2seq"]
    assert {"location_aware", "ntm_addressing"} <= compared["transduction", "rnn_seq2seq"]
    assert {"raffel_monotonic", "mocha", "milk"} <= compared["spoken_digits", "rnn_seq2seq"]


def test_nothing_of_a_flagship_is_refused(first_seeds):
    for planned in first_seeds:
        task = registry.find("task", planned.task.selector.name).target
        reason = cell_refusal(planned.spec, task, parse(planned.cell.backbone), planned.cell.slot)
        assert reason is None, f"{planned.cell.variant} on {planned.cell.task}: {reason}"


def test_a_flagship_ends_by_validations_and_not_by_time(first_seeds):
    for planned in first_seeds:
        protocol = read_protocol(planned.cell.protocol)
        assert protocol.patience > 0
        assert protocol.cpu_seconds == 0
        assert protocol.steps >= 10000


def test_strings_are_asked_at_four_and_eight_times_the_length_of_training():
    target = registry.find("task", "transduction")
    size = target.target.presets["flagship"].options_selector
    task = target.target(build_config(target.config, size.options, "transduction"), 0)
    beyond = [length for length in task.test_lengths() if length > task.config.max_length]
    assert beyond == [4 * task.config.max_length, 8 * task.config.max_length]
