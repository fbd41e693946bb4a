"""Sparsemax, 1.5-entmax and alpha-entmax: one family, so one file of laws."""

from functools import partial

import entmax
import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.normalizers import newton_weights

Z = [1, 0.5, 0.1, -1]
GOLDEN = {
    "sparsemax": [0.75, 0.25, 0, 0],
    "entmax15": [0.609256, 0.281482, 0.109262, 0],
    "entmax[alpha=1.5]": [0.609256, 0.281482, 0.109262, 0],
    "entmax[alpha=2]": [0.75, 0.25, 0, 0],
}
ALL = ("sparsemax", "entmax15", "entmax[alpha=1.3]", "entmax[adaptive=true]")
REGIMES = ("cross", "causal", "self", "pool")


@pytest.mark.parametrize("selector", ALL)
@pytest.mark.parametrize("regime", REGIMES)
def test_vectorized_code_equals_the_loops(equals_oracle, selector, regime):
    found = equals_oracle(selector, regime).parallel.weights
    if selector != "entmax[alpha=1.3]":
        assert (found == 0).any(), "nothing here is sparse"


@pytest.mark.parametrize("selector", ["sparsemax", "entmax15", "entmax"])
def test_colder_rows_equal_the_loops_and_are_sparser(equals_oracle, selector):
    zeros = []
    for temperature in (0.2, 1, 5):
        found = equals_oracle(f"{selector}[temperature={temperature}]", padded=False)
        zeros.append(int((found.parallel.weights == 0).sum()))
    assert zeros[0] > zeros[1] > zeros[2]


@pytest.mark.parametrize("selector", GOLDEN)
def test_golden_weights(row, selector):
    assert row(selector, Z) == pytest.approx(GOLDEN[selector], abs=1e-6)
    assert row(selector, [*Z, 9], [True] * 4 + [False]) == pytest.approx(
        [*GOLDEN[selector], 0], abs=1e-6
    )


@pytest.mark.parametrize("selector", ALL)
def test_rows_sum_to_one_and_far_keys_have_exactly_nothing(row, selector):
    found = row(selector, [0, -30, 0.1, -30])
    assert sum(found) == pytest.approx(1)
    assert found[1] == found[3] == 0
    assert min(found) >= 0


def test_alpha_leads_from_softmax_to_sparsemax(row):
    assert row("entmax[alpha=1.0001]", Z) == pytest.approx(row("softmax", Z), abs=1e-3)
    assert row("entmax[alpha=1.5]", Z) == pytest.approx(row("entmax15", Z), abs=1e-10)
    assert row("entmax[alpha=2]", Z) == pytest.approx(row("sparsemax", Z), abs=1e-10)
    heaviest = [row(f"entmax[alpha={alpha}]", Z)[0] for alpha in (1.1, 1.3, 1.5, 1.7, 2)]
    assert heaviest == sorted(heaviest)


@pytest.mark.parametrize("alpha", [1.001, 1.1, 1.5, 1.75, 1.999, 2, 2.5])
@pytest.mark.parametrize("keys", [1, 2, 150])
def test_any_alpha_gives_the_weights_of_a_long_search(aligned, energies, alpha, keys):
    rows = energies(2, 2, 4, keys).detach()
    rows[:, :, 1] = 0
    rows[:, :, 2] = -(rows[:, :, 2].abs() ** 3) / 9  # many keys are nearly the best one
    rows[:, :, 3] = -(0.5 ** torch.arange(keys))
    found = aligned(f"entmax[alpha={alpha}]", rows)
    wanted = entmax.entmax_bisect(rows, alpha, n_iter=80)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("selector", ["entmax", "entmax[adaptive=true]"])
def test_halving_as_a_gpu_does_gives_the_same_weights(aligned, energies, selector, monkeypatch):
    rows = energies(2, 2, 3, 20).detach()
    found = aligned(selector, rows)
    monkeypatch.setattr(torch.Tensor, "is_cpu", False)
    monkeypatch.setattr("variants.normalizers.entmax.newton_weights", None)
    halved = aligned(selector, rows)
    torch.testing.assert_close(halved, found, rtol=0, atol=1e-11)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2])
def test_rows_that_need_more_steps_change_no_bit_of_another(aligned, energies, alpha):
    selector = f"entmax[alpha={alpha}]"
    rows = energies(2, 2, 30, 40).detach()
    rows[1] *= 5
    together = aligned(selector, rows)
    for row in range(30):
        assert torch.equal(
            aligned(selector, rows[:, :, row : row + 1]), together[:, :, row : row + 1]
        )


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2])
def test_as_many_steps_as_may_be_needed_change_no_bit(aligned, energies, alpha, monkeypatch):
    rows = energies(2, 2, 30, 40).detach()
    early = aligned(f"entmax[alpha={alpha}]", rows)
    monkeypatch.setattr(newton_weights, "_may_look", lambda: False)
    assert torch.equal(aligned(f"entmax[alpha={alpha}]", rows), early)


@pytest.mark.parametrize("selector", ALL)
def test_weights_are_the_same_where_nobody_asks_for_gradients(aligned, energies, selector):
    energy = energies(2, 2, 3, 6)
    with torch.no_grad():
        found = aligned(selector, energy)
    assert not found.requires_grad
    assert torch.equal(found, aligned(selector, energy))


@pytest.mark.parametrize("selector", ALL)
def test_a_constant_on_all_energies_of_a_row_changes_nothing(aligned, energies, selector):
    energy = energies(2, 2, 3, 5).detach()
    moved = aligned(selector, energy + 70)
    torch.testing.assert_close(moved, aligned(selector, energy), rtol=0, atol=1e-10)


