"""Tasks that score what a search says."""

import pytest

from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell


def scores(variant, task, steps=150, backbone="rnn_seq2seq[hidden=32,embedding=16]"):
    protocol = f"adam[steps={steps},batch=32,evaluate_every={steps},lr=0.01]"
    request = Request(preset="smoke", backbone=backbone, training=protocol)
    rows = train_cell(quality_cell(request, resolve(variant), DefaultTask(task=task), 0).cell).rows
    return {
        row.metric: row.value
        for row in rows
        if row.split == "test" and not (row.axis or row.baseline)
    }


def test_greedy_decoding_scores_what_teacher_forcing_does():
    task = "transduction[rule=copy,max_length=3,beyond=4,vocab=4,evaluate=64{}]"
    forced, decoded = (scores("additive", task.format(x), steps=60) for x in ("", ",decode=true"))
    assert 0.1 < forced["sequence_accuracy"] < 1
    assert forced["sequence_accuracy"] == decoded["sequence_accuracy"]
    assert forced["token_accuracy"] == decoded["token_accuracy"]


@pytest.mark.slow
def test_replacing_unknown_words_solves_what_needs_copying():
    task = "oov_copy[length=3,beyond=4,vocab=6,unknown=0.5,evaluate=64,decode=true]"
    plain = scores("additive", task, steps=150)
    replaced = scores("unk_replacement", task, steps=150)
    assert replaced["sequence_accuracy"] > plain["sequence_accuracy"] + 0.3


@pytest.mark.parametrize(
    ("variant", "task", "backbone", "why"),
    [
        ("unk_replacement", "translation", "", "greedy needs the token ids of the source"),
        ("additive[search=beam[replace_unk=true]]", "recall", "", "has no such axis"),
        (
            "none_state[search=beam[coverage_penalty=0.2]]",
            "transduction",
            "",
            "beam needs attention, and none_state has none",
        ),
        (
            "linear_attention[search=beam[coverage_penalty=0.2]]",
            "transduction",
            "transformer_seq2seq[width=16,heads=2,layers=1]",
            "beam needs explicit attention weights",
        ),
    ],
)
def test_what_a_search_needs_is_refused_where_it_is_missing(variant, task, backbone, why):
    from bench.api.errors import Refused
    from bench.training.assemble import assemble

    request = Request(preset="smoke", backbone=backbone)
    with pytest.raises(Refused, match=why):
        assemble(quality_cell(request, resolve(variant), DefaultTask(task=task), 0).cell, None)


def test_beams_without_penalties_need_no_weights():
    cell = quality_cell(
        Request(preset="smoke"),
        resolve("none_state[search=beam]"),
        DefaultTask(task="transduction"),
        0,
    ).cell
    assert "search=beam]" in cell.backbone  # no penalty: the default of each is zero
