import pytest
import torch

import variants
from bench.api.errors import Refused


def test_vectorized_code_equals_the_loops(equals_oracle):
    equals_oracle("new_name", "causal")


def test_golden_decay(beneath, answer, golden, beside):
    # a half is kept by each token: q = (1, 0) reads (1, 0) / 2 / 2 + (3, 3), over the root of 2
    variant = beneath("new_name", heads=1, widths=(2, 2, 2), regime="causal")
    with torch.no_grad():
        variant.bias.zero_()
    source = beside(variant, golden.source, decay=0.0)
    query = golden.query.expand(-1, -1, 3, -1)
    found = answer(variant, query, source).output[0, 0, -1]
    assert found.tolist() == pytest.approx([3.25 / 2**0.5, 3 / 2**0.5])


def test_places_without_an_order_are_refused():
    with pytest.raises(Refused, match="in the order of the queries"):
        variants.build("new_name", dim=8, heads=2, regime="cross")
