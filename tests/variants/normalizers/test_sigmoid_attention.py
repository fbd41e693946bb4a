import pytest
import torch

from bench.api.errors import Refused
from bench.conformance import certify


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("sigmoid_attention", regime, padded=padded)


@pytest.mark.parametrize("count", [1, 4, 1000])
def test_equal_energies_of_zero_sum_to_n_over_n_plus_one(row, count):
    assert sum(row("sigmoid_attention", [0.0] * count)) == pytest.approx(count / (count + 1))


def test_keys_do_not_compete(row):
    one = row("sigmoid_attention", [0.5, 2.0, -1.0])
    other = row("sigmoid_attention", [0.5, -7.0, 40.0])
    assert one[0] == other[0]
    assert sum(row("sigmoid_attention", [40.0, 40.0, 40.0])) == pytest.approx(3)


def test_only_visible_keys_are_counted(row):
    found = row("sigmoid_attention", [0.5, 9.0, -1.0], [True, False, True])
    wanted = row("sigmoid_attention", [0.5, -1.0])
    assert found == pytest.approx([wanted[0], 0, wanted[1]])


def test_without_the_logarithm_it_is_the_logistic_sigmoid(row):
    shifted = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64) + torch.tensor(3.0).log()
    found = row("sigmoid_attention", shifted.tolist())
    assert found == pytest.approx(row("logistic_sigmoid", [0.5, 2.0, -1.0]), rel=1e-6)


@pytest.mark.parametrize(
    ("other", "needed"),
    [
        ("history=tu_coverage", "explicit attention weights, which sigmoid_attention removes"),
        ("output=pointer_generator", "weights that sum to one, which nothing here gives"),
    ],
)
def test_what_needs_a_distribution_over_keys_is_refused(beneath, other, needed):
    with pytest.raises(Refused, match=f"needs {needed}"):
        beneath(f"additive[normalizer=sigmoid_attention,{other}]")


def test_the_certificate_holds_its_weights_between_zero_and_one():
    assert "weight_law" in certify("sigmoid_attention", checks=["weight_law"]).passed


@pytest.mark.parametrize("hidden", [0, 1000])
def test_half_precision_counts_more_keys_than_it_holds(aligned, hidden):
    """The greatest number of float16 is 65,504."""
    count = 70_000
    allowed = (torch.arange(count) < count - hidden).view(1, 1, 1, -1) if hidden else None
    energy = torch.cat((torch.tensor([3.0, 2.0]), torch.zeros(count - 2))).view(1, 1, 1, -1)
    half, single = (
        aligned("sigmoid_attention", energy.to(t), allowed) for t in (torch.half, torch.float32)
    )
    torch.testing.assert_close(half.float(), single, rtol=0.02, atol=1e-7)
    torch.testing.assert_close(half.float().sum(), single.sum(), rtol=0.02, atol=0)
