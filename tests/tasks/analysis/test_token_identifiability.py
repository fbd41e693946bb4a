import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.analysis.token_identifiability import _fit, _nearest

LONG = "transduction[min_length=2,max_length=5,vocab=12]"


def measured(seen):
    found = make("instrument", parse("token_identifiability")).measure(seen)
    return {s.metric: s.value for s in found}


def test_embeddings_themselves_are_always_found(subject):
    plain = subject(
        "additive", task=LONG, backbone="rnn_seq2seq[encoder=embed,embedding=16]", batches=6
    )
    found = measured(plain)
    assert found["token_identified_share"] > 0.95 > found["token_chance_share"]


def test_states_that_say_nothing_are_not_found(subject, monkeypatch):
    seen = subject("additive", task=LONG, batches=6)
    with torch.no_grad():
        for parameter in seen.backbone.encoders.parameters():
            parameter.zero_()
    found = measured(seen)
    assert found["token_identified_share"] < 0.4


def test_a_linear_map_is_found_from_examples():
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    words = torch.randint(9, (80,), generator=generator)
    states = table[words] @ torch.randn(4, 6, generator=generator, dtype=torch.float64)
    assert torch.equal(
        _nearest(_fit(states[:40], table[words[:40]]), states[40:], table), words[40:]
    )


def test_without_a_source_there_are_no_words_to_find(subject):
    with pytest.raises(Refused, match="a source"):
        measured(subject("scaled_dot", task="recall"))
