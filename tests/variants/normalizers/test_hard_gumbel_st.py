import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.noise import Noise
from bench.api.source import Source
from variants.normalizers.hard_gumbel_st import KEY, HardGumbelConfig

NOISE = Noise(seed=5)
READS = ("train", "expected", "hard")


@pytest.fixture
def normalize(component, ask):
    """`normalize(energy, allowed, selector, ...)` -> weights of one normalizer on energies."""

    def make(energy, allowed=None, selector="hard_gumbel_st", **options):
        rows, heads, length, keys = energy.shape
        normalizer = component("normalizer", selector, heads=heads)
        blank = torch.zeros(rows, heads, keys, 1, dtype=energy.dtype)
        call = ask(blank.new_zeros(rows, heads, length, 1), Source(blank, blank), **options)
        return normalizer.normalize(energy, allowed, {}, call).weights

    return make


def energies(*shape, seed=0, grad=False, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=dtype).requires_grad_(grad)


def relaxed(energy, tau):
    rows, heads, length, keys = energy.shape
    gumbel = NOISE.gumbel(KEY, rows, heads, torch.arange(length), keys)
    return torch.softmax((energy + gumbel) / tau, -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_reads_exactly_one_key(normalize, dtype):
    weights = normalize(energies(4, 2, 5, 6, dtype=dtype), read="train", noise=NOISE)
    assert torch.equal(weights.sort(-1).values[..., :-1], torch.zeros_like(weights[..., :-1]))
    assert torch.equal(weights.max(-1).values, torch.ones_like(weights[..., 0]))
    assert weights.dtype == dtype


def test_keys_are_drawn_as_often_as_the_softmax_says(normalize):
    energy = energies(1, 1, 1, 4).expand(1, 1, 20000, 4)
    weights = normalize(energy, read="train", noise=NOISE)
    alpha = torch.softmax(energy[0, 0, 0], -1)
    sigma = (alpha * (1 - alpha) / 20000).sqrt()
    assert ((weights.mean(2).flatten() - alpha).abs() < 3 * sigma).all()


@pytest.mark.parametrize(("progress", "tau"), [(0.0, 1.0), (0.5, 0.5**0.5), (1.0, 0.5)])
def test_the_gradient_is_that_of_the_tempered_softmax(normalize, progress, tau):
    energy = energies(2, 2, 3, 4, grad=True)
    pull = energies(2, 2, 3, 4, seed=1)
    (normalize(energy, read="train", noise=NOISE, progress=progress) * pull).sum().backward()
    copy = energy.detach().clone().requires_grad_()
    (relaxed(copy, tau) * pull).sum().backward()
    torch.testing.assert_close(energy.grad, copy.grad)
    assert (energy.grad != 0).all()


def gradient_size(normalize, tau):
    energy = energies(2, 2, 3, 4, grad=True)
    selector = f"hard_gumbel_st[tau_start={tau},tau_end={tau}]"
    pull = energies(2, 2, 3, 4, seed=1)
    (normalize(energy, selector=selector, read="train", noise=NOISE) * pull).sum().backward()
    return energy.grad.abs().max().item()


def test_the_gradient_vanishes_as_the_temperature_goes_to_zero_and_to_infinity(normalize):
    assert gradient_size(normalize, 1e-3) < 1e-8
    assert gradient_size(normalize, 1.0) > 1e-2
    assert gradient_size(normalize, 1e6) < 1e-5
    assert relaxed(energies(1, 1, 1, 4), 1e6).sub(0.25).abs().max() < 1e-5
    hard = relaxed(energies(1, 1, 1, 4), 1e-3).max().item()
    assert hard > 1 - 1e-9


def test_a_masked_key_is_never_drawn_however_high_its_energy(normalize):
    energy = energies(3, 1, 50, 4).clone()
    energy[..., 2] = 1e4
    allowed = (torch.arange(4) != 2).view(1, 1, 1, 4)
    for read in READS:
        assert not normalize(energy, allowed, read=read, noise=NOISE)[..., 2].any()


def test_temperatures_must_be_positive():
    with pytest.raises(InvalidConfig, match="above 0"):
        HardGumbelConfig(tau_end=0.0)
