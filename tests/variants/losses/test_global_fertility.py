import math

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.loss import LossSizes
from variants.losses.global_fertility import GlobalFertilityConfig, GlobalFertilityLoss


def made(width=2, **options):
    loss = GlobalFertilityLoss(GlobalFertilityConfig(**{"width": 3, "start": 0.0, **options}))
    loss.attach(LossSizes(width))
    loss = loss.double()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in loss.parameters():
            drawn = torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype)
            parameter.copy_(drawn)
    return loss


def predict(loss, mean, variance):
    """Let every state predict the same."""
    with torch.no_grad():
        loss.out.weight.zero_()
        loss.out.bias.copy_(torch.tensor([mean, math.log(variance)]))
    return loss


def states(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_golden_likelihood(seen, golden_weights):
    loss = predict(made(leave_out="none"), 1.2, 0.5)
    found, carry = loss(seen(golden_weights), {})
    assert carry == {}
    assert 3 * found.item() == pytest.approx(2.157095, abs=1e-6)


def test_the_first_and_the_last_key_can_be_left_out(seen, golden_weights):
    found, _ = predict(made(leave_out="ends"), 1.2, 0.5)(seen(golden_weights), {})
    inner = 0.5 * math.log(2 * math.pi * 0.5) + (0.6 - 1.2) ** 2 / (2 * 0.5)
    assert 3 * found.item() == pytest.approx(inner)


@pytest.mark.parametrize("distribution", ["normal", "lognormal"])
def test_it_equals_loops_over_words(seen, drawn_weights, distribution):
    lengths, tokens = [4, 3], [[7, 8, 9, 2], [7, 8, 2, 0]]
    weights, values = drawn_weights(rows=2, lengths=lengths), states(2, 4, 2)
    loss = made(distribution=distribution, weight=0.5)
    mask = [[True] * 5, [True, True, True, False, False]]
    given = seen(weights, tokens=tokens, lengths=lengths, states=values, mask=mask)
    total = 0.0
    for row in range(2):
        for s in range(lengths[row] - 1):
            fertility = sum(weights[row, 0, t, s].item() for t in range(5 if row == 0 else 3))
            hidden = [
                math.tanh(
                    sum(loss.hidden.weight[u, e].item() * values[row, s, e].item() for e in (0, 1))
                    + loss.hidden.bias[u].item()
                )
                for u in range(3)
            ]
            mean, log_variance = (
                sum(loss.out.weight[o, u].item() * hidden[u] for u in range(3))
                + loss.out.bias[o].item()
                for o in (0, 1)
            )
            kind = torch.distributions.Normal
            if distribution == "lognormal":
                kind = torch.distributions.LogNormal
            expected = kind(torch.tensor(mean), torch.tensor(math.exp(log_variance / 2)))
            total -= expected.log_prob(torch.tensor(fertility)).item()
    found, _ = loss(given, {})
    assert found.item() == pytest.approx(0.5 * total / 8, rel=1e-5)


def test_weights_states_and_predictor_all_learn(seen, drawn_weights):
    weights = drawn_weights(rows=1).requires_grad_()
    values = states(1, 4, 2).requires_grad_()
    loss = made()
    found, _ = loss(seen(weights, states=values), {})
    found.backward()
    for leaf in (weights, values, *loss.parameters()):
        assert leaf.grad.isfinite().all()
        assert leaf.grad.any()


def test_words_that_got_no_attention_are_finite_under_both_distributions(seen):
    for distribution in ("normal", "lognormal"):
        weights = torch.tensor([[[[1.0, 0.0]]]]).double().requires_grad_()
        found, _ = made(distribution=distribution)(seen(weights), {})
        found.backward()
        assert found.isfinite()
        assert weights.grad.isfinite().all()


def test_it_is_off_until_its_share_of_training_has_passed(seen, golden_weights):
    loss = made(start=0.5)
    assert loss(seen(golden_weights, progress=0.4), {})[0].item() == 0
    assert loss(seen(golden_weights, progress=0.5), {})[0].item() != 0


def test_several_heads_hand_over_all_their_values(seen, drawn_weights):
    loss = made(width=4)
    given = seen(drawn_weights(rows=1, heads=2))
    memory = given.trace.memories[0]
    value = states(1, 2, 4, 2)
    memory = memory.__class__(memory.source.__class__(value, value))
    given = given.__class__(
        given.trace._replace(memories=(memory,)), given.nll, given.batch, given.progress
    )
    joined = torch.cat((value[:, 0], value[:, 1]), -1)
    single = seen(given.trace.weights[:, None], states=joined)
    torch.testing.assert_close(loss(given, {})[0], loss(single, {})[0])


def test_weight_width_and_start_are_checked():
    for options in ({"weight": -1.0}, {"width": 0}, {"start": 2.0}):
        with pytest.raises(InvalidConfig, match="global_fertility"):
            GlobalFertilityConfig(**options)
