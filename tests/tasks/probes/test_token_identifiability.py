import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes.token_identifiability import _fit, _half, _nearest

LONG = "transduction[min_length=2,max_length=5,vocab=12]"


def measured(seen):
    found = make("probe", parse("token_identifiability")).measure(seen)
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


def test_an_example_is_in_one_half_with_all_its_words():
    counts = torch.tensor([3, 1, 4, 1, 5, 9])
    chosen = _half(counts.split(4), 7)
    halves = [set(part.tolist()) for part in chosen.split(counts.tolist())]
    assert all(len(half) == 1 for half in halves)
    assert sum(half == {True} for half in halves) == 3


def test_what_an_example_shares_with_itself_alone_identifies_nothing(subject, monkeypatch):
    """States that tell the example and not the word, in examples that say one word each."""
    examples, length = 40, 6
    generator = torch.Generator().manual_seed(0)
    marks = torch.randn(examples, 64, generator=generator, dtype=torch.float64)
    said = 4 + torch.arange(examples) % 12
    given = (
        marks.repeat_interleave(length, 0),
        said.repeat_interleave(length),
        torch.full((examples,), length),
    )
    module = "tasks.probes.token_identifiability"
    monkeypatch.setattr(f"{module}.observations", lambda _: [None])
    monkeypatch.setattr(f"{module}._words", lambda _: given)
    found = measured(subject("additive", task=LONG))
    assert found["token_identified_share"] < 0.4
