import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name[slope=0.3]", regime)


def test_energy_falls_by_the_slope_with_each_step(component, ask, draw):
    drawn = draw(1, 1, 4, 4, lengths=())
    position = component("position", "new_name[slope=0.5]", heads=1, regime="self")
    row = position.energy(ask(drawn.query, drawn.source))[0, 0, 1]
    assert row.tolist() == pytest.approx([-0.5, 0.0, -0.5, -1.0])


def test_a_negative_slope_and_places_without_distances_are_refused():
    with pytest.raises(InvalidConfig, match="slope must be above 0"):
        variants.build("new_name[slope=-1.0]", dim=8, heads=2)
    with pytest.raises(Refused, match="distances need one sequence"):
        variants.build("new_name", dim=8, heads=2, regime="cross")
