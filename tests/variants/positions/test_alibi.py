import pytest
import torch

import variants
from bench.api.errors import Refused
from variants.positions.alibi import slopes


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, heads):
    equals_oracle("alibi", regime, dim=12, heads=heads)


def test_golden_slopes_of_eight_heads_halve_from_a_half():
    found = slopes(8, torch.zeros((), dtype=torch.float64)).tolist()
    assert found == [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]


def test_golden_slopes_of_six_heads_are_those_of_four_and_every_other_of_eight():
    found = slopes(6, torch.zeros((), dtype=torch.float64)).tolist()
    assert found == [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_golden_energies_fall_by_a_slope_a_token_on_both_sides(component, ask, draw, regime):
    drawn = draw(1, 8, 4, 4, lengths=())
    energy = component("position", "alibi", heads=8, regime=regime).energy(
        ask(drawn.query, drawn.source, causal=regime == "causal")
    )
    assert energy[0, 0, 2].tolist() == [-1.0, -0.5, 0.0, -0.5]
    assert energy[0, 1, 3].tolist() == [-0.75, -0.5, -0.25, 0.0]


def test_a_sequence_that_starts_later_has_the_same_energies(component, ask, draw):
    drawn = draw(1, 2, 9, 9, lengths=())
    energy = component("position", "alibi", regime="causal").energy(ask(drawn.query, drawn.source))
    assert torch.equal(energy[..., 3:, 3:], energy[..., :6, :6])


def test_half_precision_counts_distances_in_full(component, ask, draw):
    """bfloat16 has no number for 1027; what it is multiplied with is rounded once, at the end."""
    drawn = draw(1, 1, 1, 1028, lengths=())
    drawn = drawn._replace(query=drawn.query.bfloat16())
    position = component("position", "alibi", heads=8, regime="causal")
    found = position.energy(ask(drawn.query, drawn.source, offset=1027))
    assert found.dtype == torch.bfloat16
    assert found[0, 7, 0, 0].item() == torch.tensor(-1027 / 256).bfloat16().item()


def test_keys_without_content_are_weighed_by_distance_alone(answer, beneath, draw):
    drawn = draw(1, 8, 5, 5, lengths=())
    variant = beneath("alibi", heads=8, regime="causal")
    weights = answer(variant, torch.zeros_like(drawn.query), drawn.source).weights
    ratio = weights[0, :, 4, 3] / weights[0, :, 4, 4]
    wanted = (-slopes(8, ratio)).exp()
    torch.testing.assert_close(ratio, wanted, rtol=0, atol=1e-12)


def test_two_sequences_and_pooling_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="alibi: distances need one sequence"):
            variants.build("alibi", dim=8, heads=2, regime=regime)
