import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

NEAR = {"rtol": 0, "atol": 1e-12}


def build(options="", dim=8):
    slot = variants.build(f"canon[heads=2{options}]", dim=dim, regime="causal")
    return slot.double().eval()


def answer(slot, x, split=None):
    state, found = slot.start(None, x), []
    for part in x.split(split or [x.shape[1]], 1):
        output, attended = slot.attend(part, None, state, own=(part, None, None))
        state = attended.state
        found.append(output)
    return torch.cat(found, 1)


def draw(length=9, dim=8):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(2, length, dim, generator=rng, dtype=torch.float64)


def test_golden_sums_of_three_states():
    """w = (1/2, 1/4) for the state itself and the one before: 1.5 * 1, 1.5 * 2 + 0.25 * 1, ..."""
    slot = build(",kernel=2,at=a", dim=2)
    with torch.no_grad():
        slot.heads.before.copy_(torch.tensor([[0.25, 0.5], [0.0, 0.0]]))
        slot.heads.to_query.weight.copy_(torch.eye(2))
    x = torch.tensor([[[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]]], dtype=torch.float64)
    query, _, _ = slot.heads.own(x, None, None, slot.start(None, x).heads)
    assert query[0, 0, :, 0].tolist() == [1.5, 3.25, 6.5]
    assert query[0, 1, :, 0].tolist() == [7.0, 7.0, 7.0]


@pytest.mark.parametrize("at", ["a", "b", "ab"])
def test_without_weights_it_is_multi_head_attention(at):
    slot = build(f",at={at}")
    plain = variants.build("mha[heads=2]", dim=8, regime="causal").double()
    with torch.no_grad():
        for place, taps in (("a", slot.heads.before), ("b", slot.heads.behind)):
            assert (taps is not None) == (place in at)
            if taps is not None:
                taps.zero_()
        for name in ("to_query", "to_key", "to_value", "to_output"):
            getattr(plain.heads, name).weight.copy_(getattr(slot.heads, name).weight)
            if getattr(plain.heads, name).bias is not None:
                getattr(plain.heads, name).bias.zero_()
    x = draw()
    torch.testing.assert_close(answer(slot, x), answer(plain, x), **NEAR)


@pytest.mark.parametrize("at", ["a", "b", "ab"])
@pytest.mark.parametrize("kernel", [1, 2, 4])
def test_calls_of_any_length_continue_the_sums(at, kernel):
    slot, x = build(f",at={at},kernel={kernel}"), draw()
    whole = answer(slot, x)
    for split in ([1] * 9, [4, 1, 4], [2, 7]):
        torch.testing.assert_close(answer(slot, x, split), whole, **NEAR)


@pytest.mark.parametrize("at", ["a", "b", "ab"])
def test_a_cache_holds_no_queries_of_the_prompt(at):
    """Keys that are views of all that was made keep the memory of its queries, too."""
    slot, x = build(f",at={at}"), draw()
    with torch.no_grad():
        _, attended = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    source = attended.state.cache.source
    for kept in (source.key, source.value):
        assert kept.untyped_storage().nbytes() == kept.nbytes


@pytest.mark.parametrize(("at", "reach"), [("a", 4), ("b", 4), ("ab", 7)])
def test_a_query_sees_no_more_states_than_its_sums_have(at, reach):
    slot = build(f",at={at}")
    x = draw(12).requires_grad_()
    query, _, _ = slot.heads.own(x, None, None, slot.start(None, x).heads)
    (grad,) = torch.autograd.grad(query[:, :, 10].sum(), x)
    seen = grad.abs().sum((0, 2)) > 0
    assert seen.tolist() == [10 - reach < t <= 10 for t in range(12)]


def test_sizes_and_places_without_a_meaning_are_refused():
    with pytest.raises(InvalidConfig, match="canon: heads must divide the model width 8"):
        variants.build("canon[heads=3]", dim=8, regime="causal")
    for regime in ("cross", "self", "pool"):
        with pytest.raises(Refused, match="canon: its sums run over the states before"):
            variants.build("canon", dim=8, regime=regime)
