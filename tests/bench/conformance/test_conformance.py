"""Every registered variant against the whole suite; a new variant adds no test code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.api.config import Choices, default_of, search_ranges
from bench.api.registry import CHAIN_AXES, listed_variants, registrations
from bench.conformance import CHECKS, as_text, certify

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text(encoding="utf-8"))
"""Variant -> checks it passes; reviewed by hand, so that declaring less is not a way to green.

A name that is not here yet needs no line; it must pass what every line has.
"""
ALWAYS = set.intersection(*map(set, EXPECTED.values()))
"""Checks that no variant may leave out: of the others, each is skipped for a reason by some."""

NAMES = sorted(listed_variants())


@pytest.mark.parametrize("name", NAMES)
def test_certificate(name):
    found = certify(name)
    assert found.green(), as_text([found])
    if name not in EXPECTED:
        assert set(found.passed) >= ALWAYS, f"{name} leaves out {ALWAYS - set(found.passed)}"
        return
    line = f'  "{name}": {json.dumps(sorted(found.passed))}'
    help_ = f"review every check that is left out, then write to expected.json:\n{line}"
    assert sorted(found.passed) == sorted(EXPECTED[name]), help_


def test_no_variant_of_the_table_of_expectations_has_gone():
    assert not set(EXPECTED) - set(NAMES)


def test_most_checks_may_be_left_out_by_no_variant():
    assert set(CHECKS) - ALWAYS == {"causality", "permutation_law", "weight_law", "stream"}


def test_the_table_names_known_checks_in_each_row_once():
    for name, checks in EXPECTED.items():
        assert len(set(checks)) == len(checks), name
        assert set(checks) <= set(CHECKS), name


def _choices():
    """Every value of every named choice of every component that is not its default."""
    for axis in (*CHAIN_AXES, "mechanism"):
        for name, registered in registrations(axis).items():
            for option, search in search_ranges(registered.config).items():
                if not isinstance(search, Choices):
                    continue
                for value in search.options:
                    if value != default_of(registered.config, option):
                        shown = str(value).lower() if isinstance(value, bool) else value
                        chosen = f"{name}[{option}={shown}]"
                        alone = axis in ("score", "mechanism")
                        yield chosen if alone else f"additive[{axis}={chosen}]"


def _compared():
    """Variants of comparisons that have no name; red ones would go unranked in every report."""
    entries = (one for task in registrations("task").values() for one in task.target.comparison)
    return sorted({one.variant for one in entries} - set(NAMES))


@pytest.mark.parametrize("selector", [*_choices(), *_compared()])
def test_choices_that_are_not_the_default_hold_too(selector):
    checks = ("runs_somewhere", "causality", "padding_invariance", "splits", "oracle", "gradients")
    found = certify(selector, checks=(*checks, "dead_rows", "weight_law"))
    assert found.green(), as_text([found])


COMPILE = """
import json, sys
import torch
torch.set_num_threads(1)
from bench.api.registry import load_package, listed_variants
load_package("variants")
load_package("tasks")
from bench.conformance import COMPILE, certify
failed = {}
for name in listed_variants():
    found = certify(name, checks=[COMPILE])
    if not found.green():
        failed[name] = found.failed | found.skipped
print("FAILED", json.dumps(failed))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_variant_compiles_whole_in_a_process_without_the_type_hook():
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("FAILED "))
    assert json.loads(line.removeprefix("FAILED ")) == {}
