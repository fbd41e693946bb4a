import pytest

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, block):
    equals_oracle(f"block_local[block={block}]", regime)
    equals_oracle(f"block_local[block={block},score=additive[width=3]]", regime, padded=False)


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("padded", [True, False])
def test_windows_that_are_copied_out_equal_the_loops(equals_oracle, always_gather, regime, padded):
    equals_oracle("block_local[block=3]", regime, padded=padded)


def test_a_query_sees_its_own_block_alone(places):
    assert places("block_local[block=3]", 5)[0][0] == [[0], [0, 1], [0, 1, 2], [3], [3, 4]]
    rows = places("block_local[block=3]", 5, "self")[0][0]
    assert rows == [[0, 1, 2]] * 3 + [[3, 4]] * 2


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_a_block_as_long_as_the_sequence_is_full_attention(equals_full, regime):
    equals_full("block_local[block=6]", 6, regime)


def test_it_is_the_near_half_of_the_fixed_pattern(places):
    fixed = places("strided[stride=4,pattern=fixed]", 11, heads=2)[0][0]
    assert places("block_local[block=4]", 11)[0][0] == fixed


def test_it_is_bigbird_without_neighbors_ends_and_random_blocks(places):
    plain = places("bigbird[block=3,near=0,ends=0,random=0]", 10, "self")
    assert places("block_local[block=3]", 10, "self") == plain


def test_work_and_memory_are_linear_where_windows_are_copied_out(growth):
    assert growth("block_local[block=2]") == pytest.approx((1, 1), abs=0.1)


def test_two_sequences_and_blocks_without_keys_are_refused():
    with pytest.raises(Refused, match="distances need one sequence"):
        variants.build("block_local", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match="block must be at least 1, got 0"):
        variants.build("block_local[block=0]", dim=8, heads=2, regime="causal")
