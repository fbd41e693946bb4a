"""A result belongs to its code: which edit of the tree changes the hash of which cell."""

from copy import copy

import pytest

from bench.api.cell import Cell
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
    "looked_at": analysis_cell(quality("dot"), Selector("erasure"), 8),
}


@pytest.fixture(scope="module")
def source():
    return SourceCode()


def digests(source, module="", old="", new=""):
    """Hash of every cell, after an edit of a module; the others are not read again."""
    edited = copy(source)
    for name in ("_sources", "_modules", "_digests", "_references"):
        setattr(edited, name, dict(getattr(source, name)))
    if module:
        text = source._sources[module].decode()
        assert old in text, f"{old!r} is not in {module}"
        edited._sources[module] = text.replace(old, new).encode()
        edited._modules.pop(module, None)
        for place in [place for place in source._digests if place[0] == module]:
            del edited._digests[place], edited._references[place]
    code = CodeOfCells()
    code.source = edited
    found = {name: code.digest(cell) for name, cell in CELLS.items()}
    assert all(found.values())
    return found


@pytest.fixture(scope="module")
def usual(source):
    digests(source)
    code = CodeOfCells()
    code.source = source
    return {name: code.digest(cell) for name, cell in CELLS.items()}


EVERY = set(CELLS)
TRAINED = EVERY - {"timed"}


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
        ("bench.timing.rounds", "return  -> return 2 * ", {"timed"}),
        ("tasks.probes.erasure", "return  -> return 2 * ", {"looked_at"}),
        ("variants.mechanisms.linear_attention", "return  -> return 2 * ", set()),
        ("variants.losses.coverage_loss", 'where= -> where="in " ', set()),
    ],
)
def test_an_edit_changes_the_cells_it_can_reach_and_no_other(source, usual, module, edit, changed):
    found = digests(source, module, *edit.split(" -> "))
    assert {name for name in CELLS if found[name] != usual[name]} == changed


def test_parts_that_were_built_by_name_count(usual):
    code = CodeOfCells()
    cell = CELLS["dot"]
    assert code.digest(cell, ["head:raw"]) != code.digest(cell) == usual["dot"]
    assert code.digest(cell, ["head:nobody_registered_this"]) == ""


def test_the_baseline_counts_beside_a_timed_variant():
    assert ("score", "scaled_dot") in timed_parts("scaled_dot")
    assert ("output", "softmax") not in timed_parts("scaled_dot")
