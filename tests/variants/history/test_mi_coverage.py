import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

GRU = "mi_coverage[width=4,score=additive[width=3]]"
SUBTRACT = "mi_coverage[update=subtract,width=4,score=additive[width=3]]"
BOTH = (GRU, SUBTRACT)
WORD = 3


def words_for(drawn, seed=7):
    rng = torch.Generator().manual_seed(seed)
    rows, _, length, _ = drawn.query.shape
    return torch.randn(rows, length, WORD, generator=rng, dtype=torch.float64)


def walk(variant, drawn, words):
    """Coverage that the score saw at every query, weights, and the term: `L ...`."""
    memory = variant.prepare(drawn.source)
    rows, heads, length, width = drawn.query.shape
    like = QueryShape(rows, heads, width, torch.float64, drawn.query.device)
    state, coverage, weights, left = variant.start(memory, like), [], [], []
    for t in range(length):
        at = slice(t, t + 1)
        extras = {"word": words[:, at]}
        found = variant.attend(drawn.query[:, :, at], memory, state, extras=extras)
        state = found.state
        coverage.append(state.carried["history0"]["coverage"])
        weights.append(found.weights[:, :, 0])
        left.append(found.terms["coverage_left"][:, 0])
    return torch.stack(coverage), torch.stack(weights), torch.stack(left)


@pytest.mark.parametrize("selector", BOTH)
def test_the_first_query_sees_the_full_embedding_of_each_token(beneath, draw, selector):
    drawn = draw()
    variant = beneath(selector)
    coverage, _, _ = walk(variant, drawn, words_for(drawn))
    full = variant.histories[0].full
    for row in range(3):
        for s in range(6):
            expected = full[drawn.source.tokens[row, s]]
            assert torch.equal(coverage[0, row, :, s], expected)


def test_subtraction_telescopes(beneath, draw):
    """c_T - c_0 is minus the weighted sum of the words' maps, of all but the last step."""
    drawn = draw(2, 2, 6, 5)
    variant, words = beneath(SUBTRACT), words_for(drawn)
    coverage, weights, _ = walk(variant, drawn, words)
    mapped = torch.einsum("ble,hew->lbhw", words, variant.histories[0].word_map)
    expected = -torch.einsum("lbhs,lbhw->bhsw", weights[:-1], mapped[1:])
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(coverage[-1] - coverage[0], expected, rtol=0, atol=1e-12)


def test_keys_without_weight_keep_their_coverage_under_subtraction_alone(beneath, draw):
    drawn = draw(1, 2, 4, 6, lengths=[3])
    words = words_for(drawn)
    for selector, stays in ((SUBTRACT, True), (GRU, False)):
        coverage, weights, _ = walk(beneath(selector), drawn, words)
        assert not weights[..., 3:].any()
        assert torch.equal(coverage[-1][:, :, 3:], coverage[0][:, :, 3:]) == stays


