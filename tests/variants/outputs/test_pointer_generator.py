import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import OutputSizes
from bench.api.source import State
from bench.api.trace import Trace
from variants.outputs.pointer_generator import PointerGeneratorConfig, PointerGeneratorOutput

ROWS, STEPS, KEYS, VOCAB, EXTRA, UNK = 3, 4, 5, 7, 2, 3
WIDTHS = OutputSizes(vocab=VOCAB, states=4, context=5, embedded=2, unk=UNK)


def normal(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def make_output(**options):
    made = PointerGeneratorOutput(PointerGeneratorConfig(**options), WIDTHS).double()
    with torch.no_grad():
        made.gate.weight.copy_(0.5 * normal(1, 11, seed=1))
        made.gate.bias.copy_(normal(1, seed=2))
    return made


@pytest.fixture
def output():
    return make_output()


def emit(states, context, embedded):
    return torch.cat((states, context, embedded), -1) @ normal(11, VOCAB, seed=3)


def make_trace(heads=1, real=(5, 4, 2)):
    mask = torch.arange(KEYS) < torch.tensor(real)[:, None]
    energy = normal(ROWS, heads, STEPS, KEYS, seed=4).masked_fill(~mask[:, None, None], -torch.inf)
    states, context, embedded = (normal(ROWS, STEPS, n, seed=n) for n in (4, 5, 2))
    weights = torch.softmax(energy, -1)
    attended = Attended(context[:, None], weights, State(), {})
    return Trace(states, context, embedded, (attended,), (None,))


def make_batch(**changes):
    # row 0 repeats word 5 and holds both extra ids; row 2 is two words and padding
    extended = torch.tensor([[5, 7, 5, 8, 4], [7, 6, 7, 4, 0], [4, 5, 0, 0, 0]])
    targets = torch.tensor([[5, 7, 8, 2], [7, 6, 2, 0], [4, 2, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=torch.bool)
    given = {"extended": extended, "num_extra": EXTRA, **changes}
    return Batch((), targets, targets, mask, **given)


@pytest.mark.parametrize("heads", [1, 3])
def test_vectorized_code_equals_the_loops(output, example, heads):
    trace, batch = make_trace(heads), make_batch()
    found = output.log_probs(trace, emit, batch).exp()
    for row in range(ROWS):
        one, alone = example(trace, batch, row)
        expected = output.oracle(one, emit, alone)
        assert (found[row] - expected).abs().max() < 1e-12


def test_gradients_equal_those_of_the_loops(output, example):
    trace, batch = make_trace(), make_batch()
    for row in range(ROWS):
        grads = []
        one, alone = example(trace, batch, row)
        for values in (
            output.log_probs(trace, emit, batch)[row].exp(),
            output.oracle(one, emit, alone),
        ):
            pulled = (values * normal(STEPS, VOCAB + EXTRA, seed=9)).sum()
            grads.append(torch.autograd.grad(pulled, output.gate.weight)[0])
        assert (grads[0] - grads[1]).abs().max() < 1e-12


def test_probabilities_of_the_extended_vocabulary_sum_to_one(output):
    found = output.log_probs(make_trace(), emit, make_batch())
    assert found.shape == (ROWS, STEPS, VOCAB + EXTRA)
    assert torch.isfinite(found).all()
    assert (found.exp().sum(-1) - 1).abs().max() < 1e-12


def test_copies_of_one_word_add_up(output):
    trace = make_trace()
    with torch.no_grad():
        output.gate.bias.fill_(-100.0)
    found = output.log_probs(trace, emit, make_batch()).exp()
    weights = trace.weights
    torch.testing.assert_close(found[0, :, 5], weights[0, :, 0] + weights[0, :, 2])
    torch.testing.assert_close(found[1, :, 7], weights[1, :, 0] + weights[1, :, 2])
    torch.testing.assert_close(found[0, :, 8], weights[0, :, 3])


def test_an_open_gate_is_the_softmax_over_the_vocabulary(output):
    trace = make_trace()
    with torch.no_grad():
        output.gate.bias.fill_(100.0)
    found = output.log_probs(trace, emit, make_batch())
    plain = torch.log_softmax(emit(trace.states, trace.context, trace.embedded), -1)
    torch.testing.assert_close(found[..., :VOCAB], plain)
    assert (found[..., VOCAB:].exp() < 1e-12).all()


def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(output):
    trace, batch = make_trace(heads=2), make_batch()
    found = output.nll(trace, emit, batch)
    expected = -output.log_probs(trace, emit, batch).gather(-1, batch.targets[..., None])[..., 0]
    torch.testing.assert_close(found, torch.where(batch.mask, expected, 0.0))


def test_ids_of_padded_source_places_do_not_matter(output):
    trace, batch = make_trace(), make_batch()
    changed = batch.extended.clone()
    changed[2, 2:] = 6
    other = make_batch(extended=changed)
    assert torch.equal(output.nll(trace, emit, batch), output.nll(trace, emit, other))
    one, two = (output.log_probs(trace, emit, b).exp() for b in (batch, other))
    assert (one - two).abs().max() < 1e-18


def test_an_unknown_word_is_a_copy_where_the_source_has_it_and_unk_where_not(output):
    batch = make_batch()
    found = output.log_probs(make_trace(), emit, batch).exp()
    assert (found[0, :, 7] > 1e-6).all(), "the source of row 0 holds the first unknown word"
    assert (found[2, :, 7] < 1e-18).all(), "the source of row 2 does not"
    logits = emit(*make_trace()[:3])
    gate = torch.sigmoid(
        output.gate(torch.cat((make_trace()[1], make_trace()[0], make_trace()[2]), -1))
    )
    torch.testing.assert_close(found[..., UNK], (gate * torch.softmax(logits, -1))[..., UNK])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_word_that_cannot_be_said_costs_a_finite_amount(dtype):
    output = PointerGeneratorOutput(PointerGeneratorConfig(), WIDTHS).to(dtype)
    trace = make_trace()
    weights = torch.zeros(ROWS, 1, STEPS, KEYS, dtype=dtype)
    weights[..., 4] = 1.0
    weights.requires_grad_()
    parts = [part.to(dtype) for part in trace[:3]]
    trace = Trace(*parts, (Attended(weights, weights, State(), {}),), (None,))

    def say(states, context, embedded):
        return emit(states.double(), context.double(), embedded.double()).to(dtype)

    losses = output.nll(trace, say, make_batch())
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert losses.max() < 60
    assert torch.isfinite(weights.grad).all()
    assert torch.isfinite(output.gate.weight.grad).all()


def test_it_is_refused_without_source_ids(output):
    with pytest.raises(Refused, match="copies source words"):
        output.nll(make_trace(), emit, make_batch(extended=None))


def test_forced_copies_are_trained_as_copies_alone_and_scored_by_both_ways(output):
    forced, trace, batch = make_output(force_copy=True), make_trace(), make_batch()
    both = output.nll(trace, emit, batch)
    assert torch.equal(forced.eval().nll(trace, emit, batch), both)
    found = forced.train().nll(trace, emit, batch)
    parts = trace[1], trace[0], trace[2]
    gate = torch.sigmoid(forced.gate(torch.cat(parts, -1))).squeeze(-1)
    copied = (1 - gate[0, 0]) * (trace.weights[0, 0, 0] + trace.weights[0, 0, 2])
    torch.testing.assert_close(found[0, 0], -copied.log(), rtol=0, atol=1e-12)
    assert found[0, 0] > both[0, 0] + 0.01
    assert torch.equal(found[0, 1:], both[0, 1:]), "unknown words and absent words are as before"
    assert torch.equal(found[2, 1:], both[2, 1:])


def test_the_last_heads_alone_point_where_they_are_asked_to():
    trace, batch = make_trace(heads=3), make_batch()
    found = make_output(heads=2).log_probs(trace, emit, batch)
    kept = trace.attended[0].weights[:, 1:]
    cut = trace._replace(attended=(trace.attended[0]._replace(weights=kept),))
    assert torch.equal(found, make_output().log_probs(cut, emit, batch))
    assert not torch.equal(found, make_output().log_probs(trace, emit, batch))
    with pytest.raises(Refused, match="points with 4 heads, and has 3 heads"):
        make_output(heads=4).nll(trace, emit, batch)
    with pytest.raises(InvalidConfig, match="heads must be at least 0"):
        make_output(heads=-1)
