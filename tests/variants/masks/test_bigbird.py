import pytest
import torch

import variants
from bench.api.call import Call
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Memory, Source

REST = "near=1,ends=1"


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize(
    "options",
    ["block=1,random=2", "block=2,random=1,seed=5", "block=2,near=0,ends=0,random=1", "random=0"],
)
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"bigbird[{options}]", regime, keys=9)
    equals_oracle(f"bigbird[{options}]", regime, padded=False, keys=9)


def of_blocks(rows, size=2):
    """Keys of each query as the blocks they are of."""
    return [sorted({s // size for s in row}) for row in rows]


def test_a_query_behind_padding_sees_its_own_key():
    """Places count padding, and the number of real keys does not."""
    attention = variants.build("bigbird[block=4,random=0]", dim=8, heads=1, regime="causal")
    mask = attention.variant.mask
    key = torch.randn(1, 1, 13, 8, generator=torch.Generator().manual_seed(0))
    real = torch.arange(13) < 3
    real[12] = True
    call = Call(key[:, :, 12:], Memory(Source(key, key, real[None])), 12, causal=True)
    assert mask.window(call)[0][0, 0, 0].nonzero().flatten().tolist()[-1] == 12


def test_neighbors_and_both_ends_are_always_seen(places):
    rows = places(f"bigbird[block=2,{REST},random=0]", 14, "self")[0][0]
    assert of_blocks(rows)[6] == [0, 2, 3, 4, 6]
    assert of_blocks(rows)[0] == of_blocks(rows)[13] == list(range(7))


def test_the_last_block_is_that_of_the_row_not_of_the_padding(places):
    whole, short = places("bigbird[block=2,near=0,ends=1,random=0]", 12, "self", 1, (12, 7))
    assert of_blocks(whole[0])[4] == [0, 2, 5]
    assert of_blocks(short[0])[4] == [0, 2, 3]


def test_under_causality_only_the_first_block_is_global(places):
    rows = places("bigbird[block=2,near=1,ends=1,random=0]", 14)[0][0]
    assert of_blocks(rows)[13] == [0, 5, 6]


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_so_many_blocks_more_are_drawn_for_each_head_and_block(places, regime):
    plain = places("bigbird[block=2,near=0,ends=0,random=0]", 24, regime, 2)[0]
    drawn = places("bigbird[block=2,near=0,ends=0,random=3]", 24, regime, 2)[0]
    for before, after in zip(plain, drawn, strict=True):
        counts = [
            len(two) - len(one) for one, two in zip(*map(of_blocks, (before, after)), strict=True)
        ]
        assert counts == [min(3, t // 2) if regime == "causal" else 3 for t in range(24)]
        seen = of_blocks(after)
        assert seen[0::2] == seen[1::2], "queries of a block share what they see"
    assert drawn[0] != drawn[1]


def test_a_seed_says_which_blocks_and_another_seed_says_others(places):
    one, again, other = (
        places(f"bigbird[block=1,near=0,ends=0,random=2,seed={seed}]", 20, "self")
        for seed in (0, 0, 1)
    )
    assert one == again != other


def test_blocks_that_were_drawn_do_not_change_as_the_sequence_grows(places):
    short = places("bigbird[block=2,random=1]", 12)[0][0]
    assert places("bigbird[block=2,random=1]", 20)[0][0][:12] == short


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", ["random=3", "near=3,random=0", "ends=2,random=0,near=0"])
def test_it_is_full_attention_where_every_block_is_chosen(equals_full, options, regime):
    if regime == "causal" and options.startswith("ends"):
        options = "ends=3,random=0,near=0"
    equals_full(f"bigbird[block=2,{options}]", 6, regime)


def test_two_sequences_and_blocks_without_keys_are_refused():
    with pytest.raises(Refused, match="distances need one sequence"):
        variants.build("bigbird", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match="block must be at least 1"):
        variants.build("bigbird[block=0]", dim=8, heads=2, regime="causal")
