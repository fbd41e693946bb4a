import itertools

import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.output import OutputSizes
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace
from variants.outputs import hard_exact
from variants.outputs.hard_exact import HardExactOutput

ROWS, STEPS, KEYS, VOCAB, UNK = 3, 4, 5, 7, 3
WIDTHS = OutputSizes(vocab=VOCAB, states=4, context=6, embedded=2, unk=UNK)


def normal(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.fixture
def output():
    return HardExactOutput(NoOptions(), WIDTHS)


def emit(states, context, embedded):
    return (
        torch.tanh(states @ normal(4, 8, seed=1) + context @ normal(6, 8, seed=2))
        + embedded @ normal(2, 8, seed=3)
    ) @ normal(8, VOCAB, seed=4)


def make_trace(real=(5, 3, 1), keys=KEYS, weights=None, grad=False):
    mask = torch.arange(keys) < torch.tensor(real)[:, None]
    value = normal(ROWS, 1, keys, 6, seed=5).requires_grad_(grad)
    if weights is None:
        energy = normal(ROWS, 1, STEPS, keys, seed=6).requires_grad_(grad)
        lowest = torch.finfo(energy.dtype).min
        weights = torch.softmax(torch.where(mask[:, None, None], energy, lowest), -1)
        weights = torch.where(mask[:, None, None], weights, 0.0)
    context = weights @ value
    states, embedded = normal(ROWS, STEPS, 4, seed=7), normal(ROWS, STEPS, 2, seed=8)
    memory = Memory(Source(value, value, mask))
    return Trace(
        states, context[:, 0], embedded, (Attended(context, weights, State(), {}),), (memory,)
    )


def make_batch(**changes):
    targets = torch.tensor([[5, 6, 4, 2], [6, 5, 2, 0], [4, 2, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=torch.bool)
    return Batch((), targets, changes.pop("targets", targets), mask, **changes)


def at_targets(log_probs, batch):
    return log_probs.gather(-1, batch.targets[..., None])[..., 0]


def test_vectorized_code_equals_the_loops(output, example):
    trace, batch = make_trace(), make_batch()
    found = output.log_probs(trace, emit, batch)
    assert (found.exp().sum(-1) - 1).abs().max() < 1e-12
    for row in range(ROWS):
        one, alone = example(trace, batch, row)
        expected = output.oracle(one, emit, alone)
        assert (found[row] - expected.log()).abs().max() < 1e-10


def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(output):
    trace, batch = make_trace(), make_batch()
    expected = torch.where(
        batch.mask, -at_targets(output.log_probs(trace, emit, batch), batch), 0.0
    )
    assert (output.nll(trace, emit, batch) - expected).abs().max() < 1e-12


def test_the_likelihood_of_a_sentence_is_the_sum_over_all_alignments(output):
    trace, batch = make_trace(), make_batch()
    found = torch.exp(-output.nll(trace, emit, batch)[1, :3].sum()).item()
    total = 0.0
    for keys in itertools.product(range(3), repeat=3):
        chance = 1.0
        for t, s in enumerate(keys):
            value = trace.memories[0].source.value[1, 0, s]
            words = torch.softmax(emit(trace.states[1, t], value, trace.embedded[1, t]), -1)
            chance *= trace.weights[1, t, s].item() * words[batch.targets[1, t]].item()
        total += chance
    assert found == pytest.approx(total, rel=1e-10)


def test_it_is_never_worse_than_the_bound_that_sampling_optimizes(output):
    trace, batch = make_trace(), make_batch()
    value = trace.memories[0].source.value[:, 0, None]
    words = emit(trace.states[:, :, None], value, trace.embedded[:, :, None]).log_softmax(-1)
    index = batch.targets[:, :, None, None].expand(-1, -1, KEYS, 1)
    bound = -(trace.weights * words.gather(-1, index)[..., 0]).sum(-1)
    gap = (bound - output.nll(trace, emit, batch))[batch.mask]
    assert (gap > -1e-12).all()
    assert gap.max() > 0.1


def test_one_key_is_soft_attention(output):
    trace = make_trace(real=(1, 1, 1), keys=1)
    soft = emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    torch.testing.assert_close(output.log_probs(trace, emit, make_batch()), soft)


def test_weights_on_one_key_are_soft_attention(output):
    weights = torch.eye(KEYS, dtype=torch.float64)[:STEPS].expand(ROWS, 1, STEPS, KEYS)
    trace = make_trace(real=(5, 5, 5), weights=weights)
    soft = emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    torch.testing.assert_close(output.log_probs(trace, emit, make_batch()), soft)


def test_chunks_change_neither_values_nor_gradients(output, monkeypatch):
    found = []
    two_rows = 2 * (KEYS + 1) * VOCAB  # the zero vector is one more key
    for limit in (2**22, two_rows, 1):
        monkeypatch.setattr(hard_exact, "CHUNK_LOGITS", limit)
        trace = make_trace(grad=True)
        losses = output.nll(trace, emit, make_batch())
        losses.sum().backward()
        full = output.log_probs(trace, emit, make_batch()).detach()
        found.append((losses.detach(), trace.memories[0].source.value.grad, full))
    for other in found[1:]:
        for one, two in zip(other, found[0], strict=True):
            assert (one - two).abs().max() < 1e-12


def test_padded_keys_change_nothing_and_get_no_gradient(output):
    trace = make_trace(grad=True)
    value = trace.memories[0].source.value
    output.nll(trace, emit, make_batch()).sum().backward()
    assert not value.grad[1, 0, 3:].any()
    assert not value.grad[2, 0, 1:].any()
    changed = value.detach().clone()
    changed[1, 0, 3:], changed[2, 0, 1:] = 1e3, -1e3
    mask = trace.memories[0].source.mask
    other = trace._replace(memories=(Memory(Source(changed, changed, mask)),))
    assert torch.equal(output.nll(other, emit, make_batch()), output.nll(trace, emit, make_batch()))


def test_a_query_without_keys_reads_the_zero_vector(output):
    weights = torch.zeros(ROWS, 1, STEPS, KEYS, dtype=torch.float64, requires_grad=True)
    trace = make_trace(weights=weights)
    assert not trace.context.any()
    losses = output.nll(trace, emit, make_batch())
    soft = emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    torch.testing.assert_close(losses[0], -at_targets(soft, make_batch())[0])
    losses.sum().backward()
    assert torch.isfinite(weights.grad).all()


def test_a_copied_word_is_trained_as_unk_and_never_predicted(output):
    batch = make_batch(num_extra=2, targets=torch.full((ROWS, STEPS), VOCAB + 1))
    unknown = make_batch(targets=torch.full((ROWS, STEPS), UNK))
    trace = make_trace()
    assert torch.equal(output.nll(trace, emit, batch), output.nll(trace, emit, unknown))
    assert (output.log_probs(trace, emit, batch)[..., VOCAB:] == -torch.inf).all()


def test_values_that_are_not_contexts_are_refused(output):
    trace = make_trace()
    value = trace.memories[0].source.value
    for wrong in (value.expand(-1, 2, -1, -1), value[..., :3]):
        other = trace._replace(memories=(Memory(Source(wrong, wrong)),))
        with pytest.raises(Refused, match="head=raw"):
            output.nll(other, emit, make_batch())
    with pytest.raises(Refused, match="one slot"):
        output.nll(trace._replace(memories=()), emit, make_batch())
