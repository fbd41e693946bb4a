import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", ["window=2,dilation=2", "window=3,dilation=3"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"dilated[{options}]", regime)
    equals_oracle(f"dilated[{options},score=additive[width=3]]", regime, padded=False)


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("padded", [True, False])
def test_windows_that_are_copied_out_equal_the_loops(equals_oracle, always_gather, regime, padded):
    equals_oracle("dilated[window=3,dilation=2]", regime, padded=padded)


def test_a_query_skips_the_keys_between(places):
    rows = places("dilated[window=3,dilation=2]", 7)[0][0]
    assert rows == [[0], [1], [0, 2], [1, 3], [0, 2, 4], [1, 3, 5], [2, 4, 6]]
    assert places("dilated[window=2,dilation=3]", 5, "self")[0][0] == [
        [0, 3],
        [1, 4],
        [2],
        [0, 3],
        [1, 4],
    ]


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_without_gaps_it_is_the_sliding_window(places, regime):
    dilated = places("dilated[window=3,dilation=1]", 9, regime)
    assert dilated == places("sliding_window[window=3]", 9, regime)


def test_work_and_memory_are_linear_where_windows_are_copied_out(growth):
    assert growth("dilated[window=2]") == pytest.approx((1, 1), abs=0.1)


def test_two_sequences_and_gaps_of_zero_are_refused():
    with pytest.raises(Refused, match="distances need one sequence"):
        variants.build("dilated", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match="must be at least 1, got 4 and 0"):
        variants.build("dilated[window=4,dilation=0]", dim=8, heads=2, regime="causal")
