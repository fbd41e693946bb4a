import itertools
from dataclasses import replace

import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs, LossSizes
from bench.api.noise import Noise
from bench.api.source import Source, State
from bench.api.trace import Trace
from variants.losses.reinforce import ReinforceConfig, ReinforceLoss

PLAIN = {"weight": 1.0, "entropy": 0.0, "baseline": "none"}


def make(**options):
    return ReinforceLoss(ReinforceConfig(**options))


def learning(states=1, **options):
    """A loss whose value is learned, its parameters drawn."""
    loss = make(baseline="learned", **{"weight": 1.0, "entropy": 0.0, **options})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss.attach(LossSizes(source=1, states=states, embedded=1))
    return loss.double()


def inputs(log_prob, nll, mask=None, entropy=None, *, states=None, copies=1):
    rows, steps = log_prob.shape
    mask = torch.ones(rows, steps, dtype=torch.bool) if mask is None else mask
    entropy = torch.zeros_like(log_prob) if entropy is None else entropy
    blank = torch.zeros(rows, steps, 1, dtype=log_prob.dtype)
    states = blank if states is None else states
    words = torch.zeros(rows, steps, dtype=torch.int64)
    terms = {"log_prob": log_prob, "entropy": entropy}
    trace = Trace(states, blank, blank, (Attended(blank[:, None], None, State(), terms),), (None,))
    return LossInputs(trace, nll, Batch((), words, words, mask), 0.5, copies)


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.fixture
def toy(component, ask):
    """`toy(rows, loss, carry)` -> gradients of the loss wrt the energies of 3 keys, row by row.

    One key is drawn a row, and its cost is the negative log likelihood.
    """
    energy = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64)
    costs = torch.tensor([2.0, 0.5, 1.0], dtype=torch.float64)

    def run(rows, loss, carry):
        given = energy.expand(rows, 1, 1, 3).clone().requires_grad_()
        normalizer = component("normalizer", "hard_reinforce[sampling=1]", heads=1)
        blank = torch.zeros(rows, 1, 3, 1, dtype=torch.float64)
        call = ask(blank[:, :, :1], Source(blank, blank), read="train", noise=Noise(11))
        aligned = normalizer.normalize(given, None, {}, call)
        nll = (aligned.weights[:, 0] @ costs).detach()
        term, _ = loss(inputs(aligned.terms["log_prob"], nll, copies=loss.copies), carry)
        term.backward()
        return given.grad[:, 0, 0] * rows

    exact = energy.clone().requires_grad_()
    (torch.softmax(exact, -1) @ costs).backward()
    run.exact = exact.grad
    run.mean_reward = -(torch.softmax(energy, -1) @ costs).item()
    return run


ESTIMATORS = ("none", "moving_average", "learned", "leave_one_out")


def estimator(baseline, mean, reward="sequence"):
    """A loss that only rewards, and its carry; the learned value is a constant off the mean."""
    if baseline == "learned":
        loss = learning(reward=reward)
        with torch.no_grad():
            loss.value[-1].weight.zero_()
            loss.value[-1].bias.fill_(0.2)
        return loss, {"baseline": torch.tensor(mean), "spread": torch.tensor(0.5)}
    loss = make(**{**PLAIN, "baseline": baseline, "reward": reward})
    return loss, {"baseline": torch.tensor(mean)}


@pytest.mark.parametrize("reward", ["sequence", "rest", "token"])
@pytest.mark.parametrize("baseline", ESTIMATORS)
def test_the_mean_of_many_estimates_is_the_exact_gradient(toy, reward, baseline):
    rows = 100_000
    found = toy(rows, *estimator(baseline, toy.mean_reward, reward))
    # rows that share a baseline are not independent, so whole groups are averaged
    groups = found.unflatten(0, (-1, 4)).mean(1)
    sigma = groups.std(0) / len(groups) ** 0.5
    assert ((found.mean(0) - toy.exact).abs() < 3 * sigma).all()


@pytest.mark.parametrize("baseline", ESTIMATORS[1:])
def test_a_baseline_lowers_the_variance(toy, baseline):
    rows = 20_000
    plain = toy(rows, *estimator("none", 0.0)).var(0).sum()
    with_baseline = toy(rows, *estimator(baseline, toy.mean_reward)).var(0).sum()
    assert with_baseline < 0.5 * plain


