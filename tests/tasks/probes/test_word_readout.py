import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.linear_readout import half_of, read_linearly

TASK = "transduction[rule=copy,min_length=1,max_length=5,vocab=6,evaluate=300]"
UNI = "rnn_seq2seq[encoder=uni_rnn]"


def measured(seen):
    found = make("probe", parse("word_readout")).measure(seen)
    assert {(one.metric, one.axis) for one in found} == {("read_word_accuracy", "distance")}
    return {one.x: one.value for one in found}


def test_a_state_that_no_training_has_shaped_knows_the_last_word_best(subject):
    seen = subject("none_state", task=TASK, backbone=UNI, batches=3)
    found = measured(seen)
    longest = seen.batches[-1].sources[0].tokens.shape[1] - 1
    assert list(found) == [float(after) for after in range(longest)]
    assert found[0] > 0.9
    assert found[0] > found[longest - 1]


def test_each_place_is_read_from_the_summary_of_the_longest_strings(subject):
    seen = subject("none_state", task=TASK, backbone=UNI, batches=3)
    last = seen.batches[-1]
    (encoded,) = seen.backbone.encode(last, Mode(want_weights=False))
    fit = half_of(torch.ones(len(last.targets), dtype=torch.int64), seen.seed)
    words = last.sources[0].tokens[:, -3]  # the last two are the last word and EOS
    read = read_linearly(encoded.summary[fit], words[fit], encoded.summary[~fit])
    assert measured(seen)[1] == float((read == words[~fit]).double().mean())


def test_what_a_state_lacks_is_not_read(subject):
    seen = subject("none_state", task=TASK, backbone=UNI, batches=3)
    with torch.no_grad():
        for parameter in seen.backbone.encoders[0].parameters():
            parameter.zero_()
    assert all(value < 0.35 for value in measured(seen).values()), "of six words"


def test_networks_without_one_last_state_are_refused(subject):
    with pytest.raises(Refused, match="one encoder"):
        measured(subject("scaled_dot", backbone="transformer_seq2seq"))
    with pytest.raises(Refused, match="this source has frames"):
        measured(subject("bahdanau", task="digit_scenes[evaluate=16]"))
    with pytest.raises(Refused, match="too few sentences"):
        measured(subject("none_state", task=TASK.replace("300", "2"), backbone=UNI, batches=3))
