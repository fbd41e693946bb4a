import pytest

import variants
from bench.api.errors import Refused


@pytest.mark.parametrize("regime", ["cross", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name", regime)


def test_golden_mean(beneath, answer, golden):
    # the values are (1, 0), (0, 2) and (3, 3)
    variant = beneath("new_name", heads=1, widths=(2, 2, 2))
    found = answer(variant, golden.query, golden.source).output.flatten()
    assert found.tolist() == pytest.approx([4 / 3, 5 / 3])


def test_causal_places_are_refused():
    with pytest.raises(Refused, match="there as a whole"):
        variants.build("new_name", dim=8, heads=2, regime="causal")
