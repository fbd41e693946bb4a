from dataclasses import replace

import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.conformance.question import cut


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("options", ["queries=2,keys=3", "queries=3,keys=4", "queries=1,keys=1"])
def test_vectorized_code_equals_the_loops(equals_oracle, options, padded):
    equals_oracle(f"multi_token[{options}]", "causal", padded=padded)


def test_it_starts_as_multi_head_attention(beneath, answer, draw):
    drawn = draw(queries=7, keys=7)
    found, wanted = (
        answer(beneath(name, regime="causal", seed=None), drawn.query, drawn.source)
        for name in ("multi_token", "scaled_dot")
    )
    for one, other in ((found.output, wanted.output), (found.weights, wanted.weights)):
        # queries that are padding have no energies
        mine, plain = (x.transpose(1, 2)[drawn.source.mask] for x in (one, other))
        torch.testing.assert_close(mine, plain, rtol=0, atol=1e-12)


def only(variant, back, tap):
    """A kernel with a single one."""
    with torch.no_grad():
        variant.kernel.zero_()
        variant.kernel[:, variant.queries - 1 - back, tap] = 1.0
    return variant


def test_a_kernel_of_the_query_before_asks_what_that_query_asked(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = only(beneath("multi_token[queries=2,keys=3]", regime="causal"), 1, 1)
    found = answer(variant, drawn.query, drawn.source).weights
    energy = drawn.query @ drawn.source.key.mT / 5**0.5
    for t in range(1, 6):
        before = energy[0, :, t - 1, : t + 1].clone()
        before[:, t] = 0  # its own future, which counts as zero
        torch.testing.assert_close(
            found[0, :, t, : t + 1], torch.softmax(before, -1), rtol=0, atol=1e-12
        )
    assert found[0, :, 0, 0].tolist() == [1, 1]


def test_a_kernel_of_the_query_before_asks_nothing_where_that_query_is_padding(
    beneath, answer, draw
):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = only(beneath("multi_token[queries=2,keys=3]", regime="causal"), 1, 1)
    mask = torch.tensor([[True, True, True, True, False, True]])
    state = variant.start(None, QueryShape(1, 2, 5, torch.float64, drawn.query.device))
    for some in (slice(0, 4), slice(4, 5), slice(5, 6)):  # what is carried is padding, too
        new = cut(drawn.source, keys=some)
        new = replace(new, mask=mask[:, some])
        found = variant.attend(drawn.query[:, :, some], None, state, new=new)
        state = found.state
    wanted = (mask.double() / mask.sum()).expand(2, 6)
    torch.testing.assert_close(found.weights[0, :, 0], wanted, rtol=0, atol=1e-12)


def test_a_kernel_of_the_key_before_moves_energies_on_by_one_key(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = only(beneath("multi_token[queries=2,keys=3]", regime="causal"), 0, 0)
    found = answer(variant, drawn.query, drawn.source).weights[0, :, 5]
    energy = (drawn.query @ drawn.source.key.mT / 5**0.5)[0, :, 5]
    moved = torch.cat((torch.zeros(2, 1, dtype=torch.float64), energy[:, :-1]), -1)
    torch.testing.assert_close(found, torch.softmax(moved, -1), rtol=0, atol=1e-12)


def test_a_kernel_of_the_next_key_sees_no_future(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = only(beneath("multi_token[queries=2,keys=3]", regime="causal"), 0, 2)
    found = answer(variant, drawn.query, drawn.source).weights[0, :, 3, :4]
    energy = (drawn.query @ drawn.source.key.mT / 5**0.5)[0, :, 3]
    moved = torch.cat((energy[:, 1:4], torch.zeros(2, 1, dtype=torch.float64)), -1)
    torch.testing.assert_close(found, torch.softmax(moved, -1), rtol=0, atol=1e-12)


def test_the_state_keeps_the_last_queries_and_does_not_grow(beneath, answer, draw):
    variant = beneath("multi_token[queries=4,keys=3]", regime="causal")
    for length in (2, 9):
        drawn = draw(2, 2, length, length, lengths=())
        kept = answer(variant, drawn.query, drawn.source).state.carried["queries"]
        assert kept.shape == (2, 2, 3, 5)
        assert torch.equal(kept[:, :, -2:], drawn.query[:, :, -2:])


def test_what_has_no_past_and_empty_kernels_are_refused():
    for regime in ("cross", "self", "pool"):
        with pytest.raises(Refused, match="multi_token"):
            variants.build("multi_token", dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="must be at least 1, got 0 and 11"):
        variants.build("multi_token[queries=0]", dim=8, heads=2, regime="causal")
