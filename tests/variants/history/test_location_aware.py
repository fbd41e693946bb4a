import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused

SMALL = "location_aware[filters=2,width=3,score=additive[width=3]]"


def test_another_normalizer_equals_the_loops(equals_oracle):
    equals_oracle(f"{SMALL[:-1]},normalizer=sharpened[sharpness=3.0]]")


def test_it_may_stand_beside_coverage(equals_oracle):
    both = "location_aware[filters=2,width=3]+tu_coverage[kind=linguistic]"
    equals_oracle(f"additive[width=3,history={both}]", queries=3)


def steps(variant, drawn, ask):
    """Features before every query."""
    memory = variant.prepare(drawn.source)
    rows, heads, length, width = drawn.query.shape
    like = QueryShape(rows, heads, width, torch.float64, drawn.query.device)
    state, found, weights = variant.start(memory, like), [], []
    for t in range(length):
        call = ask(drawn.query[:, :, t : t + 1], drawn.source)
        carried = state.carried["history0"]
        found.append(variant.histories[0].features(call, carried)[:, :, 0])
        answered = variant.attend(drawn.query[:, :, t : t + 1], memory, state)
        state = answered.state
        weights.append(answered.weights[:, :, 0])
    return found, weights


def test_features_are_the_convolved_weights_of_the_step_before(beneath, draw, ask):
    drawn = draw(2, 2, 4, 6, lengths=())
    variant = beneath(SMALL)
    found, weights = steps(variant, drawn, ask)
    assert not found[0].any(), "nothing has been attended to before the first query"
    filters = variant.histories[0].filters
    for t in range(1, 4):
        for head in range(2):
            expected = torch.nn.functional.conv1d(
                weights[t - 1][:, head, None], filters[head, :, None], padding=1
            )
            torch.testing.assert_close(found[t][:, head], expected.mT, rtol=0, atol=1e-12)


def test_a_filter_that_looks_left_moves_the_weights_to_the_right(beneath, draw, ask):
    drawn = draw(1, 1, 2, 6, lengths=())
    variant = beneath(SMALL.replace("filters=2", "filters=1"), heads=1)
    with torch.no_grad():
        variant.histories[0].filters.copy_(torch.tensor([[[1.0, 0.0, 0.0]]]))
    found, weights = steps(variant, drawn, ask)
    torch.testing.assert_close(found[1][0, 0, 1:, 0], weights[0][0, 0, :-1], rtol=0, atol=0)
    assert found[1][0, 0, 0, 0] == 0


def test_without_the_feature_map_it_is_the_additive_score(answer, beneath, draw):
    drawn = draw()
    aware, plain = beneath(SMALL), beneath("additive[width=3]")
    with torch.no_grad():
        aware.score.feature_map.zero_()
    kept = {n: p for n, p in aware.score.state_dict().items() if n != "feature_map"}
    plain.score.load_state_dict(kept)
    torch.testing.assert_close(
        answer(aware, drawn.query, drawn.source).weights,
        answer(plain, drawn.query, drawn.source).weights,
        rtol=0,
        atol=1e-12,
    )


def test_the_first_step_is_additive_and_later_ones_are_not(answer, beneath, draw):
    drawn = draw()
    aware, plain = beneath(SMALL), beneath("additive[width=3]")
    kept = {n: p for n, p in aware.score.state_dict().items() if n != "feature_map"}
    plain.score.load_state_dict(kept)
    one = answer(aware, drawn.query, drawn.source).weights
    two = answer(plain, drawn.query, drawn.source).weights
    torch.testing.assert_close(one[:, :, 0], two[:, :, 0], rtol=0, atol=1e-12)
    assert (one[:, :, 1] - two[:, :, 1]).abs().max() > 1e-4


def test_it_can_learn_to_walk_from_key_to_key(answer, beneath, draw):
    """Content that says nothing, a filter that looks left: each step attends one key further on."""
    drawn = draw(1, 1, 5, 6, lengths=())
    variant = beneath("location_aware[filters=1,width=3,score=additive[width=1]]", heads=1)
    with torch.no_grad():
        for parameter in variant.score.parameters():
            parameter.zero_()
        variant.score.v.fill_(40.0)
        variant.score.feature_map.fill_(5.0)
        variant.histories[0].filters.copy_(torch.tensor([[[1.0, 0.0, 0.0]]]))
        # the first query alone prefers the first key
        drawn.source.key.zero_()
        drawn.source.key[:, :, 0, 0] = 1.0
        variant.score.key_map[0, 0, 0] = 0.2
    weights = answer(variant, drawn.query, drawn.source).weights[0, 0]
    assert weights.argmax(-1).tolist() == [0, 1, 2, 3, 4]
    assert weights.max(-1).values.min() > 0.99


def test_scores_without_features_other_regimes_and_even_widths_are_refused():
    with pytest.raises(Refused, match="location_aware needs a score that accepts per-key features"):
        variants.build("dot[history=location_aware]", dim=8, heads=2, regime="cross")
    for regime in ("causal", "self"):
        with pytest.raises(Refused, match="all there before the first query"):
            variants.build("location_aware", dim=8, heads=2, regime=regime)
    with pytest.raises(Refused, match="pooling has one query"):
        variants.build("location_aware", dim=8, heads=2, regime="pool")
    for options in ("width=4", "width=0", "filters=0"):
        with pytest.raises(InvalidConfig, match="positive odd number"):
            variants.build(f"location_aware[{options}]", dim=8, heads=2, regime="cross")
