import itertools

import pytest
import torch

from bench.api.batch import Batch
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.trace import Trace
from variants.losses.rationale import RationaleLoss, RationaleLossConfig


def make(**options):
    return RationaleLoss(RationaleLossConfig(**options))


def inputs(selected, log_prob, nll, sources=1, real=None):
    mask = torch.ones(nll.shape, dtype=torch.bool)
    words = torch.zeros(nll.shape, dtype=torch.int64)
    blank = torch.zeros(*nll.shape, 1, dtype=torch.float64)
    real = torch.ones_like(selected) if real is None else real
    terms = ({"selected": selected, "log_prob": log_prob, "real": real},) * sources
    return LossInputs(
        Trace(blank, blank, blank, (), (), terms), nll, Batch((), words, words, mask), 0.5
    )


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_the_term_is_that_of_the_formula_by_loops():
    selected = (draw(3, 5) > 0).double()
    log_prob, nll = draw(3, 5, seed=1), draw(3, 2, seed=2).abs()
    loss = make(sparsity=0.3, coherence=0.7, weight=2.0)
    found, carry = loss(inputs(selected, log_prob, nll), {"baseline": torch.tensor(0.5)})
    total, costs = 0.0, []
    for row in range(3):
        z = selected[row].tolist()
        changes = sum(abs(one - two) for one, two in itertools.pairwise(z))
        costs.append(nll[row].sum().item() + 0.3 * sum(z) + 0.7 * changes)
        total += (costs[-1] - 0.5) * log_prob[row].sum().item()
    assert found.item() == pytest.approx(2 * total / 6)
    assert carry["baseline"].item() == pytest.approx(0.9 * 0.5 + 0.1 * sum(costs) / 3)


def test_padding_behind_a_selected_token_costs_nothing():
    nll = torch.tensor([[0.5]], dtype=torch.float64)
    loss = make(sparsity=0.3, coherence=0.7)

    def cost(selected, real):
        z, real = (torch.tensor([one], dtype=torch.float64) for one in (selected, real))
        return loss(inputs(z, -torch.ones_like(z) * real, nll, real=real), loss.init())[0].item()

    alone = cost([0, 1, 1], [1, 1, 1])
    assert alone == pytest.approx(-3 * (0.5 + 0.6 + 0.7))
    assert cost([0, 1, 1, 0, 0], [1, 1, 1, 0, 0]) == pytest.approx(alone)


def enumerate_cost(logits, answer, options):
    """Exact expected cost of three independent selections, differentiable in their logits."""
    p, total = torch.sigmoid(logits), 0.0
    for z in itertools.product((0, 1), repeat=3):
        chance = torch.stack([p[i] if on else 1 - p[i] for i, on in enumerate(z)]).prod()
        changes = sum(abs(one - two) for one, two in itertools.pairwise(z))
        cost = answer(z) + options["sparsity"] * sum(z) + options["coherence"] * changes
        total = total + chance * cost
    return total


@pytest.mark.parametrize("baseline", ["none", "moving_average"])
def test_the_mean_of_many_estimates_is_the_gradient_of_the_expected_cost(baseline):
    rows = 100_000
    options = {"sparsity": 0.3, "coherence": 0.2}
    weights = (1.5, -0.5, 0.4)

    def answer(z):
        return 2.0 - sum(w * on for w, on in zip(weights, z, strict=True)) + z[0] * z[2]

    logits = torch.tensor([0.3, -0.6, 0.1], dtype=torch.float64, requires_grad=True)
    mean = enumerate_cost(logits, answer, options)
    mean.backward()
    rng = torch.Generator().manual_seed(0)
    selected = torch.rand(rows, 3, generator=rng, dtype=torch.float64) < torch.sigmoid(logits)
    given = logits.detach().expand(rows, 3).clone().requires_grad_()
    log_prob = torch.nn.functional.logsigmoid(torch.where(selected, given, -given))
    z = selected.double()
    nll = 2.0 - z @ torch.tensor(weights, dtype=torch.float64) + z[:, 0] * z[:, 2]
    loss = make(baseline=baseline, **options)
    carry = {"baseline": mean.detach()}
    loss(inputs(z, log_prob, nll[:, None]), carry)[0].backward()
    found = given.grad * rows
    sigma = found.std(0) / rows**0.5
    assert ((found.mean(0) - logits.grad).abs() < 3 * sigma).all()
    if baseline == "moving_average":
        plain = given.detach().requires_grad_()
        log_prob = torch.nn.functional.logsigmoid(torch.where(selected, plain, -plain))
        make(baseline="none", **options)(inputs(z, log_prob, nll[:, None]), carry)[0].backward()
        assert found.var(0).sum() < 0.7 * (plain.grad * rows).var(0).sum()


def test_a_selection_that_cost_less_than_usual_becomes_likelier():
    log_prob = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    nll = torch.tensor([[0.5], [3.0]], dtype=torch.float64).requires_grad_()
    given = inputs(torch.zeros(2, 3, dtype=torch.float64), log_prob, nll)
    make()(given, {"baseline": torch.tensor(1.5)})[0].backward()
    assert (log_prob.grad[0] < 0).all(), "descent raises the log probability of the good draw"
    assert (log_prob.grad[1] > 0).all()
    assert nll.grad is None


def test_sources_that_select_add_up():
    given = (draw(2, 4).sigmoid().round(), draw(2, 4, seed=1), draw(2, 1, seed=2).abs())
    loss = make(sparsity=0.0, coherence=0.0)
    one, two = (loss(inputs(*given, sources=n), loss.init())[0].item() for n in (1, 2))
    assert two == pytest.approx(2 * one)
    z, log_prob, nll = (draw(2, 4) > 0).double(), *given[1:]
    assert z.any()
    cost = nll.sum(1) + 2 * (0.3 * z.sum(1) + 0.7 * z.diff(dim=1).abs().sum(1))
    loss = make(sparsity=0.3, coherence=0.7, baseline="none")
    found = loss(inputs(z, log_prob, nll, sources=2), loss.init())[0].item()
    assert found == pytest.approx((cost * 2 * log_prob.sum(1)).sum().item() / 2)


def test_it_is_refused_where_nothing_selects():
    reason = resolve("scaled_dot[loss=rationale]").refusal(frozenset({"pool", "equal_width"}))
    assert reason == "rationale needs an encoder that selects tokens, which nothing here gives."
    blank = torch.zeros(1, 1, 1)
    given = inputs(blank[0], blank[0], blank[0])
    blind = given.trace._replace(source_terms=())
    with pytest.raises(Refused, match="encoder=rationale"):
        make()(LossInputs(blind, given.nll, given.batch, 0.5), make().init())


def test_options_are_checked():
    with pytest.raises(InvalidConfig, match="sparsity, coherence and weight must be at least 0"):
        RationaleLossConfig(coherence=-1.0)
    with pytest.raises(InvalidConfig, match=r"decay must be in \[0, 1\)"):
        RationaleLossConfig(decay=1.0)
