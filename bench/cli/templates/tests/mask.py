import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("window", [1, 3])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, window):
    equals_oracle(f"new_name[window={window}]", regime)


def test_each_query_sees_itself_and_the_key_before(beneath, answer, draw):
    drawn = draw(1, 1, 4, 4, lengths=())
    variant = beneath("new_name[window=2]", heads=1, regime="self")
    seen = answer(variant, drawn.query, drawn.source).weights[0, 0] > 0
    assert seen.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_an_empty_window_and_places_without_one_are_refused():
    with pytest.raises(InvalidConfig, match="window must be at least 1"):
        variants.build("new_name[window=0]", dim=8, heads=2)
    with pytest.raises(Refused, match="a window needs one sequence"):
        variants.build("new_name", dim=8, heads=2, regime="cross")
