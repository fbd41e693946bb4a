import math

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.errors import Refused
from bench.api.source import Memory, Source


def by_loops(output, scene, trace, batch):
    return output.oracle(trace, scene.emit, batch)


@pytest.mark.parametrize("heads", [1, 2])
def test_vectorized_code_equals_the_loops(scene, example, heads):
    output = scene.output("copynet", source=6 * heads)
    trace, batch = scene.trace(heads=heads), scene.batch()
    found = output.log_probs(trace, scene.emit, batch)
    for row in range(scene.rows):
        expected = by_loops(output, scene, *example(trace, batch, row))
        assert (found[row].exp() - expected).abs().max() < 1e-12
        there = expected > 0
        assert (found[row] - expected.log())[there].abs().max() < 1e-10
        assert (found[row][~there] < -1e20).all(), "a word that cannot be said has no probability"


def test_gradients_equal_those_of_the_loops(scene, example):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    for row in range(scene.rows):
        grads = []
        for values in (
            output.log_probs(trace, scene.emit, batch)[row].exp(),
            by_loops(output, scene, *example(trace, batch, row)),
        ):
            pulled = (values * scene.normal(scene.steps, 9, seed=9)).sum()
            grads.append(torch.autograd.grad(pulled, output.to_key.weight)[0])
        assert grads[0].abs().max() > 1e-3
        assert (grads[0] - grads[1]).abs().max() < 1e-12


def test_one_softmax_shares_words_and_places(scene):
    found = scene.output("copynet").log_probs(scene.trace(), scene.emit, scene.batch())
    assert found.shape == (scene.rows, scene.steps, scene.vocab + scene.extra)
    assert (found.exp().sum(-1) - 1).abs().max() < 1e-12


def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    expected = scene.at_targets(output.log_probs(trace, scene.emit, batch), batch)
    assert (output.nll(trace, scene.emit, batch) - expected).abs().max() < 1e-12


def golden(scene):
    """Words a, b, UNK with scores 1, .5, 0; the source a, x, a with scores .2, 2, .3."""
    output = scene.output("copynet", vocab=3, states=1, source=1, unk=2)
    state = torch.full((1, 1, 1), 10.0, dtype=torch.float64)
    value = torch.tensor([0.2, 2.0, 0.3], dtype=torch.float64).div(10).atanh().view(1, 1, 3, 1)
    with torch.no_grad():
        output.to_key.weight.fill_(1.0)
    trace = scene.trace()._replace(
        states=state, context=state, embedded=state, memories=(Memory(Source(value, value)),)
    )
    target = torch.zeros(1, 1, dtype=torch.int64)
    batch = Batch(
        sources=(Text(torch.tensor([[0, 2, 0]]), None),),
        inputs=target,
        targets=target,
        mask=target == 0,
        extended=torch.tensor([[0, 3, 0]]),
        num_extra=1,
    )
    return output, trace, batch


def test_golden_probabilities(scene):
    output, trace, batch = golden(scene)

    def emit(states, context, embedded):
        return torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64).expand(*states.shape[:-1], 3)

    found = output.log_probs(trace, emit, batch).exp().flatten()
    expected = torch.tensor([0.345106, 0.107567, 0.065243, 0.482084], dtype=torch.float64)
    assert (found - expected).abs().max() < 1e-6
    assert abs(output.nll(trace, emit, batch).item() + math.log(0.345106)) < 1e-5


def test_golden_selective_read(scene):
    output, trace, batch = golden(scene)
    carried = dict(output.begin(batch, trace.memories))
    carried["states"] = torch.eye(3, dtype=torch.float64)[None]
    read = output.feed(trace.states, torch.tensor([[0]]), carried).flatten()
    expected = torch.tensor([0.475021, 0.0, 0.524979], dtype=torch.float64)
    assert (read - expected).abs().max() < 1e-6


