import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

NEURAL = "tu_coverage[width=3,score=additive[width=3]]"
LINGUISTIC = "tu_coverage[kind=linguistic,score=additive[width=3]]"


def coverages(variant, drawn):
    """Coverage after every query."""
    memory = variant.prepare(drawn.source)
    rows, heads, length, width = drawn.query.shape
    like = QueryShape(rows, heads, width, torch.float64, drawn.query.device)
    state, found = variant.start(memory, like), []
    for t in range(length):
        state = variant.attend(drawn.query[:, :, t : t + 1], memory, state).state
        found.append(state.carried["history0"]["coverage"])
    return torch.stack(found)


def test_two_coverages_may_be_on_at_once(equals_oracle):
    both = "tu_coverage[kind=linguistic]+tu_coverage[width=2]"
    equals_oracle(f"additive[width=3,history={both}]", queries=3)


def test_without_the_feature_map_it_is_the_additive_score(answer, beneath, draw):
    drawn = draw()
    for selector in (NEURAL, LINGUISTIC):
        covered = beneath(selector)
        with torch.no_grad():
            covered.score.feature_map.zero_()
        plain = beneath("additive[width=3]")
        kept = {n: p for n, p in covered.score.state_dict().items() if n != "feature_map"}
        plain.score.load_state_dict(kept)
        torch.testing.assert_close(
            answer(covered, drawn.query, drawn.source).weights,
            answer(plain, drawn.query, drawn.source).weights,
            rtol=0,
            atol=1e-12,
        )


def test_linguistic_coverage_is_the_sum_of_weights_over_fertility(answer, beneath, draw):
    drawn = draw(2, 2, 5, 6, lengths=())
    variant = beneath(LINGUISTIC)
    weights = answer(variant, drawn.query, drawn.source).weights
    history = variant.histories[0]
    logit = torch.einsum("bhse,hew->bhsw", drawn.source.key, history.key_map) + history.bias
    fertility = 2 * torch.sigmoid(logit)[..., 0] + 1e-8
    expected = weights.cumsum(2) / fertility[:, :, None]
    found = coverages(variant, drawn)[..., 0].movedim(0, 2)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_linguistic_coverage_grows_and_stays_below_steps_over_fertility(beneath, draw):
    drawn = draw(2, 2, 6, 5)
    variant = beneath(LINGUISTIC)
    found = coverages(variant, drawn)
    assert (found.diff(dim=0) >= 0).all()
    assert found[-1].abs().max() > 0
    logit = torch.einsum("bhse,hew->bhsw", drawn.source.key, variant.histories[0].key_map)
    fertility = 2 * torch.sigmoid(logit + variant.histories[0].bias)
    assert (found[-1] <= 6 / fertility).all()


def test_a_larger_fertility_means_less_coverage(beneath, draw):
    drawn = draw(2, 2, 1, 5)
    two = coverages(beneath(LINGUISTIC), drawn)
    four = coverages(beneath(LINGUISTIC.replace("[kind", "[max_fertility=4.0,kind")), drawn)
    torch.testing.assert_close(two, 2 * four, rtol=1e-6, atol=1e-12)


def test_neural_coverage_is_the_gated_unit_of_torch(answer, beneath, draw):
    """With one head it is `GRUCell` on [weight; key; query]."""
    drawn = draw(1, 1, 4, 5, lengths=())
    variant = beneath(NEURAL, heads=1)
    history = variant.histories[0]
    cell = torch.nn.GRUCell(1 + 5 + 5, 3, dtype=torch.float64)
    maps = (history.weight_map[0], history.key_map[0], history.query_map[0])
    with torch.no_grad():
        cell.weight_ih.copy_(torch.cat(maps).T)
        cell.weight_hh.copy_(history.state_map[0].T)
        cell.bias_ih.copy_(history.bias[0, 0])
        cell.bias_hh.zero_()
    weights = answer(variant, drawn.query, drawn.source).weights[0, 0]
    state = torch.zeros(5, 3, dtype=torch.float64)
    for t, found in enumerate(coverages(variant, drawn)[:, 0, 0]):
        query = drawn.query[0, 0, t].expand(5, -1)
        state = cell(torch.cat((weights[t][:, None], drawn.source.key[0, 0], query), 1), state)
        torch.testing.assert_close(found, state, rtol=0, atol=1e-12)


def test_earlier_weights_change_later_ones_and_not_the_first(answer, beneath, draw):
    drawn = draw(1, 2, 3, 5)
    variant = beneath(NEURAL)
    before = answer(variant, drawn.query, drawn.source).weights
    changed = drawn._replace(query=drawn.query.clone())
    changed.query[:, :, 0] += 2
    after = answer(variant, changed.query, changed.source).weights
    assert (before[:, :, 2] - after[:, :, 2]).abs().max() > 1e-4
    changed.query[:, :, 0] = drawn.query[:, :, 0]
    changed.query[:, :, 2] += 2
    assert torch.equal(
        answer(variant, changed.query, changed.source).weights[:, :, :2], before[:, :, :2]
    )


def test_a_padded_key_of_any_size_gets_no_gradient(answer, beneath, draw):
    """Its fertility may underflow to zero, and zero over zero would spoil the whole row."""
    drawn = draw(1, 2, 3, 5, lengths=[3])
    key = drawn.source.key.clone()
    key[:, :, 3], key[:, :, 4] = 1e4, -1e4
    for selector in (NEURAL, LINGUISTIC):
        key.requires_grad_().grad = None
        source = Source(key, drawn.source.value, drawn.source.mask)
        answer(beneath(selector), drawn.query, source).output.sum().backward()
        assert key.grad[:, :, :3].abs().sum() > 0
        assert not key.grad[:, :, 3:].any()


def test_scores_without_features_and_other_regimes_are_refused():
    with pytest.raises(Refused, match="tu_coverage needs a score that accepts per-key features"):
        variants.build("dot[history=tu_coverage]", dim=8, heads=2, regime="cross")
    for regime in ("causal", "self"):
        with pytest.raises(Refused, match="all keys before the first query"):
            variants.build("tu_coverage", dim=8, heads=2, regime=regime)
    with pytest.raises(Refused, match="pooling has one query"):
        variants.build("tu_coverage", dim=8, heads=2, regime="pool")
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        variants.build("tu_coverage[width=0]", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match=r"max_fertility must be positive, got 0\.0"):
        variants.build("tu_coverage[max_fertility=0.0]", dim=8, heads=2, regime="cross")
