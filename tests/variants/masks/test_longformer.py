import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize(
    "options", ["window=2", "window=2,dilation=2,global_tokens=2", "window=1,global_tokens=3"]
)
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"longformer[{options}]", regime)
    equals_oracle(f"longformer[{options}]", regime, padded=False)


def test_global_tokens_see_all_and_are_seen_by_all(places):
    rows = places("longformer[window=2,global_tokens=1]", 5, "self")[0][0]
    assert rows == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1, 2, 3], [0, 2, 3, 4], [0, 3, 4]]


def test_under_causality_a_global_token_sees_its_past_alone(places):
    rows = places("longformer[window=1,global_tokens=2]", 5)[0][0]
    assert rows == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 4]]


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_without_global_tokens_it_is_the_dilated_window(places, regime):
    found = places("longformer[window=2,dilation=3,global_tokens=0]", 9, regime)
    assert found == places("dilated[window=2,dilation=3]", 9, regime)


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_it_is_full_attention_where_every_token_is_global_or_within_the_window(equals_full, regime):
    equals_full("longformer[window=6]", 6, regime)
    equals_full("longformer[window=1,global_tokens=6]", 6, regime)


def test_two_sequences_and_windows_without_keys_are_refused():
    with pytest.raises(Refused, match="distances need one sequence"):
        variants.build("longformer", dim=8, heads=2, regime="pool")
    with pytest.raises(InvalidConfig, match="at least 0, got 16, 1 and -1"):
        variants.build("longformer[global_tokens=-1]", dim=8, heads=2, regime="causal")