@pytest.mark.parametrize("selector", ["sparsemax", "entmax15", "entmax[alpha=1.3]"])
def test_the_gradient_is_that_of_the_support(aligned, energies, selector):
    energy, pull = energies(2, 2, 3, 6), energies(2, 2, 3, 6, seed=1).detach()
    weights = aligned(selector, energy)
    (weights * pull).sum().backward()
    power = {"sparsemax": 0.0, "entmax15": 0.5, "entmax[alpha=1.3]": 0.7}[selector]
    a = weights.detach()
    s = torch.where(a > 0, a**power, 0.0)
    wanted = s * (pull - (s * pull).sum(-1, keepdim=True) / s.sum(-1, keepdim=True))
    torch.testing.assert_close(energy.grad, wanted, rtol=0, atol=1e-10)
    assert not energy.grad[a == 0].any()


@pytest.mark.parametrize(
    ("selector", "normalize"),
    [
        ("sparsemax", entmax.sparsemax),
        ("entmax15", entmax.entmax15),
        ("entmax[alpha=1.3]", lambda x: entmax.entmax_bisect(x, 1.3)),
    ],
)
def test_weights_and_gradients_are_the_librarys_own(aligned, energies, selector, normalize):
    one, two, pull = energies(2, 2, 3, 6), energies(2, 2, 3, 6), energies(2, 2, 3, 6, seed=1)
    found, wanted = aligned(selector, one), normalize(two)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)
    (found * pull).sum().backward()
    (wanted * pull).sum().backward()
    torch.testing.assert_close(one.grad, two.grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize("selector", ALL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_without_keys_reads_nothing_and_its_gradient_is_finite(
    aligned, energies, selector, dtype
):
    energy = energies(2, 2, 3, 5)
    allowed = torch.rand(2, 1, 3, 5, generator=torch.Generator().manual_seed(0)) < 0.6
    allowed[:, :, 1] = False
    weights = aligned(selector, energy.to(dtype), allowed)
    assert weights.dtype == dtype
    assert not weights[:, :, 1].any()
    assert not weights.masked_select(~allowed).any()
    alive = allowed.any(-1).expand(2, 2, 3)
    assert weights.sum(-1)[alive].sub(1).abs().max() < 4 * torch.finfo(dtype).eps
    weights.float().square().sum().backward()
    assert energy.grad.isfinite().all()
    assert not energy.grad.masked_select(~allowed).any()
    assert energy.grad.any()


def test_hidden_keys_of_enormous_energy_do_not_disturb_the_sums(row):
    for selector in ALL:
        found = row(selector, [1e30, 1, 0.5], [False, True, True], torch.float32)
        assert found == pytest.approx([0, *row(selector, [1, 0.5])], abs=1e-6)


def test_a_learned_alpha_starts_where_it_is_told_and_gets_a_gradient(component, aligned, ask, draw):
    normalizer = component("normalizer", "entmax[adaptive=true,alpha=1.2]", seed=None)
    drawn = draw(lengths=())
    energy = drawn.query @ drawn.source.key.transpose(-1, -2)
    weights = normalizer.normalize(energy, None, {}, ask(drawn.query, drawn.source)).weights
    torch.testing.assert_close(weights, aligned("entmax[alpha=1.2]", energy), rtol=0, atol=1e-6)
    weights.square().sum().backward()
    assert normalizer.sparsity.grad.shape == (2, 1, 1)
    assert (normalizer.sparsity.grad > 0).all(), "sparser rows have larger squares"


@pytest.mark.parametrize("search", ["newton", "bisection"])
@pytest.mark.parametrize("sparsity", [-9.0, -17.0, -30.0, -200.0])
def test_an_alpha_that_is_learned_down_to_one_is_softmax(
    component, ask, draw, sparsity, search, monkeypatch
):
    """One plus the sigmoid is rounded to one from -17 on."""
    if search == "bisection":  # as on a GPU
        bisect = partial(entmax.entmax_bisect, n_iter=60)
        monkeypatch.setattr(
            "variants.normalizers.entmax._solver",
            lambda energy, alpha: partial(bisect, alpha=alpha.detach()),
        )
    normalizer = component("normalizer", "entmax[adaptive=true]", seed=None).float()
    with torch.no_grad():
        normalizer.sparsity.fill_(sparsity)
    drawn = draw(keys=40, queries=9, lengths=())
    energy = (3 * drawn.query @ drawn.source.key.mT).float().requires_grad_()
    weights = normalizer.normalize(energy, None, {}, ask(drawn.query, drawn.source)).weights
    torch.testing.assert_close(weights, energy.softmax(-1), rtol=0, atol=1e-3)
    weights.square().sum().backward()
    assert energy.grad.isfinite().all()
    assert energy.grad.any()
    assert normalizer.sparsity.grad.isfinite().all()


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        ("sparsemax[temperature=0]", "sparsemax: temperature must be above 0"),
        ("entmax15[temperature=-2]", "entmax15: temperature must be above 0"),
        ("entmax[temperature=0]", "entmax: temperature must be above 0"),
        ("entmax[alpha=1]", "alpha must be at least 1.0001, got 1.0; alpha 1 is softmax"),
        ("entmax[alpha=1.000001]", "alpha must be at least 1.0001, got 1.000001"),
        ("entmax[alpha=2,adaptive=true]", "cannot begin at 2.0"),
        (
            "entmax[alpha=1.0001,adaptive=true]",
            "between 1.0001 and 2, and cannot begin at 1.0001",
        ),
    ],
)
def test_wrong_options_are_refused(beneath, selector, complaint):
    with pytest.raises(InvalidConfig, match=complaint):
        beneath(selector)
