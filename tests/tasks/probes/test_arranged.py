"""Probes on networks whose states are not the source's words in their order."""

import math

import pytest

from bench.api import registry
from bench.api.errors import Refused
from bench.api.selector import Selector

TURNED = "rnn_seq2seq[hidden=16,embedding=8,encoder=embed,source_order={}]"
FOLDED = "rnn_seq2seq[hidden=16,embedding=8,encoder=pyramid[layers=1]]"
MANY = "transduction[rule=svo,min_length=3,max_length=5,vocab=1000]"
"""Many symbols, because two equal words have equal states, and ties are broken by place."""
BLIND = ("alignment", "effective_attention", "mean_field_gap", "coverage")
"""Probes that do not care in which order keys stand."""


def measured(name, subject):
    found = registry.make("probe", Selector(name)).measure(subject)
    return {(one.metric, one.axis, one.x): one.value for one in found}


@pytest.mark.parametrize("name", BLIND)
def test_a_source_read_backwards_measures_alike_where_order_does_not_matter(name, subject):
    forward, backward = (
        measured(name, subject(task=MANY, backbone=TURNED.format(order), batches=2))
        for order in ("forward", "reversed")
    )
    assert set(forward) == set(backward)
    assert forward
    for key, value in forward.items():
        assert backward[key] == pytest.approx(value, abs=1e-6), key


@pytest.mark.parametrize("name", [*BLIND, "blur", "erasure", "gradient_path"])
def test_a_pyramid_can_be_looked_at_state_by_state(name, subject):
    found = measured(name, subject(backbone=FOLDED, batches=2))
    assert found
    assert all(math.isfinite(value) for value in found.values())


def test_what_needs_a_state_for_each_word_is_refused(subject):
    with pytest.raises(Refused, match="states are not its words, one for one"):
        measured("token_identifiability", subject(backbone=FOLDED))


@pytest.mark.parametrize("name", ["effective_attention", "mean_field_gap"])
@pytest.mark.parametrize(
    ("variant", "task"),
    [
        ("dot", "chains[facts=1,validate=30,test=60]"),
        ("han", "hier_doc[sentences=4,words=5,noise=20,evaluate=32]"),
    ],
)
def test_weights_over_words_of_mixed_sentences_are_refused(name, variant, task, subject):
    with pytest.raises(Refused, match=r"weights .* not over the values|one head reads one source"):
        measured(name, subject(variant, task=task))
