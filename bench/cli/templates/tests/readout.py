import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name[scale=0.5]", regime)


def test_golden_context(read, golden):
    # the values are (1, 0), (0, 2) and (3, 3)
    weights = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64).view(1, 1, 1, 3)
    found = read("new_name[scale=2.0]", weights, golden.source).flatten()
    assert found.tolist() == pytest.approx([2.5, 2.5])


def test_a_scale_that_is_not_positive_is_refused():
    with pytest.raises(InvalidConfig, match="scale must be positive"):
        variants.build("new_name[scale=0.0]", dim=8, heads=2)
