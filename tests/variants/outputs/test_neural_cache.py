import math

import pytest
import torch

from bench.api.errors import InvalidConfig


def by_hand(output, scene, trace, batch, row, t):
    config = output.config
    logits = torch.exp(scene.emit(trace.states, trace.context, trace.embedded)[row, t])
    plain = logits / logits.sum()
    first = max(0, t - config.window)
    scores = {
        i: math.exp(config.theta * float(trace.states[row, t] @ trace.states[row, i]))
        for i in range(first, t)
    }
    if not scores:
        return plain
    found = (1 - config.weight) * plain
    for i, score in scores.items():
        found[batch.inputs[row, i + 1]] += config.weight * score / sum(scores.values())
    return found


@pytest.mark.parametrize("options", ["", "window=1", "theta=1.5,weight=0.6,window=2"])
def test_vectorized_code_equals_the_loops(scene, options):
    output = scene.output(f"neural_cache[{options}]" if options else "neural_cache").eval()
    trace, batch = scene.trace(), scene.batch()
    found = output.log_probs(trace, scene.emit, batch).exp()
    assert (found.sum(-1) - 1).abs().max() < 1e-12
    assert not found[..., scene.vocab :].any()
    for row in range(scene.rows):
        for t in range(scene.steps):
            expected = by_hand(output, scene, trace, batch, row, t)
            assert (found[row, t, : scene.vocab] - expected).abs().max() < 1e-12


def test_the_loss_is_read_off_the_distribution_but_in_training_off_the_softmax(scene):
    trace, batch = scene.trace(), scene.batch()
    known = scene.batch(targets=torch.where(batch.targets >= scene.vocab, scene.unk, batch.targets))
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    for selector, cached_in_training in (
        ("neural_cache", False),
        ("neural_cache[in_training=true]", True),
    ):
        output = scene.output(selector)
        mixed = scene.at_targets(output.log_probs(trace, scene.emit, batch), known)
        soft = scene.at_targets(plain, known)
        assert (mixed - soft).abs().max() > 1e-3
        trained = output.train().nll(trace, scene.emit, batch)
        expected = mixed if cached_in_training else soft
        assert (trained - expected).abs().max() < 1e-12
        assert (output.eval().nll(trace, scene.emit, batch) - mixed).abs().max() < 1e-12


def test_nothing_is_learned(scene):
    assert not list(scene.output("neural_cache").parameters())


def test_a_flat_cache_counts_words_and_no_weight_turns_it_off(scene):
    trace, batch = scene.trace(), scene.batch(inputs=torch.tensor([[1, 5, 5, 6]] * 3))
    flat = scene.output("neural_cache[theta=0.0,weight=0.9]").eval()
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = (flat.log_probs(trace, scene.emit, batch).exp()[..., : scene.vocab]) - 0.1 * plain.exp()
    assert (found[:, 3, 5] - 0.9 * 2 / 3).abs().max() < 1e-12
    assert (found[:, 3, 6] - 0.9 * 1 / 3).abs().max() < 1e-12
    off = scene.output("neural_cache[weight=0.0]").eval()
    torch.testing.assert_close(off.log_probs(trace, scene.emit, batch)[..., : scene.vocab], plain)


def test_a_word_that_followed_the_same_state_before_is_expected_again(scene):
    trace = scene.trace()
    states = trace.states.clone()
    states[:, 3] = states[:, 0]
    states[:, 1:3] -= 4 * states[:, :1]
    batch = scene.batch(inputs=torch.tensor([[4, 5, 6, 4]] * 3))
    output = scene.output("neural_cache[theta=2.0,weight=0.5]").eval()
    found = output.log_probs(trace._replace(states=states), scene.emit, batch).exp()
    assert (found[:, 3, 5] > 0.49).all()


@pytest.mark.parametrize("selector", ["neural_cache[window=2]", "neural_cache"])
def test_word_by_word_equals_all_at_once(scene, selector):
    output, trace, batch = scene.output(selector).eval(), scene.trace(), scene.batch()
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
        assert carried["states"].shape[1] <= output.config.window


def test_no_word_depends_on_later_states_or_words(scene):
    output, trace, batch = scene.output("neural_cache").eval(), scene.trace(), scene.batch()
    whole = output.log_probs(trace, scene.emit, batch)
    states, inputs = trace.states.clone(), batch.inputs.clone()
    states[:, 2:], inputs[:, 2:] = 3.0, 6
    later = output.log_probs(trace._replace(states=states), scene.emit, scene.batch(inputs=inputs))
    assert torch.equal(later[:, :2], whole[:, :2])
    assert not torch.equal(later[:, 2:], whole[:, 2:])


def test_wrong_options_are_refused(scene):
    for option in ("theta=-1.0", "weight=1.0", "window=0"):
        with pytest.raises(InvalidConfig, match="neural_cache: theta must be at least 0"):
            scene.output(f"neural_cache[{option}]")
