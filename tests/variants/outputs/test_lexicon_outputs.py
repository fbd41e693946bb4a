import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import InvalidConfig

BOTH = ["lexicon_bias", "lexicon_linear", "lexicon_linear[gate=state]"]
PAIRS = [([4, 5, 6], [5, 6, 4]), ([5, 4], [6, 5]), ([6], [4]), ([4, 6, 2], [5, 4, 2])] * 5


def fitted(scene, selector, **sizes):
    output = scene.output(selector, **sizes)
    output.fit(PAIRS)
    return output


def p_lex(output, trace, batch, row, t):
    """L_F a_t, word by word."""
    found = torch.zeros(7, dtype=torch.float64)
    for place, word in enumerate(batch.sources[0].tokens[row].tolist()):
        for e, chance in zip(output.lexicon.ids[word], output.lexicon.chances[word], strict=True):
            found[e] = found[e] + trace.weights[row, t, place] * chance
    return found


def by_hand(output, scene, trace, batch, row, t):
    logits = scene.emit(trace.states, trace.context, trace.embedded)[row, t]
    lexical = p_lex(output, trace, batch, row, t)
    if hasattr(output, "epsilon"):
        biased = torch.exp(logits) * (lexical + output.epsilon)
        return biased / biased.sum()
    gate = output.bias
    if len(output.weight):
        gate = gate + output.weight @ torch.cat((trace.states[row, t], trace.context[row, t]))
    share = 1 / (1 + torch.exp(-gate))
    return share * lexical + (1 - share) * torch.exp(logits) / torch.exp(logits).sum()


@pytest.mark.parametrize("selector", BOTH)
@pytest.mark.parametrize("heads", [1, 2])
def test_vectorized_code_equals_the_loops(scene, selector, heads):
    output = fitted(scene, selector)
    trace, batch = scene.trace(heads=heads), scene.batch()
    found = output.log_probs(trace, scene.emit, batch)
    assert (found[..., scene.vocab :] == -torch.inf).all()
    assert (found.exp().sum(-1) - 1).abs().max() < 1e-10
    for row in range(scene.rows):
        for t in range(scene.steps):
            expected = by_hand(output, scene, trace, batch, row, t).log()
            assert (found[row, t, : scene.vocab] - expected).abs().max() < 1e-10


@pytest.mark.parametrize("selector", BOTH)
def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(scene, selector):
    output, trace, batch = fitted(scene, selector), scene.trace(), scene.batch()
    known = scene.batch(targets=torch.where(batch.targets >= 7, scene.unk, batch.targets))
    expected = scene.at_targets(output.log_probs(trace, scene.emit, batch), known)
    assert (output.nll(trace, scene.emit, batch) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("selector", BOTH)
def test_gradients_flow_into_the_attention_and_are_right(scene, selector):
    output, trace, batch = fitted(scene, selector), scene.trace(), scene.batch()
    weights = trace.attended[0].weights.clone().requires_grad_()

    def loss(given):
        moved = trace._replace(attended=(trace.attended[0]._replace(weights=given),))
        return output.nll(moved, scene.emit, batch)

    assert torch.autograd.gradcheck(loss, weights)
    loss(weights).sum().backward()
    assert weights.grad[0].abs().max() > 1e-3


def golden(scene, selector):
    """Source words 5 and 6, whose translations are the columns of L."""
    output = scene.output(selector, vocab=3, source_vocab=8, unk=3)
    output.lexicon.ids[5:7] = 0
    output.lexicon.ids[5:7, :3] = torch.arange(3)
    output.lexicon.chances[5:7] = 0
    columns = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]], dtype=torch.float64)
    output.lexicon.chances[5:7, :3] = columns
    weights = torch.tensor([0.75, 0.25], dtype=torch.float64).view(1, 1, 1, 2)
    trace = scene.trace()
    one = torch.zeros(1, 1, 4, dtype=torch.float64)
    attended = trace.attended[0]._replace(weights=weights)
    trace = trace._replace(
        states=one, context=torch.zeros(1, 1, 6).double(), embedded=one, attended=(attended,)
    )
    target = torch.zeros(1, 1, dtype=torch.int64)
    source = (Text(torch.tensor([[5, 6]]), None),)
    batch = scene.batch(
        sources=source, inputs=target, targets=target, mask=target == 0, num_extra=0
    )

    def uniform(states, context, embedded):
        return torch.zeros(*states.shape[:-1], 3, dtype=torch.float64)

    return output, output.log_probs(trace, uniform, batch).exp().flatten(), trace, batch


def test_golden_bias(scene):
    output, found, trace, batch = golden(scene, "lexicon_bias")
    lexical = output.lexicon(trace.weights, batch.sources[0].tokens).flatten()
    assert (lexical - torch.tensor([0.7, 0.275, 0.025]).double()).abs().max() < 1e-6
    expected = torch.tensor([0.698903, 0.275174, 0.025922], dtype=torch.float64)
    assert (found - expected).abs().max() < 1e-6


def test_golden_linear(scene):
    output, _, trace, batch = golden(scene, "lexicon_linear")
    with torch.no_grad():
        output.bias.copy_(torch.tensor(0.3, dtype=torch.float64).logit())

    def uniform(states, context, embedded):
        return torch.zeros(*states.shape[:-1], 3, dtype=torch.float64)

    found = output.log_probs(trace, uniform, batch).exp().flatten()
    expected = torch.tensor([0.443333, 0.315833, 0.240833], dtype=torch.float64)
    assert (found - expected).abs().max() < 1e-6


def test_a_huge_epsilon_cancels_and_a_tiny_one_is_a_hard_constraint(scene):
    trace, batch = scene.trace(), scene.batch()
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    free = fitted(scene, "lexicon_bias[epsilon=1e12]").log_probs(trace, scene.emit, batch)
    torch.testing.assert_close(free[..., : scene.vocab], plain, rtol=0, atol=1e-10)
    bound = fitted(scene, "lexicon_bias[epsilon=1e-30,keep=1]")
    found = bound.log_probs(trace, scene.emit, batch).exp()[..., : scene.vocab]
    outside = bound.lexicon(trace.weights, batch.sources[0].tokens) == 0
    assert outside.any()
    assert found[outside].max() < 1e-20


def test_a_mixture_without_lexicon_is_the_plain_softmax(scene):
    trace, batch = scene.trace(), scene.batch()
    output = fitted(scene, "lexicon_linear")
    with torch.no_grad():
        output.bias.fill_(-100.0)
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = output.log_probs(trace, scene.emit, batch)[..., : scene.vocab]
    torch.testing.assert_close(found, plain)


def test_the_mixture_starts_as_asked():
    from bench.api.output import OutputSizes
    from bench.api.registry import make
    from bench.api.selector import parse

    sizes = OutputSizes(7, 4, 6, 2, 3, source_vocab=7)
    made = make("output", parse("lexicon_linear[start=0.2,gate=state]"), sizes)
    assert torch.sigmoid(made.bias).item() == pytest.approx(0.2)
    assert not made.weight.any()


def test_wrong_options_are_refused(scene):
    with pytest.raises(InvalidConfig, match="lexicon_bias: epsilon must be positive"):
        scene.output("lexicon_bias[epsilon=0.0]")
    with pytest.raises(InvalidConfig, match="lexicon_linear: start must be in"):
        scene.output("lexicon_linear[start=1.0]")
    with pytest.raises(InvalidConfig, match="keep at least 1"):
        scene.output("lexicon_linear[keep=0]")
