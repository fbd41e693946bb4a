from dataclasses import replace

import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode

OFFSET = {"task": "offset[length=6,beyond=7,back=1,evaluate=4]", "slot": "causal"}
BACKBONE = "transformer_decoder[width=16,heads=2,layers=2]"


def measured(seen):
    found = make("probe", parse("first_token_mass")).measure(seen)
    return {one.metric: one.value for one in found}


@pytest.mark.parametrize("backbone", [BACKBONE, BACKBONE.replace("layers=2", "layers=1")])
def test_it_is_the_mean_weight_of_the_first_key_in_the_last_layer(backbone, subject):
    seen = subject("scaled_dot", backbone=backbone, **OFFSET)
    (batch,) = seen.batches
    last = seen.backbone(batch, Mode()).attended[0].weights
    found = measured(seen)
    masses, firsts = [], []
    for row in range(len(batch.inputs)):
        for query in range(1, batch.inputs.shape[1]):
            heads = [last[row, head, query].tolist() for head in range(2)]
            mean = [sum(pair) / 2 for pair in zip(*heads, strict=True)]
            masses.append(mean[0])
            firsts.append(mean[0] > max(mean[1:]))
    assert found["first_token_mass_share"] == pytest.approx(sum(masses) / len(masses))
    assert found["first_token_largest_share"] == pytest.approx(sum(firsts) / len(firsts))


def test_equal_weights_have_the_mass_that_equal_weights_have(subject):
    seen = subject("uniform", backbone=BACKBONE, **OFFSET)
    found = measured(seen)
    length = seen.batches[0].inputs.shape[1]
    expected = sum(1 / (query + 1) for query in range(1, length)) / (length - 1)
    assert found["first_token_equal_share"] == pytest.approx(expected)
    assert found["first_token_mass_share"] == pytest.approx(expected)
    assert found["first_token_largest_share"] == 0.0


def with_real(seen, counts):
    """The same examples with so many real keys each."""
    (batch,) = seen.batches
    (text,) = batch.sources
    mask = torch.arange(text.tokens.shape[1]) < torch.tensor(counts).unsqueeze(1)
    return replace(seen, batches=(replace(batch, sources=(replace(text, mask=mask),)),))


@pytest.fixture
def source(subject):
    task = "transduction[rule=copy,min_length=4,max_length=4,evaluate=3]"
    return subject("additive", task=task, backbone="rnn_seq2seq[encoder=embed]")


def test_queries_with_one_key_have_no_choice(source):
    with pytest.raises(Refused, match="one key only"):
        measured(with_real(source, [1, 1, 1]))


def test_padding_is_no_key(source):
    found = measured(with_real(source, [1, 2, 5]))
    assert found["first_token_equal_share"] == pytest.approx((1 / 2 + 1 / 5) / 2)


def test_attention_without_weights_has_no_mass(subject):
    with pytest.raises(Refused, match="no attention weights"):
        measured(subject("linear_attention", backbone=BACKBONE, **OFFSET))
