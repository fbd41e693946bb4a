"""The recurrent decoder against its equations; what sees what; where the variant stands."""

import pytest
import torch

from bench.api.batch import Batch
from bench.api.errors import InvalidConfig
from bench.api.trace import Mode

VOCAB = 9
SMALL = "rnn_decoder[hidden=6,embedding=5]"


def examples(length: int = 7, rows: int = 2) -> Batch:
    rng = torch.Generator().manual_seed(1)
    words = torch.randint(0, VOCAB, (rows, length), generator=rng)
    return Batch((), words, words, torch.ones_like(words).bool())


def said(network, batch) -> torch.Tensor:
    trace = network(batch, Mode())
    return network.emit(trace.states, trace.context, trace.embedded)


def test_it_equals_its_equations(placed, near):
    network = placed(SMALL, "scaled_dot", (), VOCAB)
    batch, heads = examples(), network.slot.heads
    states = []
    hidden = cell = torch.zeros(6, dtype=torch.float64)
    rnn = network.rnn
    for word in batch.inputs[0]:
        x = network.embedding.weight[word]
        gates = rnn.weight_ih_l0 @ x + rnn.bias_ih_l0 + rnn.weight_hh_l0 @ hidden + rnn.bias_hh_l0
        entering, forgetting, fresh, leaving = gates.chunk(4)
        cell = forgetting.sigmoid() * cell + entering.sigmoid() * fresh.tanh()
        hidden = leaving.sigmoid() * cell.tanh()
        states.append(hidden)
    told = []
    for t, state in enumerate(states):
        query = heads.to_query(state)
        past = torch.stack([heads.to_key(s) for s in states[: t + 1]])
        weights = torch.softmax(past @ query / 6**0.5, 0)
        value = sum(w * heads.to_value(s) for w, s in zip(weights, states, strict=False))
        context = heads.to_output(value)
        read = torch.tanh(network.of_context.weight @ context + network.of_state(state))
        told.append(network.project(read))
    near(said(network, batch)[0], torch.stack(told))


@pytest.mark.parametrize("variant", ["scaled_dot", "additive", "shaw_rpr", "last_state"])
@pytest.mark.parametrize("options", ["", ",cell=gru", ",layers=2,heads=2"])
def test_no_token_sees_a_later_one_and_all_see_every_earlier_one(variant, options, placed):
    network = placed(SMALL.replace("]", f"{options}]"), variant, (), VOCAB)
    batch, kept = examples(), []
    network.embedding.register_forward_hook(
        lambda _module, _args, out: kept.append(out.detach().requires_grad_()) or kept[-1]
    )
    logits = said(network, batch)
    for t in range(7):
        (slope,) = torch.autograd.grad(logits[0, t].sin().sum(), kept[0], retain_graph=True)
        assert (slope[0].abs().sum(-1) > 0).tolist() == [s <= t for s in range(7)]


def test_with_last_state_every_state_reads_itself_alone(placed):
    trace = placed(SMALL, "last_state", (), VOCAB)(examples(), Mode())
    assert torch.equal(trace.weights, torch.eye(7, dtype=torch.float64).expand(2, 7, 7))


def test_what_stands_behind_a_sequence_changes_nothing_in_it(placed, near):
    network = placed(SMALL, "additive", (), VOCAB)
    whole = examples()
    cut = Batch((), whole.inputs[:, :4], whole.targets[:, :4], whole.mask[:, :4])
    near(said(network, cut), said(network, whole)[:, :4])


@pytest.mark.parametrize("variant", ["pointer_sentinel", "neural_cache"])
def test_outputs_that_copy_from_the_past_stand_on_its_states(variant, placed):
    network, batch = placed(SMALL, variant, (), VOCAB), examples()
    network.eval()
    trace = network(batch, Mode())
    logs = network.output.log_probs(trace, network.emit, batch)
    assert torch.allclose(logs.exp().sum(-1), torch.ones(2, 7, dtype=torch.float64))
    nll = network.output.nll(trace, network.emit, batch)
    assert torch.allclose(nll, -logs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1))


def test_gradients_reach_every_parameter(placed):
    network, batch = placed(SMALL, "scaled_dot", (), VOCAB), examples()
    trace = network(batch, Mode())
    network.output.nll(trace, network.emit, batch).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        # a bias on every key of a row changes no softmax
        assert parameter.grad.abs().sum() > 0 or "to_key.bias" in name, name


def test_dropout_is_for_training_alone(placed):
    network = placed(SMALL.replace("]", ",dropout=0.5]"), "scaled_dot", (), VOCAB)
    batch = examples()
    assert not torch.equal(said(network, batch), said(network, batch))
    network.eval()
    assert torch.equal(said(network, batch), said(network, batch))


@pytest.mark.parametrize("options", ["hidden=0", "hidden=6,heads=4", "embedding=0", "layers=0"])
def test_impossible_sizes_are_refused(options, placed):
    with pytest.raises(InvalidConfig, match="at least 1"):
        placed(f"rnn_decoder[{options}]", "additive", (), VOCAB)
