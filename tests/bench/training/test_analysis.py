"""What an analysis reads of a test."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.config import build_config
from bench.api.selector import parse
from bench.training import analysis
from bench.training.analysis import Analysis, _first, analysis_cell, analyze_cell, model_path
from bench.training.kept_weights import Origin


@pytest.mark.parametrize(
    ("task", "read"),
    [("transduction[rule=copy]", 3), ("recall[pairs=4,more_pairs=8]", 8)],
)
def test_a_probe_reads_the_shortest_examples(task, read):
    """The help, the report and docs/limits.md say so."""
    asked = parse(task)
    found = registry.find("task", asked.name)
    made = found.target(build_config(found.config, asked.options, asked.name), seed=0)
    examples = build_config(Analysis, parse("x[probe=blur,trained=adam]").options, "x").examples
    batches = [*_first(made, examples)]
    widths = [(b.sources[0].tokens if b.sources else b.inputs).shape[1] for b in batches]
    assert {*widths} == {read}
    assert sum(len(b.targets) for b in batches) == examples
    tested = [(b.sources[0].tokens if b.sources else b.inputs) for b in made.evaluation("test")]
    assert min(one.shape[1] for one in tested) == read < max(one.shape[1] for one in tested)


@pytest.mark.parametrize(("device", "seeded"), [("cpu", []), ("cuda", [torch.device("cuda")])])
def test_the_state_of_every_generator_that_building_seeds_comes_back(
    smoke, monkeypatch, tmp_path, device, seeded
):
    forked = []

    def fork_rng(devices):
        forked.append([*devices])
        return nullcontext()

    def assemble(*_):
        raise InterruptedError

    monkeypatch.setattr(torch.random, "fork_rng", fork_rng)
    monkeypatch.setattr(analysis, "assemble", assemble)
    trained = replace(smoke(), device=device)
    model_path(tmp_path, trained).touch()
    cell = analysis_cell(trained, parse("blur"), 8)
    with pytest.raises(InterruptedError):
        analyze_cell(cell, tmp_path, Origin())
    assert forked == [seeded]
