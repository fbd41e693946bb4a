import math

import pytest
import torch

import variants
from bench.api.errors import Refused


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("ssmax[scale=0.8]", regime, padded=padded)


def test_it_is_the_softmax_where_the_scale_times_the_logarithm_is_one(row):
    energies = [1.0, 0.5, 0.1, -1.0]
    scale = 1 / math.log(4)
    assert row(f"ssmax[scale={scale}]", energies) == pytest.approx(row("softmax", energies))


def test_weights_are_powers_of_the_number_of_keys(row):
    energies = [1.0, 0.5, -1.0]
    powers = [3 ** (0.7 * e) for e in energies]
    wanted = [p / sum(powers) for p in powers]
    assert row("ssmax[scale=0.7]", energies) == pytest.approx(wanted)


@pytest.mark.parametrize(("scale", "fades"), [(0.43, True), (1.0, False), (2.0, False)])
def test_the_best_key_does_not_fade_among_many_where_its_lead_is_large_enough(row, scale, fades):
    """With a lead of 1.5, its weight tends to one where the scale times the lead is above one."""
    few, many = (
        row(f"ssmax[scale={scale}]", [1.5] + [0.0] * (count - 1))[0] for count in (10, 10000)
    )
    plain = [row("softmax", [1.5] + [0.0] * (count - 1))[0] for count in (10, 10000)]
    assert plain[1] < 0.001
    assert (many < few) == fades


def test_hidden_keys_do_not_count(row):
    wanted = row("ssmax", [1.0, 0.0])
    found = row("ssmax", [1.0, 9.0, 0.0, 3.0], [True, False, True, False])
    assert found == pytest.approx([wanted[0], 0, wanted[1], 0])
    assert row("ssmax", [4.0, 2.0], [True, False]) == [1, 0]


def test_fused_attention_would_forget_the_factor_and_is_refused():
    with pytest.raises(Refused, match="impl=sdpa needs"):
        variants.build("ssmax", dim=8, heads=2, impl="sdpa")


def test_the_scale_begins_where_it_is_asked_to_and_learns(beneath, answer, draw):
    drawn = draw()
    variant = beneath("ssmax[scale=0.6]", seed=None)
    assert torch.equal(variant.normalizer.scale, torch.full((2, 1, 1), 0.6).double())
    answer(variant, drawn.query, drawn.source).output.square().sum().backward()
    assert variant.normalizer.scale.grad.abs().min() > 0


@pytest.mark.parametrize("hidden", [0, 1000])
def test_half_precision_counts_more_keys_than_it_holds(aligned, hidden):
    """The greatest number of float16 is 65,504."""
    count = 70_000
    allowed = (torch.arange(count) < count - hidden).view(1, 1, 1, -1) if hidden else None
    energy = torch.cat((torch.tensor([3.0, 2.0]), torch.zeros(count - 2))).view(1, 1, 1, -1)
    half, single = (aligned("ssmax", energy.to(t), allowed) for t in (torch.half, torch.float32))
    torch.testing.assert_close(half.float(), single, rtol=0.02, atol=1e-7)
    torch.testing.assert_close(half.float().sum(), single.sum(), rtol=0.02, atol=0)
