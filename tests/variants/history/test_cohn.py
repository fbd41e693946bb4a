"""The Markov condition and local fertility: the same windows over other numbers."""

import pytest
import torch

import variants
from bench.api.call import Call, QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

MARKOV = "cohn_markov[score=additive[width=3]]"
FERTILITY = "cohn_local_fertility[score=additive[width=3]]"
BOTH = (MARKOV, FERTILITY)


def with_window(selector, window):
    return f"{selector[:-1]},window={window}]"


def seen_features(variant, drawn):
    """Features of every query, as the score sees them: `L B H S F`."""
    memory = variant.prepare(drawn.source)
    rows, heads, length, width = drawn.query.shape
    like = QueryShape(rows, heads, width, torch.float64, drawn.query.device)
    state, found = variant.start(memory, like), []
    history = variant.histories[0]
    for t in range(length):
        call = Call(drawn.query[:, :, t : t + 1], memory, t, causal=False)
        found.append(history.features(call, state.carried["history0"]).squeeze(2))
        state = variant.attend(drawn.query[:, :, t : t + 1], memory, state).state
    return torch.stack(found)


@pytest.mark.parametrize("window", [0, 1, 2])
def test_features_are_windows_of_the_last_and_of_the_summed_weights(answer, beneath, draw, window):
    drawn = draw(2, 2, 4, 6, lengths=[6, 4])
    for selector in BOTH:
        variant = beneath(with_window(selector, window))
        weights = answer(variant, drawn.query, drawn.source).weights
        found = seen_features(variant, drawn)
        assert found.shape == (4, 2, 2, 6, 2 * window + 1)
        assert not found[0].any()
        for t in range(1, 4):
            for s in range(6):
                for k in range(-window, window + 1):
                    earlier = slice(0, t) if selector == FERTILITY else slice(t - 1, t)
                    expected = torch.zeros(2, 2, dtype=torch.float64)
                    if 0 <= s + k < 6:
                        expected = weights[:, :, earlier, s + k].sum(2)
                    torch.testing.assert_close(
                        found[t, :, :, s, k + window], expected, rtol=0, atol=1e-12
                    )


@pytest.mark.parametrize("selector", BOTH)
def test_without_the_feature_map_it_is_the_additive_score(answer, beneath, draw, selector):
    drawn = draw()
    biased = beneath(selector)
    with torch.no_grad():
        biased.score.feature_map.zero_()
    plain = beneath("additive[width=3]")
    kept = {n: p for n, p in biased.score.state_dict().items() if n != "feature_map"}
    plain.score.load_state_dict(kept)
    one, two = (answer(v, drawn.query, drawn.source).weights for v in (biased, plain))
    torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", BOTH)
def test_earlier_weights_change_later_ones_and_not_the_first(answer, beneath, draw, selector):
    drawn = draw(1, 2, 3, 5)
    variant = beneath(selector)
    before = answer(variant, drawn.query, drawn.source).weights
    changed = drawn.query.clone()
    changed[:, :, 0] += 2
    after = answer(variant, changed, drawn.source).weights
    assert (before[:, :, 1] - after[:, :, 1]).abs().max() > 1e-4
    changed = drawn.query.clone()
    changed[:, :, 2] += 2
    after = answer(variant, changed, drawn.source).weights
    assert torch.equal(after[:, :, :2], before[:, :, :2])


def test_the_markov_condition_forgets_what_fertility_remembers(beneath, draw):
    """Given the same last step, only the second knows what was before."""
    drawn = draw(1, 1, 3, 5, lengths=())
    other = drawn._replace(query=drawn.query.clone())
    other.query[:, :, 0] += 1
    for selector, remembers in ((MARKOV, False), (FERTILITY, True)):
        variant = beneath(selector, heads=1)
        with torch.no_grad():
            variant.score.feature_map.zero_()  # so that the second step is the same in both
        one, two = seen_features(variant, drawn)[2], seen_features(variant, other)[2]
        assert torch.equal(one, two) != remembers


@pytest.mark.parametrize("selector", BOTH)
def test_gradients_flow_through_earlier_steps(answer, beneath, draw, selector):
    drawn = draw(1, 1, 3, 4, (2, 2, 2), lengths=())
    variant = beneath(selector, heads=1, widths=(2, 2, 2))

    def output(query, key):
        return answer(variant, query, Source(key, drawn.source.value)).output

    inputs = (drawn.query.requires_grad_(), drawn.source.key.requires_grad_())
    assert torch.autograd.gradcheck(output, inputs)
    answer(variant, drawn.query, drawn.source).output[:, :, 2].sum().backward()
    assert drawn.query.grad[:, :, 0].any()


@pytest.mark.parametrize("name", ["cohn_markov", "cohn_local_fertility"])
def test_scores_without_features_and_other_regimes_are_refused(name):
    with pytest.raises(Refused, match=f"{name} needs a score that accepts per-key features"):
        variants.build(f"dot[history={name}]", dim=8, heads=2, regime="cross")
    for regime, why in (
        ("causal", "does not grow"),
        ("self", "bidirectional"),
        ("pool", "one query"),
    ):
        with pytest.raises(Refused, match=f"{name}: .*{why}"):
            variants.build(name, dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="window must be at least 0, got -1"):
        variants.build(f"{name}[window=-1]", dim=8, heads=2, regime="cross")
