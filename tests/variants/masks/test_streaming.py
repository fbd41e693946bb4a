import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("options", ["window=2,sinks=1", "window=3,sinks=2", "window=1,sinks=9"])
def test_vectorized_code_equals_the_loops(equals_oracle, options):
    equals_oracle(f"streaming[{options}]", "causal")
    equals_oracle(f"streaming[{options},score=additive[width=3]]", "causal", padded=False)


@pytest.mark.parametrize("options", ["window=2,sinks=1", "window=3,sinks=2", "window=2,sinks=9"])
@pytest.mark.parametrize("padded", [True, False])
def test_windows_that_are_copied_out_equal_the_loops(equals_oracle, always_gather, options, padded):
    equals_oracle(f"streaming[{options}]", "causal", padded=padded)


def test_the_first_keys_stay_visible(places):
    rows = places("streaming[window=2,sinks=2]", 7)[0][0]
    assert rows == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 3, 4], [0, 1, 4, 5], [0, 1, 5, 6]]


def test_without_sinks_it_is_the_sliding_window(places):
    assert places("streaming[window=3,sinks=0]", 9) == places("sliding_window[window=3]", 9)


@pytest.mark.parametrize("options", ["window=6,sinks=1", "window=1,sinks=6", "window=3,sinks=3"])
def test_sinks_and_a_window_that_cover_the_sequence_are_full_attention(equals_full, options):
    equals_full(f"streaming[{options}]", 6)


def test_work_and_memory_are_linear_where_windows_are_copied_out(growth):
    assert growth("streaming[window=2,sinks=1]") == pytest.approx((1, 1), abs=0.1)


def test_what_has_no_past_and_windows_without_keys_are_refused():
    with pytest.raises(Refused, match="all keys are there at once"):
        variants.build("streaming", dim=8, heads=2, regime="self")
    with pytest.raises(InvalidConfig, match="window must be at least 1"):
        variants.build("streaming[window=0]", dim=8, heads=2, regime="causal")
