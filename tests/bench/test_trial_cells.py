"""What a study may change, and the cell of one trial."""

from dataclasses import replace

import pytest

from bench.api import registry
from bench.api.config import Choices
from bench.api.resolve import resolve
from bench.cli.study import command
from bench.running.request import Request
from bench.study_request import StudyRequest
from bench.training.protocol import read_protocol
from bench.trial_cells import MOST_KNOBS, knobs_of, trial_cell

REQUEST = Request(variants="additive,dot", tasks="after_marker", preset="smoke")
ASKED = StudyRequest(request=REQUEST, trials=4, final_seeds=2)


@pytest.mark.parametrize("name", sorted(registry.listed_variants()))
def test_a_variant_has_the_learning_rate_and_at_most_two_knobs_of_its_own(name):
    knobs = knobs_of(resolve(name), ASKED)
    assert knobs[0].name == "lr"
    assert knobs[0].axis == "protocol"
    assert 1 <= len(knobs) <= 1 + MOST_KNOBS
    assert len({knob.name for knob in knobs}) == len(knobs)
    for knob in knobs[1:]:
        owner = knob.name.rpartition(".")[0]
        assert owner in registry.registrations(knob.axis)


def test_a_trial_is_the_variant_and_the_protocol_with_the_parameters_put_in():
    spec = resolve("additive")
    asked = replace(ASKED, trial_seconds=7.0)
    parameters = {"lr": 0.01, "additive.width": 24, "softmax.temperature": 0.5}
    cell = trial_cell(spec, asked, knobs_of(spec, asked), parameters).cell
    assert cell.kind == "trial"
    assert "width=24" in cell.variant
    assert "temperature=0.5" in cell.variant
    protocol = read_protocol(cell.protocol)
    assert (protocol.lr, protocol.cpu_seconds) == (0.01, 7.0)
    mechanism = resolve("linear_attention")
    knobs = knobs_of(mechanism, ASKED)
    for knob in knobs[1:]:
        low = getattr(knob.range, "low", None)
        values = {"lr": 0.01, **{k.name: k.range.low for k in knobs[1:]}}
        changed = trial_cell(mechanism, ASKED, knobs, values).cell.variant
        assert f"{knob.option}={low}" in changed


@pytest.mark.parametrize(
    ("variant", "free"),
    [
        ("additive", ["additive.width", "softmax.temperature"]),
        ("additive[width=24]", ["softmax.temperature"]),
        ("bahdanau[score=additive[width=24]]", ["softmax.temperature"]),
        ("additive[normalizer=softmax[temperature=0.5]]", ["additive.width"]),
        ("dot[normalizer=softmax[temperature=0.5]]", []),
    ],
)
def test_what_was_asked_with_a_value_of_its_own_keeps_it(variant, free):
    assert [knob.name for knob in knobs_of(resolve(variant), ASKED)] == ["lr", *free]
    typed = replace(ASKED, request=replace(REQUEST, training="adam[lr=0.02]"))
    knobs = knobs_of(resolve(variant), typed)
    assert [knob.name for knob in knobs] == free
    cell = trial_cell(resolve(variant), typed, (), {}).cell
    assert read_protocol(cell.protocol).lr == 0.02


def test_seconds_limit_a_trial_and_the_steps_that_are_typed_or_the_tasks_own_stay():
    spec = resolve("additive")
    usual = read_protocol(trial_cell(spec, ASKED, (), {}).cell.protocol)
    limited = read_protocol(
        trial_cell(spec, replace(ASKED, trial_seconds=7.0), (), {}).cell.protocol
    )
    assert (limited.steps, limited.stop_at) == (usual.steps, usual.stop_at)
    request = replace(REQUEST, training="adam[steps=100000]")
    asked = replace(ASKED, request=request, trial_seconds=7.0)
    longer = read_protocol(trial_cell(spec, asked, (), {}).cell.protocol)
    assert (longer.steps, longer.cpu_seconds) == (100_000, 7.0)
    (told,) = [one.help for one in command.params if one.name == "trial_seconds"]
    assert "at most" in told
    assert "--training" in told


def test_several_knobs_of_one_component_are_all_put_in():
    spec = resolve("raffel_monotonic")
    knobs = knobs_of(spec, ASKED)
    parameters = {"lr": 0.001}
    for knob in knobs[1:]:
        found = knob.range
        parameters[knob.name] = found.options[-1] if isinstance(found, Choices) else found.low
    variant = resolve(trial_cell(spec, ASKED, knobs, parameters).cell.variant)
    for knob in knobs[1:]:
        (owner,) = variant.axes[knob.axis]
        assert owner.options[knob.option] == parameters[knob.name]
