"""A small model learns what attention is for; the same model without attention does not."""

import pytest

from bench.training.quality import train_cell

TASK = "transduction[rule=copy,vocab=10,min_length=4,max_length=8,beyond=9,evaluate=128]"
BACKBONE = "rnn_seq2seq[hidden=48,embedding=24]"
PROTOCOL = "adam[lr=0.01,steps=700,batch=32,evaluate_every=700]"


def reached(done) -> float:
    (found,) = [
        r.value
        for r in done.rows
        if (r.metric, r.split, r.axis, r.baseline) == ("sequence_accuracy", "test", "", "")
    ]
    return found


@pytest.mark.slow
def test_attention_learns_to_copy_where_a_single_state_does_not(smoke):
    found = {
        name: reached(train_cell(smoke(name, task=TASK, backbone=BACKBONE, protocol=PROTOCOL)))
        for name in ("additive", "none_state")
    }
    assert found["additive"] > 0.9
    assert found["none_state"] < found["additive"] - 0.4