def test_leave_one_out_subtracts_the_mean_of_the_other_draws_of_the_same_example():
    log_prob = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    nll = torch.tensor([[1.0, 1.0], [2.0, 4.0], [3.0, 0.0], [9.0, 1.0]], dtype=torch.float64)
    loss = make(weight=1.0, entropy=0.0, baseline="leave_one_out", samples=2)
    assert loss.copies == 2
    loss(inputs(log_prob, nll, copies=2), loss.init())[0].backward()
    rewards = torch.tensor([-2.0, -6.0, -3.0, -10.0])
    others = torch.tensor([-6.0, -2.0, -10.0, -3.0])
    expected = -(rewards - others)[:, None].expand(4, 2) / 8
    torch.testing.assert_close(log_prob.grad, expected.double())


def test_leave_one_out_is_refused_without_copies():
    loss = make(baseline="leave_one_out")
    with pytest.raises(Refused, match="several draws"):
        loss(inputs(draw(4, 2), draw(4, 2)), loss.init())


def test_a_learned_value_sees_the_state_before_the_draw_and_no_later_one():
    loss = learning(states=3)
    carry = {"baseline": torch.tensor(-1.0), "spread": torch.tensor(2.0)}
    nll = draw(2, 4, seed=1).abs()

    def advantages(states):
        log_prob = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
        loss(inputs(log_prob, nll, states=states), carry)[0].backward()
        return log_prob.grad

    states = draw(2, 4, 3, seed=2)
    before = advantages(states)
    states[:, 2] += 1.0
    changed = (advantages(states) - before).abs().sum(0) > 0
    assert changed.tolist() == [False, False, False, True]


def test_a_learned_value_is_fitted_to_the_reward_and_passes_no_gradient_to_the_network():
    loss = learning(states=2, reward="token")
    states = draw(8, 5, 2).requires_grad_()
    # the reward of a step is a function of the state before it
    nll = 3 + torch.nn.functional.pad(states.detach().sum(-1), (1, -1))
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.02)
    carry, fits = loss.init(), []
    log_prob = torch.zeros(8, 5, dtype=torch.float64)
    for _ in range(400):
        optimizer.zero_grad()
        term, carry = loss(inputs(log_prob, nll, states=states), carry)
        term.backward()
        optimizer.step()
        fits.append(term.item())
    assert fits[-1] < 0.05 * max(fits)
    assert states.grad is None


def test_the_spread_of_rewards_is_carried_on_over_scored_steps():
    loss = learning(reward="token")
    carry = {"baseline": torch.tensor(-1.0), "spread": torch.tensor(2.0)}
    nll = torch.tensor([[1.0, 4.0], [2.0, 50.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True], [True, False]])
    _, after = loss(inputs(torch.zeros_like(nll), nll, mask), carry)
    # rewards of -1, -4 and -2 are 0, 3 and 1 off the mean
    assert after["spread"].item() == pytest.approx(0.9 * 2 + 0.1 * 4 / 3)
    assert after["baseline"].item() == pytest.approx(0.9 * -1 + 0.1 * -7 / 3)


def test_a_draw_that_did_better_than_usual_becomes_likelier():
    log_prob = torch.tensor([[-1.0], [-1.0]], dtype=torch.float64, requires_grad=True)
    nll = torch.tensor([[0.5], [3.0]], dtype=torch.float64)
    loss = make(weight=1.0, entropy=0.0)
    term, _ = loss(inputs(log_prob, nll), {"baseline": torch.tensor(-2.0)})
    term.backward()
    assert log_prob.grad[0] < 0, "descent raises the log probability of the good draw"
    assert log_prob.grad[1] > 0


