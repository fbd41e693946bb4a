import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name[width=3]", regime, heads=None)


def test_with_identity_projections_it_is_scaled_dot_product_attention():
    slot = variants.build("new_name[width=6]", dim=6, regime="self").double()
    with torch.no_grad():
        for parameter in slot.heads.parameters():
            parameter.copy_(torch.eye(6))
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))[0]
    expected = torch.softmax(x @ x.mT / 6**0.5, -1) @ x
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_width_of_zero_is_refused():
    with pytest.raises(InvalidConfig, match="width must be at least 1"):
        variants.build("new_name[width=0]", dim=8)
