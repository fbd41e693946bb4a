import pytest
import torch

from bench.api.errors import InvalidConfig


def by_hand(output, scene, trace, batch, row, t):
    """Gate, and probability of every word, from the published equations."""
    query = torch.tanh(output.query.weight @ trace.states[row, t] + output.query.bias)
    first = max(0, t - output.window + 1)
    scores = {i: torch.exp(query @ trace.states[row, i]) for i in range(first, t + 1)}
    sentinel = torch.exp(query @ output.sentinel)
    total = sum(scores.values()) + sentinel
    logits = torch.exp(scene.emit(trace.states, trace.context, trace.embedded)[row, t])
    found = sentinel / total * logits / logits.sum()
    for i, score in scores.items():
        found[batch.inputs[row, i]] += score / total
    return sentinel / total, found


@pytest.mark.parametrize("window", [1, 2, 100])
def test_vectorized_code_equals_the_loops(scene, window):
    output = scene.output(f"pointer_sentinel[window={window}]")
    trace, batch = scene.trace(), scene.batch()
    found = output.log_probs(trace, scene.emit, batch).exp()
    assert (found.sum(-1) - 1).abs().max() < 1e-12
    assert not found[..., scene.vocab :].any()
    for row in range(scene.rows):
        for t in range(scene.steps):
            _, expected = by_hand(output, scene, trace, batch, row, t)
            assert (found[row, t, : scene.vocab] - expected).abs().max() < 1e-12


def test_the_loss_is_read_off_the_distribution_and_the_gates_from_the_equations(scene):
    output, trace, batch = scene.output("pointer_sentinel"), scene.trace(), scene.batch()
    known = torch.where(batch.targets >= scene.vocab, scene.unk, batch.targets)
    expected = scene.at_targets(
        output.log_probs(trace, scene.emit, batch), scene.batch(targets=known)
    )
    assert (output.nll(trace, scene.emit, batch) - expected).abs().max() < 1e-12
    losses = []
    for row in range(scene.rows):
        for t in range(int(batch.mask[row].sum())):
            gate, found = by_hand(output, scene, trace, batch, row, t)
            logits = scene.emit(trace.states, trace.context, trace.embedded)[row, t]
            word = known[row, t]
            losses.append(-torch.log(found[word] - gate * logits.softmax(-1)[word] + gate))
    found = output.own_losses(trace, scene.emit, batch)
    assert set(found) == {"gate"}
    assert abs(found["gate"] - torch.stack(losses).mean()) < 1e-12
    half = scene.output("pointer_sentinel[gate_loss=0.5]")
    assert abs(half.own_losses(trace, scene.emit, batch)["gate"] - found["gate"] / 2) < 1e-12
    assert not scene.output("pointer_sentinel[gate_loss=0.0]").own_losses(trace, scene.emit, batch)


def test_golden_weights(scene):
    """Scores 1 and 2 and a sentinel of one half."""
    output = scene.output("pointer_sentinel", states=1)
    with torch.no_grad():
        output.query.weight.zero_()
        output.query.bias.fill_(0.5).atanh_()
        output.sentinel.fill_(1.0)
    states = torch.tensor([[[2.0], [4.0]]], dtype=torch.float64)
    trace = scene.trace()._replace(states=states, context=states, embedded=states)
    words = torch.tensor([[5, 6]])
    batch = scene.batch(inputs=words, targets=words, mask=words > 0, num_extra=0)

    def emit(states, context, embedded):
        return torch.zeros(*states.shape[:-1], scene.vocab, dtype=torch.float64)

    found = output.log_probs(trace, emit, batch).exp()[0, 1]
    gate = 0.140244
    assert found[5].item() == pytest.approx(0.231224 + gate / scene.vocab, abs=1e-6)
    assert found[6].item() == pytest.approx(0.628532 + gate / scene.vocab, abs=1e-6)
    assert found[4].item() == pytest.approx(gate / scene.vocab, abs=1e-6)
    ratio = (found[5] - found[4]) / (found[5] + found[6] - 2 * found[4])
    assert ratio.item() == pytest.approx(0.268941, abs=1e-6)


def test_a_sure_sentinel_leaves_the_softmax_over_the_vocabulary(scene):
    output, trace, batch = scene.output("pointer_sentinel"), scene.trace(), scene.batch()
    with torch.no_grad():
        output.query.weight.zero_()
        output.query.bias.fill_(10.0)
        output.sentinel.fill_(100.0)
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = output.log_probs(trace, scene.emit, batch)
    torch.testing.assert_close(found[..., : scene.vocab], plain)
    assert output.own_losses(trace, scene.emit, batch)["gate"] < 1e-10


@pytest.mark.parametrize("selector", ["pointer_sentinel[window=2]", "pointer_sentinel"])
def test_word_by_word_equals_all_at_once(scene, selector):
    output, trace, batch = scene.output(selector), scene.trace(), scene.batch()
    whole = output.log_probs(trace, scene.emit, batch)
    carried = output.begin(batch, trace.memories)
    for t in range(scene.steps):
        cut = slice(t, t + 1)
        one = trace._replace(
            states=trace.states[:, cut],
            context=trace.context[:, cut],
            embedded=trace.embedded[:, cut],
        )
        found, carried = output.step(one, scene.emit, batch, batch.inputs[:, cut], carried)
        torch.testing.assert_close(found[:, 0], whole[:, t], rtol=0, atol=1e-12)
        assert carried["states"].shape[1] <= output.window


def test_no_word_depends_on_later_states_or_words(scene):
    output, trace, batch = scene.output("pointer_sentinel"), scene.trace(), scene.batch()
    whole = output.log_probs(trace, scene.emit, batch)
    states, inputs = trace.states.clone(), batch.inputs.clone()
    states[:, 2:], inputs[:, 2:] = 3.0, 6
    later = output.log_probs(trace._replace(states=states), scene.emit, scene.batch(inputs=inputs))
    assert torch.equal(later[:, :2], whole[:, :2])
    assert not torch.equal(later[:, 2:], whole[:, 2:])


def test_gradients_are_right(scene):
    output, trace, batch = scene.output("pointer_sentinel"), scene.trace(), scene.batch()

    def loss(states, sentinel):
        output.sentinel.data = sentinel.detach()
        return output.nll(trace._replace(states=states), scene.emit, batch)

    states = trace.states.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, output.sentinel), states)
    terms = output.own_losses(trace, scene.emit, batch)
    terms["gate"].backward()
    assert output.sentinel.grad.abs().max() > 1e-3
    assert output.query.weight.grad.abs().max() > 1e-3


def test_wrong_options_are_refused(scene):
    with pytest.raises(InvalidConfig, match="pointer_sentinel: window must be at least 1"):
        scene.output("pointer_sentinel[window=0]")
    with pytest.raises(InvalidConfig, match="gate_loss at least 0"):
        scene.output("pointer_sentinel[gate_loss=-1.0]")
