import math

import pytest
import torch

import variants
from bench.api.call import Call
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Memory, Source

SELECTOR = "cohn_position[score=additive[width=3]]"


def features(component, drawn, selector="cohn_position", offset=0):
    position = component("position", selector)
    memory = {position.branch: position.prepare(drawn.source)}
    call = Call(drawn.query, Memory(drawn.source, memory), offset, causal=False)
    return position.features(call)


def test_features_are_logarithms_of_places_and_of_the_true_length(component, draw):
    drawn = draw(2, 2, 3, 6, lengths=[6, 4])
    found = features(component, drawn)
    assert found.shape == (2, 1, 3, 6, 3)
    for row, length in enumerate((6, 4)):
        for t in range(3):
            for s in range(length):
                expected = [math.log(1 + s), math.log(1 + length), math.log(1 + t)]
                assert found[row, 0, t, s].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_paper_counts_from_one_and_puts_the_query_first(component, draw):
    drawn = draw(1, 1, 2, 3, lengths=())
    found = features(component, drawn, "cohn_position[order=paper,count_from=1]")
    expected = [math.log(3), math.log(2), math.log(4)]  # t = 1, s = 0, S = 3
    assert found[0, 0, 1, 0].tolist() == pytest.approx(expected, abs=1e-12)


def test_places_go_on_counting_when_queries_come_one_by_one(component, draw):
    drawn = draw(1, 1, 5, 3, lengths=())
    whole = features(component, drawn)
    late = drawn._replace(query=drawn.query[:, :, 3:])
    assert torch.equal(features(component, late, offset=3), whole[:, :, 3:])


def test_half_precision_keeps_places_of_long_sources_apart(component, draw):
    drawn = draw(1, 1, 1, 600, lengths=())
    exact = features(component, drawn)
    half = Source(drawn.source.key.bfloat16(), drawn.source.value.bfloat16())
    rounded = features(component, drawn._replace(query=drawn.query.bfloat16(), source=half))
    assert rounded.dtype == torch.bfloat16
    assert ((rounded - exact).abs() <= 2**-8 * exact.abs()).all()


def test_without_the_feature_map_it_is_the_additive_score(answer, beneath, draw):
    drawn = draw()
    biased = beneath(SELECTOR)
    with torch.no_grad():
        biased.score.feature_map.zero_()
    plain = beneath("additive[width=3]")
    kept = {n: p for n, p in biased.score.state_dict().items() if n != "feature_map"}
    plain.score.load_state_dict(kept)
    one, two = (answer(v, drawn.query, drawn.source).weights for v in (biased, plain))
    torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_keys_in_another_order_give_another_answer(answer, beneath, draw):
    drawn = draw(1, 2, 3, 6, lengths=())
    variant = beneath(SELECTOR)
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    turned = Source(drawn.source.key[:, :, order], drawn.source.value[:, :, order])
    plain = answer(variant, drawn.query, drawn.source).output
    assert (answer(variant, drawn.query, turned).output - plain).abs().max() > 1e-3


def test_chunks_of_queries_get_their_own_features(answer, beneath, draw, monkeypatch):
    drawn = draw(2, 2, 7, 5)
    variant = beneath(SELECTOR)
    whole = answer(variant, drawn.query, drawn.source).weights
    monkeypatch.setattr("variants.scores.pair_blocks.BLOCK", 100)
    chunked = answer(variant, drawn.query, drawn.source).weights
    torch.testing.assert_close(chunked, whole, rtol=0, atol=1e-12)


def test_scores_without_features_growing_sources_and_other_numbers_are_refused():
    with pytest.raises(Refused, match="cohn_position needs a score that accepts per-key features"):
        variants.build("dot[position=cohn_position]", dim=8, regime="cross")
    with pytest.raises(Refused, match="which grows under causal self-attention"):
        variants.build("cohn_position", dim=8, regime="causal")
    with pytest.raises(InvalidConfig, match="count_from must be 0 or 1, got 2"):
        variants.build("cohn_position[count_from=2]", dim=8, regime="cross")
