"""Probes on networks that sample when they are scored: they see the draws that scores see."""

import math

import pytest
import torch

from bench.api import registry
from bench.api.noise import DRAWS
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.observations import observations

SAMPLED = "hard_reinforce[inference=sample]"
CROSS = ("blur", "coverage", "content_by_length", "gradient_path")
OWN = ("gradient_path", "hidden_attribution", "position_readout")


def measured(name, seen):
    return registry.make("probe", parse(name)).measure(seen)


@pytest.mark.parametrize("name", CROSS)
def test_probes_look_at_sampled_attention_over_a_source(name, subject):
    task = "transduction[rule=reverse,min_length=1,max_length=5,vocab=6,decode=true]"
    found = measured(name, subject(SAMPLED, task=task, batches=3))
    assert found
    assert all(math.isfinite(one.value) for one in found)


@pytest.mark.parametrize("name", OWN)
def test_probes_look_at_sampled_attention_over_the_sequence_itself(name, subject):
    found = measured(name, subject(SAMPLED, task="recall"))
    assert found
    assert all(math.isfinite(one.value) for one in found)


def test_an_encoder_is_given_the_draws_of_an_evaluation_too(subject, monkeypatch):
    task = "transduction[rule=copy,min_length=1,max_length=5,vocab=6,evaluate=40]"
    seen = subject("additive", task=task, backbone="rnn_seq2seq[encoder=uni_rnn]", batches=3)
    given, encode = [], seen.backbone.encode

    def watched(batch, mode):
        given.append(mode.noise)
        return encode(batch, mode)

    monkeypatch.setattr(seen.backbone, "encode", watched)
    assert measured("word_readout", seen)
    assert given == [DRAWS] * len(given) != []


def test_the_draws_are_those_of_an_evaluation(subject):
    seen = subject(SAMPLED, batches=3)
    for one, batch in zip(observations(seen), seen.batches, strict=True):
        with torch.no_grad():
            scored = seen.backbone(batch, Mode(noise=DRAWS))
        assert torch.equal(one.weights, scored.weights)