def test_the_selective_read_is_the_normalized_copy_part_of_the_step_before(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    carried = output.begin(batch, trace.memories)
    states = trace.memories[0].source.value[:, 0]
    words = torch.tensor([[5], [7], [0]])
    found = output.feed(trace.states[:, 1:2], words, carried)[:, 0]
    for row, places in enumerate([(0, 2), (0, 2), ()]):
        part = [
            torch.exp(torch.tanh(output.to_key.weight @ states[row, j]) @ trace.states[row, 1])
            for j in places
        ]
        expected = torch.zeros(6, dtype=torch.float64)
        for share, j in zip(part, places, strict=True):
            expected = expected + share / sum(part) * states[row, j]
        assert (found[row] - expected).abs().max() < 1e-12
    assert not found[2].any(), "padding carries id 0 and must not be read"


def test_hopeless_copy_scores_leave_the_softmax_over_the_vocabulary(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    states = torch.full_like(trace.states, 1e3)
    values = trace.memories[0].source.value
    with torch.no_grad():
        output.to_key.weight.copy_(-1e3 * values[0, 0, 0].expand(4, 6))
    first = Source(values[:1, :, :1].expand(3, 1, 5, 6), values[:1, :, :1].expand(3, 1, 5, 6))
    trace = trace._replace(memories=(Memory(first),), states=states)

    def emit(hidden, context, embedded):
        return scene.emit(scene.trace().states, context, embedded)

    found = output.log_probs(trace, emit, batch)
    torch.testing.assert_close(found[..., : scene.vocab], plain)


def test_a_source_of_padding_alone_leaves_the_softmax_over_the_vocabulary(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(real=(5, 4, 0)), scene.batch()
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = output.log_probs(trace, scene.emit, batch)
    torch.testing.assert_close(found[2, :, : scene.vocab], plain[2])
    losses = output.nll(trace, scene.emit, batch)
    losses.sum().backward()
    assert losses.isfinite().all()
    assert output.to_key.weight.grad.isfinite().all()


def test_copies_of_one_word_add_up(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    apart = scene.batch(extended=torch.tensor([[5, 7, 6, 8, 4], [7, 6, 7, 4, 0], [4, 5, 0, 0, 0]]))
    together, split = (output.log_probs(trace, scene.emit, b).exp() for b in (batch, apart))
    torch.testing.assert_close(together[0, :, 5:7].sum(-1), split[0, :, 5:7].sum(-1))
    assert (together[0, :, 5] > split[0, :, 5] + 1e-4).all()


def test_ids_of_padded_source_places_do_not_matter(scene):
    output, trace, batch = scene.output("copynet"), scene.trace(), scene.batch()
    changed = batch.extended.clone()
    changed[2, 2:] = 6
    other = scene.batch(extended=changed)
    assert torch.equal(output.nll(trace, scene.emit, batch), output.nll(trace, scene.emit, other))
    one, two = (output.log_probs(trace, scene.emit, b) for b in (batch, other))
    assert torch.equal(one, two)


def test_an_unknown_target_that_the_source_has_not_is_trained_as_unk(scene):
    output, trace = scene.output("copynet"), scene.trace()
    asked = torch.full((scene.rows, scene.steps), 8)
    unknown = scene.batch(targets=torch.full_like(asked, scene.unk))
    found = output.nll(trace, scene.emit, scene.batch(targets=asked))
    as_unk = output.nll(trace, scene.emit, unknown)
    assert torch.equal(found[1:], as_unk[1:])
    assert (found[0] != as_unk[0]).all(), "row 0 holds the word"


def test_low_precision_is_finite(scene):
    output = scene.output("copynet").bfloat16()
    trace, batch = scene.trace(), scene.batch()
    value = trace.memories[0].source.value.bfloat16()
    mask = trace.memories[0].source.mask
    parts = [part.bfloat16() for part in trace[:3]]
    low = trace._replace(
        states=parts[0],
        context=parts[1],
        embedded=parts[2],
        memories=(Memory(Source(value, value, mask)),),
    )

    def emit(*given):
        return scene.emit(*(x.double() for x in given)).bfloat16()

    losses = output.nll(low, emit, batch)
    losses.sum().backward()
    assert losses.isfinite().all()
    assert (losses - output.double().nll(trace, scene.emit, batch)).abs().max() < 0.2


def test_it_is_refused_without_source_ids_or_states_of_another_width(scene):
    output, trace = scene.output("copynet"), scene.trace()
    with pytest.raises(Refused, match="copynet copies source words"):
        output.nll(trace, scene.emit, scene.batch(extended=None))
    with pytest.raises(Refused, match="use head=raw"):
        output.nll(scene.trace(heads=2), scene.emit, scene.batch())
    with pytest.raises(Refused, match="this network keeps none"):
        output.nll(trace._replace(memories=()), scene.emit, scene.batch())
