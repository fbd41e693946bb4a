import pytest

import variants
from bench.api.errors import InvalidConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name[sharpness=3.0]", regime)


def test_golden_weights(row):
    # exp(2) : exp(0), and nothing for a key that is not allowed
    found = row("new_name[sharpness=2.0]", [1.0, 0.0, 5.0], [True, True, False])
    assert found == pytest.approx([0.880797, 0.119203, 0.0], abs=1e-6)


def test_a_sharpness_that_is_not_positive_is_refused():
    with pytest.raises(InvalidConfig, match="sharpness must be positive"):
        variants.build("new_name[sharpness=0.0]", dim=8, heads=2)
