import pytest
import torch

from bench.api.backbone import LossInputs, Trace
from bench.api.call import Attended
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.source import Source, State
from bench.api.task import Batch
from variants.losses.reinforce import ReinforceConfig, ReinforceLoss

PLAIN = {"weight": 1.0, "entropy": 0.0, "baseline": "none"}


def make(**options):
    return ReinforceLoss(ReinforceConfig(**options))


def inputs(log_prob, nll, mask=None, entropy=None):
    rows, steps = log_prob.shape
    mask = torch.ones(rows, steps, dtype=torch.bool) if mask is None else mask
    entropy = torch.zeros_like(log_prob) if entropy is None else entropy
    blank = torch.zeros(rows, steps, 1, dtype=log_prob.dtype)
    words = torch.zeros(rows, steps, dtype=torch.int64)
    terms = {"log_prob": log_prob, "entropy": entropy}
    trace = Trace(blank, blank, blank, (Attended(blank[:, None], None, State(), terms),), (None,))
    return LossInputs(trace, nll, Batch((), words, words, mask), 0.5)


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.fixture
def toy(component, ask):
    """`toy(rows, **options)` -> gradients of the loss wrt the energies of 3 keys, row by row."""
    energy = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64)
    costs = torch.tensor([2.0, 0.5, 1.0], dtype=torch.float64)

    def run(rows, mean=0.0, **options):
        given = energy.expand(rows, 1, 1, 3).clone().requires_grad_()
        alignment = component("alignment", "hard_reinforce[sampling=1]", heads=1)
        blank = torch.zeros(rows, 1, 3, 1, dtype=torch.float64)
        call = ask(blank[:, :, :1], Source(blank, blank), read="train", noise=Noise(11))
        aligned = alignment.align(given, None, {}, call)
        nll = (aligned.weights[:, 0] @ costs).detach()
        loss = make(**{**PLAIN, **options})
        carry = {"baseline": torch.tensor(mean)}
        term, _ = loss(inputs(aligned.terms["log_prob"], nll), carry)
        term.backward()
        return given.grad[:, 0, 0] * rows

    exact = energy.clone().requires_grad_()
    (torch.softmax(exact, -1) @ costs).backward()
    run.exact = exact.grad
    run.mean_cost = (torch.softmax(energy, -1) @ costs).item()
    return run


@pytest.mark.parametrize("reward", ["sequence", "token"])
@pytest.mark.parametrize("baseline", ["none", "moving_average"])
def test_the_estimator_is_unbiased(toy, reward, baseline):
    rows = 20000
    found = toy(rows, mean=-toy.mean_cost, reward=reward, baseline=baseline)
    sigma = found.std(0) / rows**0.5
    assert ((found.mean(0) - toy.exact).abs() < 3 * sigma).all()


def test_the_running_mean_lowers_the_variance(toy):
    without = toy(5000).var(0).sum()
    with_mean = toy(5000, mean=-toy.mean_cost, baseline="moving_average").var(0).sum()
    assert with_mean < 0.5 * without


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
    for reward in ("sequence", "token"):
        total, rewards = 0.0, []
        for row in range(3):
            steps = [t for t in range(4) if mask[row, t]]
            whole = -sum(nll[row, t].item() for t in steps)
            rewards += [whole] if steps and reward == "sequence" else []
            for t in steps:
                got = whole if reward == "sequence" else -nll[row, t].item()
                rewards += [got] if reward == "token" else []
                total -= 0.1 * (got + 1.5) * log_prob[row, t].item()
                total -= 0.002 * entropy[row, t].item()
        term, after = make(reward=reward)(given, carry)
        assert term.item() == pytest.approx(total / 6)
        mean = sum(rewards) / len(rewards)
        assert after["baseline"].item() == pytest.approx(0.9 * -1.5 + 0.1 * mean)


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
