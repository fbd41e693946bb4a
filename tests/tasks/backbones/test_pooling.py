"""What asks the pooled sequence: a learned vector, or the last real state."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import InvalidConfig
from bench.api.trace import Mode
from tasks.backbones.pooling import Encoded, Pooling

SMALL = "pooling[embedding=8,encoder=uni_rnn,query=last]"


def padded(batch, lengths):
    (text,) = batch.sources
    mask = torch.arange(text.tokens.shape[1]) < torch.tensor(lengths)[:, None]
    return replace(batch, sources=(Text(text.tokens, mask),))


def test_the_state_of_the_last_real_token_asks(built, near):
    backbone, _, batch = built(task="after_marker[length=6]", backbone=SMALL)
    lengths = [6, 4, 1, 3]
    trace = backbone(padded(batch, lengths), Mode())
    states, _ = backbone.encoder.rnn(backbone.embedding(batch.sources[0].tokens))
    expected = torch.stack([states[row, length - 1] for row, length in enumerate(lengths)])
    near(trace.states, expected[:, None])
    near(backbone(batch, Mode()).states, states[:, -1:])


def test_the_last_token_that_an_encoder_selects_asks():
    """A selection is no prefix, so that the count of its tokens says nothing of the last one."""
    states = torch.arange(12.0).view(2, 6, 1)
    mask = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0]], dtype=torch.bool)
    asked = Pooling._ask(SimpleNamespace(query=None), Encoded(states, mask, states[:, 0]))
    assert asked.flatten().tolist() == [4.0, 6.0]


def test_padding_changes_no_answer(built, near):
    backbone, _, batch = built(task="after_marker[length=6]", backbone=SMALL)
    whole = backbone(padded(batch, [6, 4, 1, 3]), Mode())
    for row, length in enumerate([6, 4, 1, 3]):
        cut = Text(batch.sources[0].tokens[row : row + 1, :length], None)
        one = replace(
            batch,
            sources=(cut,),
            inputs=batch.inputs[:1],
            targets=batch.targets[:1],
            extended=None,
            gold=None,
        )
        near(whole.context[row : row + 1], backbone(one, Mode()).context)


def test_gradients_reach_the_encoder_through_the_query(built):
    backbone, _, batch = built("dot", task="after_marker[length=6]", backbone=SMALL)
    trace = backbone(batch, Mode())
    (gradient,) = torch.autograd.grad(trace.weights[0, 0, 2], trace.states)
    assert gradient[0].abs().sum() > 0
    assert trace.states.requires_grad


@pytest.mark.parametrize("query", ["learned", "last"])
def test_every_parameter_is_used(built, query):
    name = f"pooling[embedding=8,encoder=birnn,query={query}]"
    backbone, _, batch = built("dot", task="after_marker[length=6]", backbone=name)
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    assert ("query" in dict(backbone.named_parameters())) == (query == "learned")


def test_another_kind_of_query_is_refused(built):
    with pytest.raises(InvalidConfig, match=r"query.*first"):
        built(task="after_marker", backbone="pooling[query=first]")
