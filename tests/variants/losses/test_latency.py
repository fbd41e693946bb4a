import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace
from variants.losses.latency import LatencyConfig, LatencyLoss, average_lagging

TERMS = ("expected_delay", "delay_leading", "delay_variance")


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=rng, dtype=torch.float64)


def inputs(terms, mask, lengths, slots=1, progress=0.5):
    rows, steps = mask.shape
    blank = torch.zeros(rows, steps, 1, dtype=torch.float64)
    words = torch.zeros(rows, steps, dtype=torch.int64)
    keys = torch.zeros(rows, 1, max(lengths), 1, dtype=torch.float64)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    attended = (Attended(blank[:, None], None, State(), terms),) * slots
    trace = Trace(blank, blank, blank, attended, (Memory(Source(keys, keys, real)),) * slots)
    return LossInputs(trace, blank[..., 0], Batch((), words, words, mask), progress)


def by_loops(delays, length):
    """Differentiable average lagging of one sentence from its definition."""
    pace, before, total = length / len(delays), None, 0.0
    for t, delay in enumerate(delays):
        lagged = delay if before is None else max(delay, before + pace)
        total += lagged - t * pace
        before = lagged
    return total / len(delays)


def test_lagging_is_that_of_the_definition_by_loops():
    delay = 6 * draw(4, 5)
    mask = torch.arange(5) < torch.tensor([5, 3, 1, 4])[:, None]
    lengths = torch.tensor([6, 7, 2, 4])
    found = average_lagging(delay, lengths, mask)
    for row, steps in enumerate((5, 3, 1, 4)):
        wanted = by_loops(delay[row, :steps].tolist(), int(lengths[row]))
        assert found[row].item() == pytest.approx(wanted, rel=1e-12)


def test_waiting_k_tokens_ahead_lags_by_k_where_the_source_is_long():
    # with source and target of one length, g(t) = k + t - 1 is at the ideal pace k tokens behind
    delay = torch.arange(1.0, 9.0).unsqueeze(0) + 2
    found = average_lagging(delay, torch.tensor([8]), torch.ones(1, 8, dtype=torch.bool))
    assert found.item() == pytest.approx(3)


def test_reading_all_first_lags_by_the_whole_source_and_reading_later_never_lowers_it():
    mask = torch.ones(1, 4, dtype=torch.bool)
    all_first = average_lagging(torch.full((1, 4), 6.0), torch.tensor([6]), mask)
    assert all_first.item() == pytest.approx(6)
    delay = (6 * draw(1, 4)).requires_grad_()
    average_lagging(delay, torch.tensor([6]), mask).sum().backward()
    assert (delay.grad >= 0).all()
    assert delay.grad.sum() == pytest.approx(1)


def test_padded_steps_neither_count_nor_get_gradients():
    mask = torch.tensor([[True, True, False], [False, False, False]])
    delay = draw(2, 3).requires_grad_()
    terms = dict.fromkeys(TERMS, delay)
    loss = LatencyLoss(LatencyConfig(weight=1.0, variance=1.0))
    loss(inputs(terms, mask, [4, 3]), {})[0].backward()
    assert delay.grad[0, :2].abs().sum() > 0
    assert not delay.grad[0, 2:].any()
    assert not delay.grad[1].any()


@pytest.mark.parametrize(
    ("heads", "weight", "variance"),
    [("mean", 0.3, 0.0), ("leading", 0.3, 0.0), ("leading", 0.0, 0.2)],
)
def test_the_term_is_the_weighted_lagging_and_variance(heads, weight, variance):
    mask = torch.arange(4) < torch.tensor([4, 2])[:, None]
    terms = {name: 5 * draw(2, 4, seed=seed) for seed, name in enumerate(TERMS)}
    given = inputs(terms, mask, [5, 3])
    found, carry = LatencyLoss(LatencyConfig(heads=heads, weight=weight, variance=variance))(
        given, {}
    )
    name = {"mean": "expected_delay", "leading": "delay_leading"}[heads]
    lags = [by_loops(terms[name][row, :n].tolist(), s) for row, n, s in ((0, 4, 5), (1, 2, 3))]
    apart = [terms["delay_variance"][row, :n].mean().item() for row, n in ((0, 4), (1, 2))]
    targets = 6
    assert found.item() == pytest.approx((weight * sum(lags) + variance * sum(apart)) / targets)
    assert carry == {}


@pytest.mark.parametrize(
    ("progress", "share"),
    [(0.0, 0.0), (0.19, 0.0), (0.2, 0.0), (0.3, 0.25), (0.6, 1.0), (1.0, 1.0)],
)
def test_the_weights_rise_after_the_start(progress, share):
    mask = torch.ones(2, 3, dtype=torch.bool)
    terms = {name: 5 * draw(2, 3, seed=seed) for seed, name in enumerate(TERMS)}
    given = inputs(terms, mask, [4, 4], progress=progress)
    options = {"weight": 0.3, "variance": 0.2}
    full, _ = LatencyLoss(LatencyConfig(**options))(given, {})
    rising, _ = LatencyLoss(LatencyConfig(start=0.2, rise=0.4, **options))(given, {})
    assert full > 0
    assert rising.item() == pytest.approx(share * full.item())


def test_without_a_rise_the_weights_are_whole_from_the_start_on():
    config = LatencyConfig(start=0.2)
    assert [config.share(progress) for progress in (0.1, 0.2, 1.0)] == [0, 1, 1]


@pytest.mark.parametrize(("start", "rise"), [(0.0, 0.0), (0.4, 0.0), (0.6, 0.0), (0.25, 0.5)])
def test_the_schedule_is_that_of_the_loops(start, rise):
    mask = torch.ones(1, 3, dtype=torch.bool)
    terms = {name: 5 * draw(1, 3, seed=seed) for seed, name in enumerate(TERMS)}
    given = inputs(terms, mask, [4])
    loss = LatencyLoss(LatencyConfig(start=start, rise=rise, variance=0.1))
    wanted = loss.oracle(given, {}).item() / 3
    assert loss(given, {})[0].item() == pytest.approx(wanted)


def test_the_schedule_ends_with_training():
    with pytest.raises(InvalidConfig, match=r"at most 1 together, got 0\.6 and 0\.5"):
        LatencyConfig(start=0.6, rise=0.5)


def test_layers_are_averaged():
    mask = torch.ones(2, 3, dtype=torch.bool)
    terms = dict.fromkeys(TERMS, 3 * draw(2, 3))
    one, two = (LatencyLoss(LatencyConfig())(inputs(terms, mask, [4, 4], n), {})[0] for n in (1, 2))
    assert one.item() == pytest.approx(two.item())


def test_the_loss_is_refused_where_nothing_walks():
    reason = resolve("additive[loss=latency]").refusal(frozenset({"cross", "padding"}))
    assert reason == (
        "latency needs a normalizer that tells how far it has read, which nothing here gives."
    )
    for name in ("milk", "mma", "mocha[loss=latency]", "raffel_monotonic[loss=latency]"):
        given = frozenset({"cross", "padding", "stepwise", "equal_width"})
        assert resolve(name).refusal(given) is None
    with pytest.raises(Refused, match="needs a monotonic normalizer"):
        LatencyLoss(LatencyConfig())(inputs({}, torch.ones(1, 2, dtype=torch.bool), [3]), {})


def test_weights_are_not_negative():
    with pytest.raises(InvalidConfig, match=r"at least 0, got -1\.0 and 0\.0"):
        LatencyConfig(weight=-1.0)
