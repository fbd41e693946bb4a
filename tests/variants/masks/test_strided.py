import pytest

import variants
from bench.api.errors import InvalidConfig, Refused

PATTERNS = ("pattern=strided", "pattern=fixed", "pattern=fixed,summary=2")


@pytest.mark.parametrize("heads", ["split", "merged"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_vectorized_code_equals_the_loops(equals_oracle, pattern, heads):
    for stride in (2, 3):
        equals_oracle(f"strided[stride={stride},{pattern},heads={heads}]", "causal")
    equals_oracle(f"strided[stride=2,{pattern},heads={heads}]", "causal", padded=False)


def test_even_heads_see_what_is_near_and_odd_heads_one_key_of_every_stride(places):
    near, far = places("strided[stride=3]", 8, heads=2)[0]
    assert near[7] == [4, 5, 6, 7]
    assert far[7] == [1, 4, 7]
    assert near[1] == [0, 1]
    assert far[2] == [2]


def test_under_the_fixed_pattern_each_block_has_its_summary(places):
    near, far = places("strided[stride=3,pattern=fixed,summary=1]", 8, heads=2)[0]
    assert near[7] == [6, 7]
    assert far[7] == [2, 5]
    assert far[1] == []
    assert far[5] == [2, 5]


def test_merged_heads_see_both(places):
    split = places("strided[stride=3]", 10, heads=2)[0]
    merged = places("strided[stride=3,heads=merged]", 10)[0][0]
    assert merged == [sorted({*one, *two}) for one, two in zip(*split, strict=True)]


@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_two_steps_lead_to_every_earlier_key(places, stride, pattern):
    """What one head passes on, the other one carries the rest of the way."""
    near, far = places(f"strided[stride={stride},{pattern}]", 16, heads=2)[0]
    # a fixed summary speaks of whole blocks, and the query's own block is read directly
    for i in range(16):
        reached = {j for middle in far[i] for j in near[middle]} | set(near[i])
        if pattern == "pattern=strided":
            reached |= {j for middle in near[i] for j in far[middle]}
        assert reached == set(range(i + 1)), i


@pytest.mark.parametrize("pattern", ["strided", "fixed"])
def test_a_stride_of_one_is_full_attention(equals_full, pattern):
    equals_full(f"strided[stride=1,pattern={pattern},heads=merged]", 6)


def test_one_head_cannot_be_split_and_no_block_is_all_summary():
    with pytest.raises(Refused, match="needs two heads or more"):
        variants.build("strided", dim=8, heads=1, regime="causal")
    with pytest.raises(Refused, match="all keys are there at once"):
        variants.build("strided", dim=8, heads=2, regime="self")
    with pytest.raises(InvalidConfig, match="summary between 1 and stride, got 2 and 3"):
        variants.build("strided[stride=2,summary=3]", dim=8, heads=2, regime="causal")
