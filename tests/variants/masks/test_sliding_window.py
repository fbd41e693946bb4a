import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, window):
    equals_oracle(f"sliding_window[window={window}]", regime)
    equals_oracle(f"sliding_window[window={window},score=additive[width=3]]", regime, padded=False)


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("padded", [True, False])
def test_windows_that_are_copied_out_equal_the_loops(equals_oracle, always_gather, regime, padded):
    equals_oracle("sliding_window[window=2]", regime, padded=padded)
    equals_oracle("sliding_window[window=3,score=additive[width=3]]", regime, padded=padded)


def test_a_query_sees_the_last_keys_up_to_its_own(places):
    rows = places("sliding_window[window=3]", 6)[0][0]
    assert rows == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]


def test_without_causality_the_window_reaches_as_far_to_both_sides(places):
    rows = places("sliding_window[window=2]", 5, "self")[0][0]
    assert rows == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4]]


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_a_window_as_long_as_the_sequence_is_full_attention(equals_full, regime):
    equals_full("sliding_window[window=6]", 6, regime)


def test_a_window_of_one_returns_the_value_itself(beneath, answer, draw):
    drawn = draw(queries=6, keys=6, lengths=())
    found = answer(
        beneath("sliding_window[window=1]", regime="causal"), drawn.query, drawn.source
    ).output
    torch.testing.assert_close(found, drawn.source.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("window", "layers"), [(2, 1), (3, 2), (3, 3), (4, 2)])
def test_layers_reach_as_far_as_their_windows_together(beneath, answer, draw, window, layers):
    """n layers of window w see n (w - 1) + 1 places."""
    length = 14
    variant = beneath(f"sliding_window[window={window}]", widths=(5, 5, 5), regime="causal")
    drawn = draw(1, 2, length, length, widths=(5, 5, 5), lengths=())
    start = drawn.source.value.clone().requires_grad_()
    x = start
    for _ in range(layers):
        source = type(drawn.source)(drawn.source.key, x)
        x = answer(variant, drawn.query, source).output
    (gradient,) = torch.autograd.grad(x[:, :, -1].sum(), start)
    reached = gradient.abs().amax((0, 1, 3)).nonzero().flatten().tolist()
    assert reached == list(range(length - layers * (window - 1) - 1, length))


def test_work_and_memory_are_linear_where_windows_are_copied_out(growth):
    assert growth("sliding_window[window=2]") == pytest.approx((1, 1), abs=0.1)
    assert growth("sliding_window[window=2]", "eager") == pytest.approx((2, 2), abs=0.2)


def test_two_sequences_a_single_query_and_empty_windows_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="distances need one sequence"):
            variants.build("sliding_window", dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="window must be at least 1, got 0"):
        variants.build("sliding_window[window=0]", dim=8, heads=2, regime="causal")
