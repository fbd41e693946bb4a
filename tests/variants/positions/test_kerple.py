import pytest
import torch
from torch.nn import functional

import variants
from bench.api.errors import Refused
from variants.positions.alibi import slopes
from variants.softplus import inverse_softplus


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("kernel", ["log", "power"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, kernel):
    equals_oracle(f"kerple[kernel={kernel}]", regime)


def test_golden_energies(component, ask, draw):
    """a = b = 1: minus the logarithm of the distance and one; minus the distance."""
    drawn = draw(1, 1, 1, 4, lengths=())
    for kernel, rate, wanted in (
        ("log", inverse_softplus(1.0), [-1.386294, -1.098612, -0.693147, 0.0]),
        ("power", 0.0, [-3.0, -2.0, -1.0, 0.0]),
    ):
        position = component("position", f"kerple[kernel={kernel}]", heads=1, regime="causal")
        with torch.no_grad():
            position.height.fill_(inverse_softplus(1.0))
            position.rate.fill_(rate)
        found = position.energy(ask(drawn.query, drawn.source, offset=3))
        assert found.flatten().tolist() == pytest.approx(wanted, abs=1e-6)


def test_the_first_power_with_the_slopes_of_alibi_is_alibi(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("kerple[kernel=power]", regime="causal")
    with torch.no_grad():
        wanted = [inverse_softplus(slope) for slope in slopes(2, torch.zeros(())).tolist()]
        variant.positions[0].height.copy_(torch.tensor(wanted))
        variant.positions[0].rate.zero_()
    found = [
        answer(v, drawn.query, drawn.source).output
        for v in (variant, beneath("alibi", regime="causal"))
    ]
    torch.testing.assert_close(*found, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kernel", ["log", "power"])
@pytest.mark.parametrize("seed", range(5))
def test_energies_fall_with_distance_whatever_the_parameters(component, ask, draw, kernel, seed):
    drawn = draw(1, 3, 1, 50, lengths=())
    position = component("position", f"kerple[kernel={kernel}]", heads=3, seed=seed)
    energy = position.energy(ask(drawn.query, drawn.source, offset=49))[0, :, 0]
    assert (energy.diff(dim=-1) > 0).all()
    assert (energy[:, -1] == 0).all()


def test_energies_are_conditionally_positive_definite(component, ask, draw):
    """Section 3: for numbers that sum to zero, the quadratic form of a kernel is not negative."""
    drawn = draw(1, 2, 12, 12, lengths=())
    rng = torch.Generator().manual_seed(0)
    numbers = torch.randn(100, 12, generator=rng, dtype=torch.float64)
    numbers = numbers - numbers.mean(-1, keepdim=True)
    for kernel in ("log", "power"):
        position = component("position", f"kerple[kernel={kernel}]")
        energy = position.energy(ask(drawn.query, drawn.source))[0]
        assert (torch.einsum("ni,hij,nj->nh", numbers, energy, numbers) > 0).all()


@pytest.mark.parametrize(("kernel", "largest"), [("log", (2.0, 1.0)), ("power", (1.0, 2.0))])
def test_parameters_start_in_the_ranges_of_the_released_code(component, kernel, largest):
    """Uniform up to 2 and 1 for the logarithm, and up to 1 and 2 for the power."""
    torch.manual_seed(0)
    position = component("position", f"kerple[kernel={kernel}]", heads=400, seed=None)
    height = functional.softplus(position.height)
    rate = position.rate
    rate = 2 * rate.sigmoid() if kernel == "power" else functional.softplus(rate)
    for drawn, most in zip((height, rate), largest, strict=True):
        assert drawn.min() > 0
        assert 0.95 * most < drawn.max() <= most + 1e-3
        assert drawn.mean().item() == pytest.approx(most / 2, rel=0.1)


def test_two_sequences_and_pooling_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="kerple: distances need one sequence"):
            variants.build("kerple", dim=8, heads=2, regime=regime)