def test_the_gate_is_the_gated_unit_of_torch(beneath, draw):
    """With one head it is `GRUCell` on [word; weight] without biases."""
    drawn = draw(1, 1, 4, 5, lengths=())
    variant, words = beneath(GRU, heads=1), words_for(drawn)
    history = variant.histories[0]
    cell = torch.nn.GRUCell(WORD + 1, 4, bias=False, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.cat((history.word_map[0], history.weight_map[0])).T)
        cell.weight_hh.copy_(history.state_map[0].T)
    coverage, weights, _ = walk(variant, drawn, words)
    for t in range(1, 4):
        word = words[0, t].expand(5, -1)
        given = torch.cat((word, weights[t - 1, 0, 0][:, None]), 1)
        expected = cell(given, coverage[t - 1, 0, 0])
        torch.testing.assert_close(coverage[t, 0, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", BOTH)
def test_a_word_changes_the_query_it_comes_with_and_later_ones(answer, beneath, draw, selector):
    drawn = draw(1, 2, 4, 5)
    variant, words = beneath(selector), words_for(drawn)
    before = answer(variant, drawn.query, drawn.source, extras={"word": words}).weights
    for t in range(4):
        changed = words.clone()
        changed[:, t] += 3
        after = answer(variant, drawn.query, drawn.source, extras={"word": changed}).weights
        assert torch.equal(after[:, :, :t], before[:, :, :t])
        moved = (after[:, :, t:] - before[:, :, t:]).abs().amax((0, 1, 3))
        # the first word is BOS: nothing has been looked at yet, so it uses nothing up
        assert (moved > 1e-6).all() if t > 0 else not moved.any()


def test_the_term_is_the_norm_of_what_is_left_of_real_keys(beneath, draw):
    drawn = draw(2, 2, 3, 6, lengths=[6, 2])
    coverage, _, left = walk(beneath(GRU), drawn, words_for(drawn))
    for t in range(3):
        for row, length in enumerate((6, 2)):
            norms = [
                coverage[t, row, head, s].norm().item() for head in (0, 1) for s in range(length)
            ]
            assert left[t, row].item() == pytest.approx(sum(norms) / 2, abs=1e-12)


def test_words_that_the_source_vocabulary_lacks_share_the_vector_of_unk(answer, beneath, draw):
    drawn = draw(1, 2, 3, 4, lengths=())
    variant, words = beneath(GRU), words_for(drawn)
    assert len(variant.histories[0].full) == 16
    found = []
    for token in (3, 16, 99):
        tokens = drawn.source.tokens.clone()
        tokens[0, 1] = token
        source = Source(drawn.source.key, drawn.source.value, None, tokens)
        found.append(answer(variant, drawn.query, source, extras={"word": words}).output)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("selector", BOTH)
def test_without_the_feature_map_it_is_the_additive_score(answer, beneath, draw, selector):
    drawn = draw()
    covered = beneath(selector)
    with torch.no_grad():
        covered.score.feature_map.zero_()
    plain = beneath("additive[width=3]")
    kept = {n: p for n, p in covered.score.state_dict().items() if n != "feature_map"}
    plain.score.load_state_dict(kept)
    extras = {"word": words_for(drawn)}
    one, two = (
        answer(v, drawn.query, drawn.source, extras=extras).weights for v in (covered, plain)
    )
    torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", BOTH)
def test_a_source_without_keys_gives_zeros_with_finite_gradients(answer, beneath, draw, selector):
    drawn = draw(2, 2, 3, 5, lengths=[5, 0])
    variant = beneath(selector)
    found = answer(variant, drawn.query, drawn.source, extras={"word": words_for(drawn)})
    assert not found.weights[1].any()
    (found.output.sum() + found.terms["coverage_left"].sum()).backward()
    assert found.terms["coverage_left"][1].eq(0).all()
    assert all(p.grad.isfinite().all() for p in variant.parameters())


def test_what_is_missing_and_other_regimes_are_refused():
    options = {"dim": 8, "heads": 2, "regime": "cross", "attention_only": True}
    with pytest.raises(Refused, match="mi_coverage needs the token ids of the source"):
        variants.build("mi_coverage", **options, word_dim=3)
    with pytest.raises(Refused, match="mi_coverage needs per-query token embeddings"):
        variants.build("mi_coverage", **options, source_vocab=9)
    slot = variants.build("mi_coverage", **options, source_vocab=9, word_dim=3)
    with pytest.raises(Refused, match="this source has none"):
        slot.prepare(torch.zeros(1, 2, 8))
    for regime, why in (
        ("causal", "the whole source"),
        ("self", "there are none"),
        ("pool", "one query"),
    ):
        with pytest.raises(Refused, match=why):
            variants.build("mi_coverage", **{**options, "regime": regime})
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        variants.build("mi_coverage[width=0]", **options, source_vocab=9, word_dim=3)
