import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from variants.softplus import inverse_softplus


@pytest.mark.parametrize("options", ["width=4", "width=3,threshold=2.0"])
def test_vectorized_code_equals_the_loops(equals_oracle, options):
    equals_oracle(f"fire[{options}]", "causal")


def straight(position, rate=1.0, slope=1.0, multiple=1.0):
    """Let the network be a straight line through zero."""
    with torch.no_grad():
        for parameter in position.parameters():
            parameter.zero_()
        position.rate.fill_(rate)
        position.multiple.fill_(multiple)
        position.inward.weight[0] = 1
        position.outward.weight[:, 0] = slope


def test_golden_shares_of_what_the_query_has_seen(component, ask, draw):
    """Up to the threshold distances are shares of it, from there on of the query's place."""
    drawn = draw(1, 1, 4, 4, lengths=())
    position = component("position", "fire[threshold=2.0]", heads=1, regime="causal")
    straight(position)
    energy = position.energy(ask(drawn.query, drawn.source, causal=True))[0, 0]
    assert energy[1, 0].item() == pytest.approx(math.log(2) / math.log(3), abs=1e-5)
    assert energy[2, 0].item() == pytest.approx(1, abs=1e-5)
    assert energy[3, 0].item() == pytest.approx(1, abs=1e-5)
    assert energy[3, 1].item() == pytest.approx(math.log(3) / math.log(4), abs=1e-5)
    assert energy.diagonal().tolist() == [0.0] * 4


def test_no_share_is_greater_than_one_however_long_the_sequence(component, ask, draw):
    drawn = draw(1, 1, 1, 700, lengths=())
    position = component("position", "fire[threshold=8.0]", heads=1, regime="causal")
    straight(position)
    energy = position.energy(ask(drawn.query, drawn.source, offset=699, causal=True))
    assert energy.min() >= 0
    assert energy.max() <= 1


def test_a_straight_line_below_the_threshold_is_the_logarithmic_kernel(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("fire", regime="causal")
    straight(variant.positions[0], rate=0.5, slope=-3.0)
    kernel = beneath("kerple", regime="causal")
    with torch.no_grad():
        height = 3 / (math.log(1 + 0.5 * 512) + 1e-6)
        kernel.positions[0].height.fill_(inverse_softplus(height))
        kernel.positions[0].rate.fill_(inverse_softplus(0.5))
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, kernel)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_a_network_of_zeros_is_the_scaled_dot_product(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("fire", regime="causal")
    straight(variant.positions[0], slope=0.0)
    plain = beneath("scaled_dot", regime="causal")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_sizes_and_places_without_a_meaning_are_refused():
    with pytest.raises(InvalidConfig, match="width must be at least 1 and threshold positive"):
        variants.build("fire[width=0]", dim=8, heads=2, regime="causal")
    for regime, reason in (("cross", "two"), ("self", "shares"), ("pool", "not in it")):
        with pytest.raises(Refused, match=reason):
            variants.build("fire", dim=8, heads=2, regime=regime)
