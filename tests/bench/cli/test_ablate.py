"""Ablations: one part is replaced by every other of its axis."""

import json
from dataclasses import replace

import pytest

from bench.api import registry
from bench.conformance import certify
from bench.running.request import Request
from results.store import Store
from tests.bench.cli.command_lines import report_text


@pytest.mark.slow
def test_an_ablation_writes_a_row_for_each_value_and_refuses_what_has_no_meaning(
    call, tmp_path, monkeypatch
):
    # one check tells a refusal from a failed proof; the whole suite is tested elsewhere
    monkeypatch.setattr(
        "bench.running.runner.certify",
        lambda variant, checks, impl: certify(variant, checks=["runs_somewhere"], impl=impl),
    )
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    asked = ["ablate", "--base", "additive", "--axis", "normalizer", "--preset", "smoke"]
    asked += ["--tasks", "after_marker"]
    code, out, _ = call(*asked, "--inline", "--out", folder, "--training", "adam[steps=2]")
    assert code == 0
    records = {r.cell["variant"]: r.status for r in Store(folder).records()}
    assert len(records) == len(registry.registrations("normalizer"))
    assert set(records.values()) == {"ok", "refused"}
    text = report_text(folder)
    section = text.partition("## Ablations")[2].partition("\n## ")[0]
    assert "(base)" in section
    # what stands nowhere is refused, which is no proof that failed
    assert "red certificate" not in section + out
    assert out.count("hard_reinforce needs the reinforce loss") == 1
    for value in registry.registrations("normalizer"):
        if value != "softmax":
            assert f"| normalizer | {value} |" in section, value
    again = call("ablate", "--spec", folder / "spec.json", "--inline", "--json")
    assert again[0] == 0
    assert json.loads(again[1])["counts"] == {}


def test_an_ablation_stands_on_the_bases_default_task_with_its_backbone_and_slot(fresh_registry):

    from bench.ablate import ablation, plan_ablation

    registered = registry.find("score", "dot")
    default_task = replace(
        registered.default_task, task="transduction", backbone="transformer_seq2seq", slot="causal"
    )
    registry._ENTRIES["score"]["dot"] = replace(registered, default_task=default_task)
    made = plan_ablation(Request(preset="smoke", speed=False), ablation("dot", "position"), "dot")
    places = {(c.task.partition("[")[0], c.backbone.partition("[")[0], c.slot) for c in made.cells}
    assert places == {("transduction", "transformer_seq2seq", "causal")}


def test_options_of_the_component_that_an_ablation_replaces_go_with_it():
    from bench.ablate import ablation

    changed = ablation("additive[width=16,position=sinusoid]", "score").changed
    assert {"dot", "general", "additive"} <= set(changed)
    for asked, _ in changed.values():
        assert "width" not in asked.options
        assert asked.options["position"]
    assert "none" in ablation("tu_coverage", "history").changed
    assert "tu_coverage" not in ablation("tu_coverage", "history").changed
