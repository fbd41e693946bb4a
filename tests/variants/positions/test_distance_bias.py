import pytest
import torch

import variants
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from variants.positions.distance_bias import DistanceBiasConfig


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", ["clip=2", "clip=2,sign=false", "clip=0", "clip=10"])
def test_vectorized_code_equals_the_loops(options, regime, equals_oracle):
    equals_oracle(f"dot[position=distance_bias[{options}]]", regime)


@pytest.mark.parametrize("sign", [True, False])
def test_every_distance_up_to_ten_has_its_number_and_beyond_it_all_share_one(
    sign, component, draw, ask
):
    drawn = draw(1, 1, 31, 31, lengths=())
    position = component("position", f"distance_bias[sign={str(sign).lower()}]", heads=1)
    assert position.table.shape == (1, 23 if sign else 12)
    row = position.energy(ask(drawn.query, drawn.source))[0, 0, 15].detach()
    before, after = row[:15].flip(0), row[16:]
    for side in (before, after):
        near, far = side[:10], side[10:]
        assert len(set(near.tolist())) == 10
        assert len(set(far.tolist())) == 1
        assert far[0] not in near
    assert torch.equal(before, after) != sign


def test_at_the_start_it_changes_nothing(beneath, answer, draw):
    drawn = draw(2, 2, 5, 5)
    plain = beneath("dot", regime="self")
    biased = beneath("dot[position=distance_bias]", regime="self", seed=None)
    outputs = [answer(v, drawn.query, drawn.source).output for v in (plain, biased)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_a_large_number_at_distance_one_reads_the_neighbor(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("dot[position=distance_bias[clip=3]]", regime="self", seed=None)
    with torch.no_grad():
        variant.positions[0].table[:, variant.positions[0].far + 1] = 1e4
    weights = answer(variant, drawn.query, drawn.source).weights
    expected = torch.eye(6, dtype=torch.float64)[:-1].expand(1, 2, 5, 6)
    torch.testing.assert_close(weights[:, :, 1:], expected, rtol=0, atol=1e-12)


def test_options_and_places_without_a_meaning_are_refused():
    asked = parse("distance_bias[clip=-1]")
    with pytest.raises(InvalidConfig, match="clip must be at least 0"):
        build_config(DistanceBiasConfig, asked.options, asked.name)
    for regime, reason in (("cross", "two"), ("pool", "is not in it")):
        with pytest.raises(Refused, match=reason):
            variants.build("distance_bias", dim=8, heads=2, regime=regime)
