import itertools

import pytest
import torch

import variants
from bench.api.noise import Noise
from bench.api.source import Source

NOISE = Noise(seed=7)
READS = ("train", "expected", "hard")


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def spread(component, ask):
    """`spread(stops, energy, allowed, selector)` -> weights, the chunk's energies being given."""

    def make(stops, energy, allowed=None, selector="milk"):
        heads, keys = stops.shape[1], stops.shape[3]
        normalizer = component("normalizer", selector, heads=heads)
        normalizer.chunk_energy = lambda call: energy
        blank = torch.zeros(stops.shape[0], heads, keys, 1, dtype=stops.dtype)
        return normalizer.spread(stops, allowed, ask(blank[:, :, :1], Source(blank, blank)))

    return make


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def by_loops(stops, energy, allowed):
    found = torch.zeros_like(stops)
    for k, mass in enumerate(stops):
        inside = [s for s in range(k + 1) if allowed[s]]
        total = sum(energy[s].exp() for s in inside)
        for s in inside:
            found[s] += mass * energy[s].exp() / total
    return found


def test_golden_weights(spread):
    stops = doubles(0.5, 0.25, 0.125).view(1, 1, 1, 3)
    energy = doubles(1, 2, 4).log().view(1, 1, 1, 3)
    found = spread(stops, energy)[0, 0, 0]
    torch.testing.assert_close(found, doubles(0.601190, 0.202381, 0.071429), rtol=0, atol=1e-6)


@pytest.mark.parametrize("masked", ["nothing", "end", "start", "holes"])
def test_the_scan_is_the_double_sum_by_loops_in_values_and_gradients(spread, masked):
    allowed = {
        "nothing": [1] * 7,
        "end": [1, 1, 1, 1, 0, 0, 0],
        "start": [0, 0, 0, 1, 1, 1, 1],
        "holes": [0, 1, 0, 0, 1, 1, 0],
    }[masked]
    allowed = torch.tensor(allowed).bool()
    mask = None if masked == "nothing" else allowed.view(1, 1, 1, 7)
    stops = torch.where(allowed, drawn(2, 2, 3, 7).softmax(-1) * 0.8, 0.0)
    energy = 3 * drawn(2, 2, 3, 7, seed=1)
    given = [x.clone().requires_grad_() for x in (stops, energy, stops, energy)]
    found = spread(given[0], given[1], mask)
    rows = [
        by_loops(given[2][row, head, t], given[3][row, head, t], allowed)
        for row, head, t in itertools.product(range(2), range(2), range(3))
    ]
    wanted = torch.stack(rows).view(2, 2, 3, 7)
    assert (found - wanted).abs().max() < 1e-12
    torch.testing.assert_close(found.sum(-1), stops.sum(-1))
    pull = drawn(2, 2, 3, 7, seed=2)
    (found * pull).sum().backward()
    (wanted * pull).sum().backward()
    for one, two in ((given[0], given[2]), (given[1], given[3])):
        real = allowed.expand_as(one.grad)
        assert (one.grad - two.grad)[real].abs().max() < 1e-12
    assert not given[1].grad[..., ~allowed].any()


@pytest.mark.parametrize("order", [1, -1])
def test_energies_far_apart_neither_overflow_nor_vanish(spread, order):
    energy = torch.tensor([-2000.0, -1000.0, 0.0, 1000.0][::order]).view(1, 1, 1, 4)
    energy.requires_grad_()
    found = spread(torch.full((1, 1, 1, 4), 0.25), energy)
    # rising energies: every stop reads its own key; falling ones: every stop reads the first
    assert found[0, 0, 0].tolist() == ([0.25] * 4 if order == 1 else [1.0, 0.0, 0.0, 0.0])
    found.square().sum().backward()
    assert energy.grad.isfinite().all()


def test_a_window_as_wide_as_the_source_is_the_infinite_lookback(spread):
    stops, energy = drawn(2, 1, 4, 6).softmax(-1) * 0.9, drawn(2, 1, 4, 6, seed=1)
    wide = spread(stops, energy, selector="mocha[window=6]")
    torch.testing.assert_close(spread(stops, energy), wide, rtol=0, atol=1e-12)


def test_a_certain_stop_at_the_last_key_is_plain_softmax_attention(spread):
    stops, energy = torch.zeros(2, 1, 4, 6, dtype=torch.float64), drawn(2, 1, 4, 6)
    stops[..., -1] = 1.0
    torch.testing.assert_close(spread(stops, energy), energy.softmax(-1))


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("end", ["nothing", "last"])
def test_vectorized_code_equals_the_loops(equals_oracle, read, end):
    selector = f"milk[score=scaled_dot,chunk=general,offset=0,end={end}]"
    equals_oracle(selector, read=read, noise=NOISE, queries=6, keys=9)


@pytest.mark.parametrize("name", ["mma", "mma_h"])
def test_heads_walk_by_themselves(name):
    slot = variants.build(name, dim=16, regime="cross", attention_only=True).double()
    torch.manual_seed(0)
    memory = slot.prepare(4 * torch.randn(3, 9, 16, dtype=torch.float64))
    x = 4 * torch.randn(3, 6, 16, dtype=torch.float64)
    attended = slot.attend(x, memory, slot.start(memory, x), read="hard")[1]
    reach = (attended.weights > 0).double().mul(torch.arange(1, 10)).amax(-1)
    assert (reach.amax(1) > reach.amin(1)).any()
    assert (reach[:, :, 1:] >= reach[:, :, :-1]).all()
    torch.testing.assert_close(attended.terms["touched"], reach.amax(1))
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones_like(reach))


def test_delays_of_heads_are_joined_by_mean_softmax_variance_and_maximum(component, ask):
    normalizer = component("normalizer", "raffel_monotonic[offset=0]", heads=3, seed=None)
    energy = 2 * drawn(2, 3, 4, 5)
    blank = torch.zeros(2, 3, 5, 1, dtype=torch.float64)
    call = ask(blank.new_zeros(2, 3, 4, 1), Source(blank, blank))
    state = {"alpha": torch.eye(5, dtype=torch.float64)[:1].expand(2, 3, 5)}
    aligned = normalizer.normalize(energy, None, state, call)
    read = aligned.weights @ torch.arange(1.0, 6.0, dtype=torch.float64)
    read = read + 5 * (1 - aligned.weights.sum(-1))
    for row, t in itertools.product(range(2), range(4)):
        heads = read[row, :, t]
        shares = heads.exp() / heads.exp().sum()
        wanted = {
            "expected_delay": heads.mean(),
            "delay_leading": (shares * heads).sum(),
            "delay_variance": ((heads - heads.mean()) ** 2).mean(),
            "touched": heads.max(),
        }
        for name, value in wanted.items():
            torch.testing.assert_close(aligned.terms[name][row, t], value)
