"""SNAIL against its blocks in loops; who sees whom through the convolutions."""

import math

import pytest
import torch

from bench.api.batch import Batch
from bench.api.errors import InvalidConfig
from bench.api.trace import Mode
from tasks.backbones.snail import convolution_block

VOCAB = 9
SMALL = "snail[width=4,filters=3,key=5,layers=2]"


def examples(length: int = 7, rows: int = 2) -> Batch:
    rng = torch.Generator().manual_seed(1)
    words = torch.randint(0, VOCAB, (rows, length), generator=rng)
    return Batch((), words, words, torch.ones_like(words).bool())


def said(network, batch) -> torch.Tensor:
    trace = network(batch, Mode())
    return network.emit(trace.states, trace.context, trace.embedded)


def dense(block, states):
    """One dense block, token by token: tanh(f) sigmoid(g) of this place and an earlier one."""
    filters = block.mix.weight.shape[0] // 2
    after = []
    for t, state in enumerate(states):
        total = block.mix.bias + block.mix.weight[:, :, 1] @ state
        if t >= block.dilation:
            total = total + block.mix.weight[:, :, 0] @ states[t - block.dilation]
        new = torch.tanh(total[:filters]) * torch.sigmoid(total[filters:])
        after.append(torch.cat((state, new)))
    return after


def attend(slot, states):
    """One attention block: softmax(q . k / sqrt K) over the places so far, joined to the input."""
    heads, after = slot.heads, []

    def affine(layer, x):
        return layer.weight @ x + layer.bias

    for t, state in enumerate(states):
        query = affine(heads.to_query, state)
        energies = [
            query @ affine(heads.to_key, states[s]) / math.sqrt(len(query)) for s in range(t + 1)
        ]
        exps = [torch.exp(e) for e in energies]
        read = sum((exps[s] / sum(exps)) * affine(heads.to_value, states[s]) for s in range(t + 1))
        after.append(torch.cat((state, read)))
    return after


@pytest.mark.parametrize("first", [1, 2])
def test_the_network_equals_its_blocks(first, placed, near):
    name = SMALL.replace("]", f",first_dilation={first}]")
    network = placed(name, "snail[key=5,value=6]", (), VOCAB, max_length=7)
    batch = examples()
    trace, logits = network(batch, Mode()), said(network, batch)
    for row in range(2):
        states = [network.embedding.weight[t] * 2 for t in batch.inputs[row]]
        for block, slot in zip(network.convolutions, network.variant_slots(), strict=True):
            assert [layer.dilation for layer in block] == [first, 2 * first, 4 * first]
            for layer in block:
                states = dense(layer, states)
            states = attend(slot, states)
        near(trace.states[row], torch.stack(states))
        near(logits[row], torch.stack(states) @ network.project.weight.T + network.project.bias)
    assert trace.weights.shape == (2, 7, 7)


def test_every_attention_block_answers_the_last_one_first(placed, near):
    network = placed(SMALL, "adaptive_span", (), VOCAB, max_length=7)
    trace = network(examples(), Mode())
    penalties = [answered.terms["span"] for answered in trace.attended]
    assert len(penalties) == len(trace.memories) == 2
    spans = [slot.variant for slot in network.variant_slots()]
    for penalty, variant in zip(penalties, spans[::-1], strict=True):
        slopes = torch.autograd.grad(penalty.sum(), tuple(variant.parameters()), allow_unused=True)
        assert any(slope is not None for slope in slopes)


def seen_by_last(length: int, first: int, reach: int) -> list[bool]:
    """Whether each place reaches the last one through one block of convolutions."""
    block = convolution_block(2, 3, reach, first).double()
    x = torch.randn(1, length, 2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(block(x)[0, -1].sin().sum(), x)
    return (slope[0].abs().sum(-1) > 0).tolist()


@pytest.mark.parametrize("reach", [2, 5, 8, 9, 16])
def test_a_block_reaches_the_next_power_of_two_and_not_further(reach):
    field = 2 ** math.ceil(math.log2(reach))
    assert field >= reach
    length = field + 3
    assert seen_by_last(length, 1, reach) == [False] * 3 + [True] * field


def test_dilations_from_two_on_hide_every_other_place():
    assert seen_by_last(16, 2, 8) == [place % 2 == 1 for place in range(16)]


@pytest.mark.parametrize("variant", ["snail", "additive", "linear_attention", "shaw_rpr"])
def test_no_token_sees_a_later_one_and_all_see_every_earlier_one(variant, placed):
    network = placed(SMALL, variant, (), VOCAB, max_length=7)
    batch, kept = examples(), []
    hook = network.embedding.register_forward_hook(
        lambda _module, _args, out: kept.append(out.detach().requires_grad_()) or kept[-1]
    )
    logits = said(network, batch)
    hook.remove()
    for t in range(7):
        (slope,) = torch.autograd.grad(logits[0, t].sin().sum(), kept[0], retain_graph=True)
        reached = slope[0].abs().sum(-1) > 0
        assert reached.tolist() == [s <= t for s in range(7)]


def test_attention_reaches_beyond_the_convolutions(placed):
    """With blocks for two tokens, the first of seven still reaches the last through attention."""
    for variant, reaches in (("snail", True), ("nothing", False)):
        network = placed("snail[width=4,layers=1]", "snail", (), VOCAB, max_length=2)
        if variant == "nothing":
            with torch.no_grad():
                for slot in network.variant_slots():
                    slot.heads.to_value.weight.zero_()
        batch = examples()
        other = batch.inputs.clone()
        other[:, 0] = (other[:, 0] + 1) % VOCAB
        changed = Batch((), other, batch.targets, batch.mask)
        gap = (said(network, batch) - said(network, changed)).detach().abs()
        assert bool((gap[:, -1] > 1e-9).any()) == reaches


def test_every_block_keeps_what_it_was_given_and_adds_to_it(placed):
    network = placed(SMALL, "snail[key=5,value=6]", (), VOCAB, max_length=7)
    trace = network(examples(), Mode())
    assert torch.equal(trace.states[..., :4], trace.embedded)
    # twice three convolutions of three filters and six values
    assert trace.states.shape[-1] == 4 + 2 * (3 * 3 + 6)


def test_positions_enter_what_attention_reads(placed):
    plain, told = (placed(SMALL, v, (), VOCAB) for v in ("snail", "snail[position=sinusoid]"))
    told.load_state_dict(plain.state_dict(), strict=False)
    assert (said(plain, examples()) - said(told, examples())).abs().max() > 1e-3


def test_gradients_reach_every_parameter(placed):
    network = placed(SMALL, "snail", (), VOCAB)
    batch = examples()
    trace = network(batch, Mode())
    network.output.nll(trace, network.emit, batch).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        # a bias on every key of a row changes no softmax
        assert parameter.grad.abs().sum() > 0 or "to_key.bias" in name, name


def test_impossible_sizes_are_refused(placed):
    with pytest.raises(InvalidConfig, match="at least 1"):
        placed("snail[layers=0]", "snail", (), VOCAB)
