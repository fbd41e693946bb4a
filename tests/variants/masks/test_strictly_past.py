import pytest
import torch

import variants
from bench.api.errors import Refused


def test_vectorized_code_equals_the_loops(equals_oracle):
    equals_oracle("scaled_dot[mask=strictly_past]", "causal")
    equals_oracle("additive[width=3,mask=strictly_past]", "causal", padded=False)


def test_a_query_sees_every_key_before_it_and_not_its_own(places):
    rows = places("scaled_dot[mask=strictly_past]", 4)[0][0]
    assert rows == [[], [0], [0, 1], [0, 1, 2]]


def test_the_first_query_reads_zero(beneath, answer, draw):
    drawn = draw(queries=4, keys=4, lengths=())
    variant = beneath("scaled_dot[mask=strictly_past]", regime="causal")
    output = answer(variant, drawn.query, drawn.source).output
    assert not output[:, :, 0].any()
    first = drawn.source.value[:, :, 0]
    torch.testing.assert_close(output[:, :, 1], first, rtol=0, atol=1e-12)


@pytest.mark.parametrize("regime", ["cross", "self", "pool"])
def test_what_has_no_past_is_refused(regime):
    with pytest.raises(Refused, match="strictly_past"):
        variants.build("scaled_dot[mask=strictly_past]", dim=8, heads=2, regime=regime)
