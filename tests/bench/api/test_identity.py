"""Ids stay where a name, an option or an axis is added, and where a default changes."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from bench.api import registry
from bench.api.axes import DEFAULTS, VARIANT_AXES
from bench.api.cell import Cell
from bench.api.config import Config, FirstDefault
from bench.api.loading import load_package
from bench.api.options import canonical
from bench.api.registry import Registration
from bench.api.resolve import canonical_backbone, resolve
from bench.api.score import Score
from bench.api.selector import Selector, parse, parse_names
from bench.running.revisions import revisions
from bench.training.protocol import canonical_protocol

load_package("variants")
load_package("tasks")

FROZEN = {
    ("transduction", "rnn_seq2seq", "scaled_dot"): "5bf67a433734",
    ("transduction[rule=copy]", "rnn_seq2seq[hidden=32]", "additive[width=16]"): "cefa20c73212",
    (
        "recall",
        "transformer_decoder[layers=1]",
        "scaled_dot[position=sinusoid,head=multi]",
    ): "eed5bd8a3fdb",
    ("transduction", "rnn_seq2seq", "bahdanau[history=tu_coverage]"): "fd4b58cdd840",
}
"""Cells as they were first planned with ids of schema 2."""


def cell(task, backbone, variant):
    spec = resolve(variant)
    chosen = canonical("task", parse(task))
    written = canonical_backbone(backbone, spec.fixes)
    return Cell(
        kind="quality",
        task=chosen.show(),
        backbone=written.show(),
        variant=spec.canonical.show(),
        slot="cross",
        protocol=canonical_protocol("adam").show(),
        revisions=revisions(spec, chosen.name, written),
    )


def ids():
    return {asked: cell(*asked).id for asked in FROZEN}


@pytest.fixture
def changed(monkeypatch):
    """Give a registered component other options for one test."""
    entries = {axis: dict(found) for axis, found in registry._ENTRIES.items()}
    monkeypatch.setattr(registry, "_ENTRIES", entries)
    monkeypatch.setattr(registry, "_CHANGED", set(registry._CHANGED))

    def change(axis, name, config):
        facts = vars(entries[axis][name]) if name in entries[axis] else {}
        target = facts.get("target", Score)
        new = {**facts, "axis": axis, "name": name, "target": target, "config": config}
        registry.add_registration(Registration(**new))

    return change


def test_the_ids_of_planned_cells_never_change():
    assert ids() == FROZEN


def test_a_new_option_and_a_new_name_change_no_old_id_and_matter_where_they_are_set(changed):
    @dataclass(frozen=True, kw_only=True)
    class Wider(registry.find("score", "additive").config):
        brand_new: float = 0.5

    @dataclass(frozen=True, kw_only=True)
    class Deeper(registry.find("backbone", "rnn_seq2seq").config):
        extra_encoder: Selector = Selector("birnn")

    changed("score", "additive", Wider)
    changed("score", "brand_new_score", Config)
    changed("backbone", "rnn_seq2seq", Deeper)
    assert ids() == FROZEN
    plain, set_ = (
        cell("transduction", backbone, variant).id
        for backbone, variant in (
            ("rnn_seq2seq", "additive"),
            ("rnn_seq2seq[extra_encoder=embed]", "additive"),
        )
    )
    assert plain != set_ != cell("transduction", "rnn_seq2seq", "additive[brand_new=0.25]").id


def test_a_new_axis_changes_no_old_id_and_matters_where_it_is_set(changed, monkeypatch):
    from bench.api import identity
    from bench.api import resolve as resolving

    registry._ENTRIES["gate"] = {}
    changed("gate", "open", registry.NoOptions)
    changed("gate", "half", registry.NoOptions)
    for module in (registry, resolving, identity):
        monkeypatch.setattr(module, "VARIANT_AXES", (*VARIANT_AXES, "gate"))
    monkeypatch.setattr(identity, "DEFAULTS", {**DEFAULTS, "gate": "open"})
    monkeypatch.setattr(resolving, "USUAL", {**resolving.USUAL, "gate": parse_names("open")})
    assert ids() == FROZEN
    (asked, old), *_ = FROZEN.items()
    assert cell(*asked[:2], "scaled_dot[gate=half]").id != old
    assert cell(*asked[:2], "scaled_dot[gate=open]").id == old


def test_another_default_keeps_old_ids_where_the_first_one_is_declared(changed):
    usual = registry.find("score", "additive").config().width
    before = {
        asked: cell("transduction", "rnn_seq2seq", asked).id
        for asked in (
            "additive",
            "additive[width=8]",
            "bahdanau",
            "scaled_dot[score=additive]",
            "scaled_dot",
        )
    }

    @dataclass(frozen=True, kw_only=True)
    class Narrow(Config):
        width: Annotated[int, FirstDefault(usual)] = 8

    changed("score", "additive", Narrow)

    def now(asked):
        return cell("transduction", "rnn_seq2seq", asked)

    assert now(f"additive[width={usual}]").id == before["additive"]
    assert now("additive").id == now("additive[width=8]").id == before["additive[width=8]"]
    assert now(f"bahdanau[score=additive[width={usual}]]").id == before["bahdanau"]
    assert now("bahdanau").id != before["bahdanau"]
    nested = f"scaled_dot[score=additive[width={usual}]]"
    assert now(nested).id == before["scaled_dot[score=additive]"]
    assert now("scaled_dot").id == before["scaled_dot"]
    # text always says the value, so that it means the same before and after
    assert now("additive").variant == "additive[width=8]"
    assert now("bahdanau").variant == "bahdanau[score=additive[width=8]]"
    assert resolve(now("bahdanau").variant).canonical == resolve("bahdanau").canonical


def test_another_default_inside_a_default_keeps_old_ids(changed):
    first = registry.find("encoder", "birnn").config()
    before = cell("transduction", "rnn_seq2seq", "scaled_dot").id

    @dataclass(frozen=True, kw_only=True)
    class Averaged(type(first)):
        summary: Annotated[str, FirstDefault(first.summary)] = "mean"

    changed("encoder", "birnn", Averaged)
    assert cell("transduction", "rnn_seq2seq", "scaled_dot").id != before
    asked = f"rnn_seq2seq[encoder=birnn[summary={first.summary}]]"
    assert cell("transduction", asked, "scaled_dot").id == before
