"""What mechanisms with a matrix of memory have in common."""

from dataclasses import replace

import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import Refused
from bench.api.source import Source
from bench.conformance.question import cut

NAMES = (
    "retnet",
    "deltanet",
    "gated_deltanet",
    "mamba2_ssd",
    "gla",
    "kda",
    "gated_deltaproduct",
    "gated_deltaproduct[products=3]",
    "hgrn2",
    "gdn2",
    "rwkv7",
    "mesa",
    "titans",
    "gsa",
    "log_linear",
    "log_linear[levels=4]",
)
WITHOUT_PLACES = [name for name in NAMES if name != "retnet" and "log_linear" not in name]
"""Those for which only the order of tokens matters; a place is taken by padding, too."""


def walk(variant, query, source, split):
    rows, heads, _, width = query.shape
    state = variant.start(None, QueryShape(rows, heads, width, query.dtype, query.device))
    rng = torch.Generator().manual_seed(11)
    beside = {
        name: torch.randn(rows, query.shape[2], heads, one.width, generator=rng, dtype=query.dtype)
        for name, one in variant.query_inputs.items()
    }
    at, found = 0, []
    for count in split:
        some = slice(at, at + count)
        extras = {name: one[:, some] for name, one in beside.items()}
        new = cut(source, keys=some)
        attended = variant.attend(query[:, :, some], None, state, new=new, extras=extras)
        state, at = attended.state, at + count
        found.append(attended.output)
    return torch.cat(found, 2), state


@pytest.mark.parametrize("name", NAMES)
def test_random_splits_of_random_lengths_give_the_same_output_and_state(
    beneath, draw, beside, name
):
    rng = torch.Generator().manual_seed(7)
    variant = beneath(name, regime="causal")
    for seed in range(4):
        length = int(torch.randint(3, 140, (), generator=rng))
        first = int(torch.randint(1, length - 1, (), generator=rng))
        drawn = draw(2, 2, length, length, seed=seed, lengths=[length, max(1, length - 9)])
        source = beside(variant, drawn.source, seed)
        whole, state = walk(variant, drawn.query, source, [length])
        parts, other = walk(variant, drawn.query, source, [first, 1, length - first - 1])
        torch.testing.assert_close(parts, whole, rtol=0, atol=1e-10)
        for branch, leaf in state.carried.items():
            torch.testing.assert_close(other.carried[branch], leaf, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [*WITHOUT_PLACES, "retnet[rotation=false]"])
def test_a_padded_token_leaves_the_state_as_it_is(beneath, draw, beside, name):
    drawn = draw(2, 2, 6, 6)
    variant = beneath(name, regime="causal")
    source = beside(variant, drawn.source)
    source.mask[:] = torch.tensor([True, True, False, True, True, True])
    _, state = walk(variant, drawn.query, source, [6])
    left = [0, 1, 3, 4, 5]
    extras = {name: leaf[:, :, left] for name, leaf in source.extras.items()}
    alone = Source(source.key[:, :, left], source.value[:, :, left], extras=extras)
    _, expected = walk(variant, drawn.query[:, :, left], alone, [5])
    for branch, leaf in expected.carried.items():
        torch.testing.assert_close(state.carried[branch], leaf)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_does_not_grow_and_stays_in_float32(name):
    slot = variants.build(name, dim=8, heads=2, regime="causal").bfloat16()
    shapes = []
    for length in (1, 40):
        x = torch.randn(1, length, 8, dtype=torch.bfloat16)
        output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
        assert output.dtype == torch.bfloat16
        assert found.state.cache is None
        shapes.append({name: leaf.shape for name, leaf in found.state.carried.items()})
        assert {leaf.dtype for leaf in found.state.carried.values()} == {torch.float32}
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", [*NAMES, "ttt"])
def test_sums_are_exact_where_networks_are_trained_in_half_precision(beneath, draw, beside, name):
    """Autocast takes products of float32 in bfloat16, and what they add up to drifts."""
    drawn = draw(2, 2, 90, 90, (5, 5, 5), lengths=())
    variant = beneath(name, widths=(5, 5, 5), regime="causal").float()
    source = beside(variant, drawn.source)
    extras = {name: leaf.float() for name, leaf in source.extras.items()}
    source = Source(source.key.float(), source.value.float(), extras=extras)
    wanted, state = walk(variant, drawn.query.float(), source, [60, 30])
    with torch.autocast("cpu", torch.bfloat16):
        found, other = walk(variant, drawn.query.float(), source, [60, 30])
    torch.testing.assert_close(found, wanted)
    for branch, leaf in state.carried.items():
        torch.testing.assert_close(other.carried[branch], leaf)


@pytest.mark.parametrize("name", NAMES)
def test_other_regimes_and_implementations_are_refused(name):
    with pytest.raises(Refused, match="written in the order of the queries"):
        variants.build(name, dim=8, heads=2, regime="cross")
    with pytest.raises(
        Refused, match=f"{name.partition('[')[0]} has no impl=sdpa; use auto or eager"
    ):
        variants.build(name, dim=8, heads=2, regime="causal", impl="sdpa")


def test_loops_read_an_input_that_all_heads_share_from_its_one_head(beneath, draw, answer):
    drawn = draw(1, 2, 5, 5, lengths=())
    variant = beneath("gla", regime="causal")
    wanted = variant.key_inputs["decay"]
    variant.key_inputs = {"decay": wanted._replace(shared=True)}
    decay = draw(1, 1, 5, 5, (wanted.width,) * 3, seed=1, lengths=()).query
    source = replace(drawn.source, extras={"decay": decay})
    found = answer(variant, drawn.query, source).output
    expected, _ = variant.oracle(drawn.query[0], source, "expected")
    torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-10)
