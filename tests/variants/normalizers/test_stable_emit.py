import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.source import Source
from variants.normalizers.expected_alignment import expected_alignment
from variants.normalizers.stable_emit import StableEmitConfig

NOISE = Noise(seed=7)
SILENT = "walk=raffel_monotonic[noise=0,offset=-0.5]"


@pytest.fixture
def normalize(component, ask):
    """`normalize(energy, selector, mask, read=..)` -> `Normalized`."""

    def make(energy, selector, mask=None, **options):
        rows, heads, length, keys = energy.shape
        normalizer = component("normalizer", selector, heads=heads, seed=None)
        blank = torch.zeros(rows, heads, keys, 1, dtype=energy.dtype)
        call = ask(blank.new_zeros(rows, heads, length, 1), Source(blank, blank, mask), **options)
        first = torch.zeros(rows, heads, keys, dtype=energy.dtype)
        first[..., 0] = 1
        return normalizer.normalize(energy, call.allowed, {"alpha": first}, call)

    return make


@pytest.mark.parametrize("discount", [0.0, 0.25, 0.9])
def test_training_walks_with_the_share_of_each_stop_that_is_left(energies, normalize, discount):
    energy = 4 * energies(3, 2, 4, 6)
    mask = torch.arange(6) < torch.tensor([6, 4, 0])[:, None]
    stop = (1 - discount) * torch.sigmoid(energy - 0.5)
    stop = torch.where(mask[:, None, None], stop, 0.0)
    first = torch.zeros(3, 2, 6, dtype=torch.float64)
    first[..., 0] = 1
    wanted = expected_alignment(stop, first, "recursive")
    selector = f"stable_emit[{SILENT},discount={discount}]"
    found = normalize(energy, selector, mask, read="train", noise=NOISE).weights
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("read", ["expected", "hard"])
@pytest.mark.parametrize("walk", ["raffel_monotonic", "raffel_monotonic[end=last]"])
def test_a_trained_model_reads_as_the_walk_alone(energies, normalize, read, walk):
    energy = energies(3, 2, 4, 6)
    alone = normalize(energy, walk, read=read)
    found = normalize(energy, f"stable_emit[walk={walk},discount=0.7]", read=read)
    assert torch.equal(found.weights, alone.weights)
    assert torch.equal(found.state["alpha"], alone.state["alpha"])


def test_without_a_discount_training_draws_the_noise_of_the_walk(energies, normalize):
    energy = energies(3, 2, 4, 6)
    alone = normalize(energy, "raffel_monotonic[noise=2]", read="train", noise=NOISE).weights
    selector = "stable_emit[walk=raffel_monotonic[noise=2],discount=0]"
    found = normalize(energy, selector, read="train", noise=NOISE).weights
    torch.testing.assert_close(found, alone)


def test_large_energies_have_finite_gradients(energies, normalize):
    energy = (400 * energies(2, 1, 3, 5)).detach().requires_grad_()
    found = normalize(energy, f"stable_emit[{SILENT},discount=0.5]", read="train", noise=NOISE)
    found.weights.square().sum().backward()
    assert torch.isfinite(found.weights).all()
    assert torch.isfinite(energy.grad).all()


@pytest.mark.parametrize("read", ["train", "expected", "hard"])
@pytest.mark.parametrize(
    "walk", ["raffel_monotonic", "raffel_monotonic[end=last]", "mocha[window=3]", "milk[noise=2]"]
)
def test_every_walk_equals_the_loops(equals_oracle, read, walk):
    selector = f"additive[normalizer=stable_emit[walk={walk},discount=0.4]]"
    equals_oracle(selector, read=read, noise=NOISE)


def test_what_does_not_walk_has_no_stops_to_discount(component):
    with pytest.raises(Refused, match="softmax has none"):
        component("normalizer", "stable_emit[walk=softmax]")


@pytest.mark.parametrize("discount", [-0.1, 1.0])
def test_the_discount_is_a_share(discount):
    with pytest.raises(InvalidConfig, match=f"got {discount}"):
        StableEmitConfig(discount=discount)
