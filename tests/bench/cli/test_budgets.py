"""A run that goes on has the cells that its budget began with, whatever else is asked."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.cli import execution, gpu
from bench.cli.budgets import RUN, jobs_of_budget
from bench.cli.run_options import RunOptions
from bench.running.plan import plan
from results.merge import merge
from results.pack import write_pack
from results.store import Store

WORDS = ["run", "--variants", "additive,dot,general", "--minutes", "0.5", "--no-speed"]
ABLATION = ["ablate", "--base", "additive", "--minutes", "0.5", "--axis"]


@pytest.fixture
def asked(tmp_path):
    """A budget for two processes, in a folder."""
    return RunOptions(
        variants="additive,dot,general", minutes=0.5, jobs=2, speed=False, out=str(tmp_path / "run")
    )


@pytest.fixture
def elsewhere(asked):
    """The same with more cores, once it has begun in its folder."""
    write(asked)
    return replace(asked, jobs=8)


@pytest.fixture
def planned(call, monkeypatch):
    """`planned(words)` -> labels of the cells that a command would run; its plan is written."""
    found = []

    def planned_alone(options, made, changed=None, spec=RUN):
        write(options, made, spec)
        found.append([one.cell.label for one in made.quality])
        return 0

    def cells(*words):
        code, _, err = call(*words)
        assert code == 0, err
        return found.pop()

    monkeypatch.setattr(execution, "execute", planned_alone)
    return cells


def write(options, made=None, spec=RUN):
    with Store.create(options.folder) as store:
        execution._write_plan(options, made or plan(options), store, spec)


def test_a_run_that_goes_on_with_more_cores_has_the_cells_that_it_began_with(asked, elsewhere):
    first = plan(asked)
    assert len(plan(elsewhere).quality) > len(first.quality) > 0
    for _ in range(2):
        again = plan(elsewhere, jobs=jobs_of_budget(elsewhere))
        assert [one.cell for one in again.quality] == [one.cell for one in first.quality]
        write(elsewhere, again)
    assert jobs_of_budget(replace(elsewhere, minutes=3.0)) == 0, "another question"
    assert jobs_of_budget(replace(elsewhere, out=f"{asked.out}2")) == 0
    assert again.seconds < first.seconds, "though it is done sooner"


@pytest.mark.parametrize(
    "more",
    [
        ["--no-verify"],
        ["--keep-models"],
        ["--probes", "all"],
        ["--jobs", "3"],
        ["--fail-on", "none"],
    ],
)
def test_what_only_says_how_it_is_run_or_reported_is_no_other_question(planned, tmp_path, more):
    words = [*WORDS, "--out", tmp_path / "run"]
    first = planned(*words, "--jobs", 1)
    assert len(planned(*WORDS, "--out", tmp_path / "other", "--jobs", 8)) > len(first) > 0
    assert planned(*words, *(more if "--jobs" in more else ["--jobs", 8, *more])) == first


def test_other_commands_in_the_folder_leave_a_budget_as_it_is(planned, tmp_path):
    words = [*WORDS, "--out", tmp_path / "run"]
    first, other = planned(*words, "--jobs", 1), [*words, "--seeds", 2]
    longer = planned(*other, "--jobs", 2)
    planned("run", "--cell", first[0], "--out", tmp_path / "run", "--jobs", 8)
    options = RunOptions(out=str(tmp_path / "run"))
    with Store(tmp_path / "run") as store:
        gpu._write_names(options, store, SimpleNamespace(planned=list, variants=[]))
    assert planned(*words, "--jobs", 8) == first
    assert planned(*other, "--jobs", 8) == longer
    plans = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert sorted(one["jobs"] for one in plans["budgets"]) == [1, 2], "none of a cell by its label"


def test_an_ablation_keeps_its_budget_apart_from_others_in_its_folder(planned, tmp_path):
    place = ["--out", tmp_path / "run", "--jobs"]
    first = planned(*ABLATION, "score", *place, 1)
    other = planned(*ABLATION, "normalizer", *place, 2)
    new = planned(*ABLATION, "score", "--out", tmp_path / "other", "--jobs", 8)
    assert len(new) > len(first) > 0
    assert planned(*ABLATION, "score", *place, 8, "--keep-models") == first
    assert planned(*ABLATION, "normalizer", *place, 8) == other


@pytest.mark.parametrize("kind", ["folder", "pack", "merged"])
def test_a_run_goes_on_elsewhere_with_the_budget_that_it_had(asked, elsewhere, tmp_path, kind):
    there = replace(elsewhere, out=str(tmp_path / "new"))
    source = asked.folder
    if kind == "pack":
        source = write_pack(Store(source), tmp_path / "run.parquet")
    if kind == "merged":
        there = replace(there, out=str(tmp_path / "merged"))
        merge(there.folder, [source])
    else:
        assert jobs_of_budget(there) == 0
        there = replace(there, reuse=str(source))
    assert jobs_of_budget(there) == 2
    assert jobs_of_budget(replace(there, minutes=3.0)) == 0, "another question"


def test_a_folder_of_an_earlier_version_keeps_its_budget(elsewhere):
    """It has what was asked last, with everything that the options said."""
    path = elsewhere.folder / "plan.json"
    held = json.loads(path.read_text())
    (budget,) = held.pop("budgets")
    old = {"verify": True, "cells": [], "until": "", "most_seeds": 21, "probes": "", "plugin": []}
    del budget["asked"]["command"]
    path.write_text(json.dumps({**held, "asked": {**budget["asked"], **old}, "jobs": 2}))
    assert jobs_of_budget(elsewhere) == 2
    path.write_text("{")
    assert jobs_of_budget(elsewhere) == 0
