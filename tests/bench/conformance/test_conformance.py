"""Every registered variant against the whole suite; a new variant adds no test code.

Many recipes are one attention with other outputs, losses and networks. Each attention runs through
the whole suite once, under the first of its names, and each name has its output and loss certified.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.api.axes import CHAIN_AXES
from bench.api.call import REGIMES
from bench.api.config import Choices, default_of, search_ranges
from bench.api.registry import listed_variants, registrations
from bench.api.resolve import resolve
from bench.conformance import CHECKS, as_text, certify, expected_checks
from bench.conformance.place import build_subject, placements, refusals, smallest

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text(encoding="utf-8"))
"""Variant -> checks it passes; reviewed by hand, so that declaring less is not a way to green.

A name that is not here yet needs no line; it must pass what every line has.
"""
ALWAYS = set.intersection(*map(set, EXPECTED.values()))
"""Checks that no variant may leave out: of the others, each is skipped for a reason by some."""

NAMES = sorted(listed_variants())
SHORT = ("runs_somewhere", "shapes", "config", "output", "loss")
"""Checks of a name whose attention is certified whole under another name."""

OF_ITS_NETWORK = {"output", "loss"}
"""Checks of what stands around attention."""


def _attention(selector):
    """All of a variant that the suite looks at."""
    spec = resolve(selector)
    chain = {axis: spec.axes.get(axis, ()) for axis in (*CHAIN_AXES, "head")}
    checks = set(expected_checks(spec)) - OF_ITS_NETWORK
    return repr((chain, spec.mechanism, sorted(checks), sorted(refusals(spec).items())))


LONG = ("long", "cost")
"""Checks at several lengths take longer than all others together, so `make slow` has them."""
QUICK = tuple(check for check in CHECKS if check not in LONG)

FIRST_NAME: dict[str, str] = {}
"""Attention -> the first of its names."""
for _name in NAMES:
    FIRST_NAME.setdefault(_attention(_name), _name)


@pytest.mark.annotations
@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_those_of_the_annotations(name):
    found = certify(name, checks=("runs_somewhere", "shapes"))
    assert found.green(), as_text([found])


@pytest.mark.usefixtures("unchecked_annotations")  # they take a third of the time; see above
@pytest.mark.parametrize("name", NAMES)
def test_certificate(name):
    first = FIRST_NAME[_attention(name)]
    checks = QUICK if name == first else SHORT
    found = certify(name, checks=checks)
    assert found.green(), as_text([found])
    if name not in EXPECTED:
        left_out = ALWAYS.intersection(checks) - set(found.passed)
        assert not left_out, f"{name} leaves out {left_out}"
        return
    line = f'  "{name}": {json.dumps(sorted(found.passed))}'
    help_ = f"review every check that is left out, then write to expected.json:\n{line}"
    assert set(found.passed) == set(EXPECTED[name]).intersection(checks), help_
    if first in EXPECTED:
        same = not (set(EXPECTED[name]) ^ set(EXPECTED[first])) - OF_ITS_NETWORK
        assert same, f"{name} has the attention of {first}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FIRST_NAME.values())))
def test_certificate_at_several_lengths(name):
    found = certify(name, checks=LONG)
    assert found.green(), as_text([found])
    assert set(found.passed) == set(LONG)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_asked_with_its_own_options_somewhere(name):
    spec = resolve(name)
    stands = set(REGIMES) - set(refusals(spec))
    for placement in placements(spec):
        if placement.regime in stands and not placement.smallest:
            build_subject(spec, placement)
            return
    assert not stands or smallest(spec).canonical == spec.canonical


def test_no_variant_of_the_table_of_expectations_has_gone():
    assert not set(EXPECTED) - set(NAMES)


def test_most_checks_may_be_left_out_by_no_variant():
    of_some = {"causality", "permutation_law", "weight_law", "start_entropy", "stream", "loss"}
    assert set(CHECKS) - ALWAYS == of_some


def test_the_table_names_known_checks_in_each_row_once():
    for name, checks in EXPECTED.items():
        assert len(set(checks)) == len(checks), name
        assert set(checks) <= set(CHECKS), name


def _choices():
    """Every value of every named choice of every component that is not its default.

    Of heads they are names alone, because numbers are sizes there.
    """
    for axis in (*CHAIN_AXES, "mechanism", "head"):
        for chosen, value in _not_the_default(axis):
            if axis in ("score", "mechanism"):
                yield chosen
            elif axis != "head":
                yield f"additive[{axis}={chosen}]"
            elif isinstance(value, str):
                yield f"scaled_dot[head={chosen}]"


def _not_the_default(axis):
    """Every component of an axis with each named choice in turn, and what was chosen."""
    for name, registered in registrations(axis).items():
        for option, search in search_ranges(registered.config).items():
            for value in search.options if isinstance(search, Choices) else ():
                if value != default_of(registered.config, option):
                    shown = str(value).lower() if isinstance(value, bool) else value
                    yield f"{name}[{option}={shown}]", value


def _compared():
    """Variants of comparisons that have no name; red ones would go unranked in every report."""
    entries = (one for task in registrations("task").values() for one in task.target.comparison)
    return sorted({one.variant for one in entries} - set(NAMES))


def _without_a_name():
    """Each attention among them that no name has."""
    found = {_attention(selector): selector for selector in (*_choices(), *_compared())}
    return [selector for attention, selector in found.items() if attention not in FIRST_NAME]


@pytest.mark.slow
@pytest.mark.parametrize("selector", _without_a_name())
def test_choices_that_are_not_the_default_hold_too(selector):
    checks = ("runs_somewhere", "causality", "padding_invariance", "splits", "oracle", "gradients")
    # sizes are certified with the default choice: small ones find the same and take a tenth
    found = certify(
        smallest(resolve(selector)).canonical, checks=(*checks, "dead_rows", "weight_law", "heads")
    )
    assert found.green(), as_text([found])


def test_choices_that_share_an_attention_run_somewhere():
    without = _without_a_name()
    left = sorted({*_choices(), *_compared()} - set(without))
    assert len(without) >= 60
    assert len(left) >= 3
    for selector in left:
        found = certify(selector, checks=SHORT)
        assert found.green(), as_text([found])


COMPILE = """
import json, sys
import torch
torch.set_num_threads(1)
from bench.api.loading import load_package
load_package("variants")
load_package("tasks")
from bench.conformance import COMPILE, certify
failed = {}
for name in sys.argv[1:]:
    found = certify(name, checks=[COMPILE])
    if not found.green():
        failed[name] = found.failed | found.skipped
print("FAILED", json.dumps(failed))
"""


GROUPS = 10
"""Processes that compile, each some of the attentions, so that CI asks for some every time."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_attention_compiles_whole_in_a_process_without_the_type_hook(group):
    # only attention is compiled, so that other names of the same prove the same
    names = sorted(set(FIRST_NAME.values()))[group::GROUPS]
    assert len(names) >= 10
    assert _not_compiled(names) == {}


def test_some_attentions_compile_whole_in_a_process_without_the_type_hook():
    assert _not_compiled(["scaled_dot", "additive", "linear_attention"]) == {}


def _not_compiled(names):
    """Which of these attentions do not compile whole, and why."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, *names],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("FAILED "))
    return json.loads(line.removeprefix("FAILED "))