def test_the_value_is_that_of_the_formula_by_loops():
    log_prob, entropy, nll = draw(3, 4), draw(3, 4, seed=1).abs(), draw(3, 4, seed=2).abs()
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    given = inputs(log_prob, nll, mask, entropy)
    carry = {"baseline": torch.tensor(-1.5)}
    for reward in ("sequence", "rest", "token"):
        total, rewards = 0.0, []
        for row in range(3):
            steps = [t for t in range(4) if mask[row, t]]
            whole = -sum(nll[row, t].item() for t in steps)
            rewards += [whole] if steps and reward == "sequence" else []
            for t in steps:
                own = -nll[row, t].item()
                rest = -sum(nll[row, later].item() for later in steps if later >= t)
                got = {"sequence": whole, "rest": rest, "token": own}[reward]
                rewards += [got] if reward != "sequence" else []
                total -= 0.1 * (got + 1.5) * log_prob[row, t].item()
                total -= 0.002 * entropy[row, t].item()
        term, after = make(reward=reward)(given, carry)
        assert term.item() == pytest.approx(total / 6)
        mean = sum(rewards) / len(rewards)
        assert after["baseline"].item() == pytest.approx(0.9 * -1.5 + 0.1 * mean)


GAPS = torch.tensor([[False, True, False, True, False], [True, False, False, False, False]])
"""Scored steps; draws count up to the last one of each row."""
UP_TO_THE_LAST = torch.tensor([[True] * 4 + [False], [True] + [False] * 4])


@pytest.mark.parametrize("baseline", ["none", "learned"])
@pytest.mark.parametrize("reward", ["sequence", "rest", "token"])
def test_draws_between_scored_steps_count_and_those_behind_the_last_do_not(reward, baseline):
    loss = learning(reward=reward) if baseline == "learned" else make(**PLAIN, reward=reward)
    log_prob, entropy = draw(2, 5).requires_grad_(), draw(2, 5, seed=1).requires_grad_()
    loss.config = replace(loss.config, entropy=0.1)
    states = draw(2, 5, 1, seed=2)
    given = inputs(log_prob, draw(2, 5, seed=3).abs(), GAPS, entropy, states=states)
    loss(given, loss.init())[0].backward()
    counted = GAPS if reward == "token" else UP_TO_THE_LAST
    assert torch.equal(log_prob.grad != 0, counted)
    assert torch.equal(entropy.grad != 0, counted)


@pytest.mark.parametrize("reward", ["sequence", "rest"])
def test_a_learned_value_is_fitted_where_draws_count(reward):
    loss = learning(reward=reward)
    found = torch.zeros(2, 5, 1, dtype=torch.float64, requires_grad=True)
    loss.value = Returns(found)
    nll = draw(2, 5, seed=3).abs()
    loss(inputs(torch.zeros_like(nll), nll, GAPS), loss.init())[0].backward()
    assert torch.equal(found.grad.squeeze(-1) != 0, UP_TO_THE_LAST)


