"""A result belongs to its code: which edit of the tree changes the hash of which cell."""

from copy import copy
from dataclasses import replace
from fractions import Fraction

import pytest

from bench.api import head_sizes, registry
from bench.api.cell import Cell
from bench.api.registry import DefaultTask
from bench.api.selector import Selector
from bench.running.code_of_cells import CodeOfCells, timed_parts
from bench.running.source_code import SourceCode
from bench.training.analysis import analysis_cell


def quality(variant, task="recall", backbone="rnn_seq2seq", slot="cross"):
    return Cell(
        kind="quality",
        task=task,
        backbone=backbone,
        variant=variant,
        slot=slot,
        protocol="adam[steps=9]",
    )


CELLS = {
    "additive": quality("additive"),
    "dot": quality("dot"),
    "coverage": quality("coverage_loss", task="transduction[rule=reverse]"),
    "pyramid": quality("dot", backbone="rnn_seq2seq[encoder=pyramid]"),
    "timed": Cell(
        kind="speed",
        task="attend[batch=1,length=32]",
        backbone="none",
        variant="additive",
        slot="cross",
        protocol="rounds",
    ),
    "slot": Cell(
        kind="speed",
        task="attend[heads=8,length=32,place=slot,width=64]",
        backbone="none",
        variant="mla",
        slot="causal",
        protocol="rounds",
    ),
    "looked_at": analysis_cell(quality("dot"), Selector("erasure"), 8),
}


@pytest.fixture(scope="module")
def source():
    return SourceCode()


def edited(source, module, old, new):
    """The sources after an edit of one module; the others are not read again."""
    found = copy(source)
    for name in ("_sources", "_modules", "_digests", "_references"):
        setattr(found, name, dict(getattr(source, name)))
    text = source._sources[module].decode()
    assert old in text, f"{old!r} is not in {module}"
    found._sources[module] = text.replace(old, new).encode()
    found._modules.pop(module, None)
    for place in [place for place in source._digests if place[0] == module]:
        del found._digests[place], found._references[place]
    return found


def digests(source):
    """Hash of every cell."""
    code = CodeOfCells()
    code.source = source
    found = {name: code.digest(cell) for name, cell in CELLS.items()}
    assert all(found.values())
    return found


@pytest.fixture(scope="module")
def usual(source):
    return digests(source)


EVERY = set(CELLS)
TRAINED = EVERY - {"timed", "slot"}


@pytest.mark.parametrize(
    ("module", "edit", "changed"),
    [
        ("variants.scores.tanh_sum", "return  -> return 2 * ", {"additive", "timed", "coverage"}),
        ("variants.scores.dot", "return  -> return 2 * ", {"dot", "pyramid", "looked_at"}),
        ("variants.losses.coverage_loss", "return  -> return 2 * ", {"coverage"}),
        ("tasks.diagnostics.recall", "pairs -> pears", TRAINED - {"coverage"}),
        ("tasks.backbones.encoders.pyramid", "return  -> return 2 * ", {"pyramid"}),
        ("tasks.backbones.rnn_seq2seq", "return  -> return 2 * ", TRAINED),
        ("variants.outputs.softmax", "return  -> return 2 * ", TRAINED),
        ("bench.training.quality", "return  -> return 2 * ", TRAINED),
        ("bench.timing.rounds", "return  -> return 2 * ", {"timed", "slot"}),
        ("bench.timing.fitted_heads", "return  -> return 2 * ", {"timed", "slot"}),
        ("bench.timing.slot_block", "return  -> return 2 * ", {"slot"}),
        ("variants.heads.mla", "return  -> return 2 * ", {"slot"}),
        ("tasks.probes.erasure", "return  -> return 2 * ", {"looked_at"}),
        ("variants.mechanisms.linear_attention", "return  -> return 2 * ", set()),
        ("variants.losses.coverage_loss", 'where= -> where="in " ', set()),
    ],
)
def test_an_edit_changes_the_cells_it_can_reach_and_no_other(source, usual, module, edit, changed):
    found = digests(edited(source, module, *edit.split(" -> ")))
    assert {name for name in CELLS if found[name] != usual[name]} == changed


def test_parts_that_were_built_by_name_count(usual):
    code = CodeOfCells()
    cell = CELLS["dot"]
    assert code.digest(cell, ["head:raw"]) != code.digest(cell) == usual["dot"]
    assert code.digest(cell, ["head:nobody_registered_this"]) == ""


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("variants.scores.tanh_sum", {"additive"}),
        ("variants.heads.projections", {"additive", "dot"}),
        ("bench.conformance.checks_oracle", {"additive", "dot"}),
        ("bench.training.quality", set()),
        ("tasks.diagnostics.recall", set()),
    ],
)
def test_a_certificate_is_about_the_variant_and_the_checks(source, module, changed):
    code = CodeOfCells()
    code.source = edited(source, module, "return ", "return 2 * ")
    usual = CodeOfCells()
    names = {"additive", "dot"}
    found = {one for one in names if code.of_certificate(one) != usual.of_certificate(one)}
    assert found == changed


def test_the_baseline_counts_beside_a_timed_variant():
    assert ("score", "scaled_dot") in timed_parts("scaled_dot")
    assert ("output", "softmax") not in timed_parts("scaled_dot")


def test_widths_that_follow_the_heads_of_a_slot_are_part_of_its_hash(usual, monkeypatch):
    monkeypatch.setitem(head_sizes._MULTIPLES, "mla", {"latent": Fraction(2)})
    found = digests(CodeOfCells().source)
    assert {name for name in CELLS if found[name] != usual[name]} == {"slot"}


@pytest.mark.parametrize(
    "declared", [{"title": "Another title"}, {"default_task": DefaultTask(task="transduction")}]
)
def test_what_the_check_of_options_reads_of_a_registration_counts_in_its_certificate(
    monkeypatch, declared
):
    usual = CodeOfCells().of_certificate("additive")
    entries = registry._ENTRIES["score"]
    monkeypatch.setitem(entries, "additive", replace(entries["additive"], **declared))
    assert CodeOfCells().of_certificate("additive") != usual


def test_options_of_the_default_task_count_in_a_certificate(source):
    code = CodeOfCells()
    code.source = edited(
        source, "tasks.translation.transduction", "max_length: int = 8", "max_length: int = 9"
    )
    names = ("additive", "alibi")
    usual = CodeOfCells()
    found = [name for name in names if code.of_certificate(name) != usual.of_certificate(name)]
    assert found == ["additive"], "the default task of alibi is another one"