class Returns(torch.nn.Module):
    """A value of each step, whatever was seen before it."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def forward(self, _):
        return self.values


@pytest.mark.parametrize("reward", ["sequence", "rest"])
def test_the_running_mean_is_over_draws_that_count(reward):
    nll = torch.tensor([[9.0, 1.0, 9.0, 4.0, 9.0], [2.0, 9.0, 9.0, 9.0, 9.0]]).double()
    _, after = make(reward=reward)(inputs(draw(2, 5), nll, GAPS), {"baseline": torch.zeros(())})
    # the rest of the first row is 5 for its first two draws and 4 for the next two
    mean = {"sequence": (-5 - 2) / 2, "rest": (-5 - 5 - 4 - 4 - 2) / 5}[reward]
    assert after["baseline"].item() == pytest.approx(0.1 * mean)


@pytest.mark.parametrize("mask", ["001", "010", "101", "110"])
@pytest.mark.parametrize("reward", ["sequence", "rest"])
@pytest.mark.parametrize("baseline", ["none", "moving_average", "learned"])
def test_all_draws_of_two_causal_layers_together_give_the_exact_gradient(baseline, reward, mask):
    """Every path of a tiny stack is enumerated, and no estimate is left to chance.

    Queries that are not scored draw keys in the lower layer, whose values later queries read.
    """
    energy = draw(2, 3, 3, seed=5).requires_grad_()
    scored = torch.tensor([[one == "1" for one in mask]])
    loss, carry = estimator(baseline, -0.4, reward)
    exact, surrogate = torch.zeros(()).double(), torch.zeros(()).double()
    for path in itertools.product(*(range(t + 1) for t in (0, 1, 2, 0, 1, 2))):
        log_prob, nll = walked(energy, (path[:3], path[3:]))
        weight = log_prob.sum().exp()
        exact = exact + weight * nll[scored[0]].sum() / scored.sum()
        one = [inputs(layer[None], nll[None].detach(), scored) for layer in log_prob]
        both = one[0].trace._replace(attended=tuple(o.trace.attended[0] for o in one))
        term, _ = loss(replace(one[0], trace=both), carry)
        surrogate = surrogate + weight.detach() * term
    (wanted,) = torch.autograd.grad(exact, energy, retain_graph=True)
    (found,) = torch.autograd.grad(surrogate, energy)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    assert wanted.abs().max() > 1e-3


def walked(energy, path):
    """Log probabilities of the draws of each layer, and what each answer costs.

    The upper layer asks with what the lower one has read, and reads that of earlier places.
    """
    read = torch.tensor([0.7, -1.1, 0.4]).double()
    said = []
    for layer, drawn in enumerate(path):
        at = torch.arange(3)
        scores = energy[layer] * (1 + read[:, None] * read)
        future = at > at[:, None]
        log_soft = torch.log_softmax(scores.masked_fill(future, float("-inf")), -1)
        chosen = torch.tensor(drawn)
        said.append(log_soft[at, chosen])
        read = read[chosen] + 0.3 * read
    return torch.stack(said), (read - torch.tensor([0.2, 0.9, -0.6]).double()).square()


def test_padded_steps_contribute_nothing():
    mask = torch.tensor([[True, True, False]])
    log_prob = draw(1, 3).requires_grad_()
    loss = make()
    results = []
    for junk in (0.0, 1e6):
        nll = torch.tensor([[1.0, 2.0, junk]], dtype=torch.float64)
        results.append(loss(inputs(log_prob, nll, mask), loss.init()))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1]["baseline"], results[1][1]["baseline"])
    results[1][0].backward()
    assert log_prob.grad[0, 2] == 0


def test_the_reward_and_the_running_mean_pass_no_gradient():
    nll = draw(2, 3).abs().requires_grad_()
    loss = make()
    term, carry = loss(inputs(draw(2, 3, seed=1).requires_grad_(), nll), loss.init())
    term.backward()
    assert nll.grad is None
    assert not carry["baseline"].requires_grad


def test_terms_of_several_slots_add_up():
    given = inputs(draw(2, 3), draw(2, 3, seed=1).abs())
    one, _ = make()(given, {"baseline": torch.zeros(())})
    twice = given.trace._replace(attended=given.trace.attended * 2)
    two, _ = make()(LossInputs(twice, given.nll, given.batch, 0.5), {"baseline": torch.zeros(())})
    assert two.item() == pytest.approx(2 * one.item())


def test_slots_that_take_different_numbers_of_steps_are_refused():
    short, long = inputs(draw(2, 3), draw(2, 3)), inputs(draw(2, 4), draw(2, 4))
    both = short.trace._replace(attended=short.trace.attended + long.trace.attended)
    with pytest.raises(Refused, match=r"different numbers of steps \(3 and 4\)"):
        make()(LossInputs(both, short.nll, short.batch, 0.5), make().init())


def test_it_is_refused_where_nothing_samples():
    given = inputs(draw(1, 2), draw(1, 2))
    blind = given.trace._replace(attended=tuple(a._replace(terms={}) for a in given.trace.attended))
    with pytest.raises(Refused, match="samples keys"):
        make()(LossInputs(blind, given.nll, given.batch, 0.5), make().init())


def test_options_are_checked():
    with pytest.raises(InvalidConfig, match=r"decay .* got 1\.5"):
        build_config(ReinforceConfig, {"decay": 1.5}, "reinforce")
    with pytest.raises(InvalidConfig, match="at least 0"):
        ReinforceConfig(entropy=-1.0)
    with pytest.raises(InvalidConfig, match="samples must be at least 2"):
        ReinforceConfig(samples=1)
