"""Estimation and gathering of word translations."""

import math
import random
from collections import defaultdict

import pytest
import torch

from bench.api.output import OutputSizes
from variants.outputs.lexicon import Lexicon, ibm_model_1

SIZES = OutputSizes(vocab=12, states=4, context=6, embedded=2, unk=3, source_vocab=12)


def corpus(count=60, seed=0):
    """Sentences of words 4 to 11 whose translations are shifted by one, in random order."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        source = [rng.randrange(4, 12) for _ in range(rng.randrange(1, 6))]
        target = [4 + (word - 3) % 8 for word in source]
        rng.shuffle(target)
        pairs.append((source, target))
    return pairs


def looped(pairs, rounds):
    """The published updates, with a NULL word named -1."""
    chance = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counted, norm = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for e in target:
                total = sum(chance[f, e] for f in [*source, -1])
                for f in [*source, -1]:
                    counted[f, e] += chance[f, e] / total
                    norm[f] += chance[f, e] / total
        chance = {key: value / norm[key[0]] for key, value in counted.items()}
        chance = defaultdict(float, chance)
    return chance


@pytest.mark.parametrize("rounds", [1, 4])
def test_expectation_maximization_equals_the_loops(rounds, monkeypatch):
    monkeypatch.setattr("variants.outputs.lexicon.CHUNK_PAIRS", 7)
    pairs = corpus()
    found = ibm_model_1(pairs, 12, 12, rounds)
    expected = looped(pairs, rounds)
    assert len(found.chance) == len(expected)
    for f, e, chance in zip(*(x.tolist() for x in found), strict=True):
        assert chance == pytest.approx(expected[-1 if f == 12 else f, e], rel=1e-12)


def test_every_round_makes_the_data_likelier():
    pairs, before = corpus(), -math.inf
    for rounds in range(1, 6):
        found = ibm_model_1(pairs, 12, 12, rounds)
        table = {(f, e): c for f, e, c in zip(*(x.tolist() for x in found), strict=True)}
        likely = sum(
            math.log(sum(table[f, e] for f in [*source, 12]) / (len(source) + 1))
            for source, target in pairs
            for e in target
        )
        assert likely > before
        before = likely


def test_a_dictionary_is_found_whatever_the_order_of_words():
    lexicon = Lexicon(SIZES, keep=3)
    lexicon.fit(corpus(400), rounds=10)
    for word in range(4, 12):
        assert lexicon.ids[word, 0] == 4 + (word - 3) % 8
        assert lexicon.chances[word, 0] > 0.8
        assert (lexicon.chances[word, :-1].diff() <= 0).all(), "likeliest first"


def test_rows_sum_to_one_with_the_rest_at_unk_and_special_words_are_themselves():
    lexicon = Lexicon(SIZES, keep=2)
    for _ in range(2):
        sums = lexicon.chances.sum(1)
        assert (sums[1:] - 1).abs().max() < 1e-6
        assert sums[0] == 0, "padding translates to nothing"
        assert (lexicon.ids[4:, -1] == 3).all()
        for word in (1, 2, 3):
            assert lexicon.ids[word, 0] == word
            assert lexicon.chances[word].tolist() == [1, 0, 0]
        lexicon.fit(corpus(30), rounds=2)
    assert (lexicon.chances[4:, -1] > 0.01).any(), "two translations do not hold everything"


def test_special_words_and_unseen_words_do_not_disturb_the_estimate():
    plain, framed = Lexicon(SIZES, keep=2), Lexicon(SIZES, keep=2)
    pairs = [([f for f in s if f != 11], t) for s, t in corpus()]
    plain.fit(pairs, rounds=3)
    framed.fit([([1, *s, 2], [*t, 2]) for s, t in pairs], rounds=3)
    assert torch.equal(plain.ids, framed.ids)
    assert torch.equal(plain.chances, framed.chances)
    assert plain.chances[11].tolist() == [0, 0, 1], "an unseen word is UNK"


def test_extra_ids_of_a_target_are_left_out_of_the_estimate():
    plain, extended = Lexicon(SIZES, keep=2), Lexicon(SIZES, keep=2)
    plain.fit(corpus(), rounds=3)
    extended.fit([([*s, 3], [*t, SIZES.vocab + 1]) for s, t in corpus()], rounds=3)
    assert torch.equal(plain.ids, extended.ids)
    assert torch.equal(plain.chances, extended.chances)


def test_no_pairs_leave_a_lexicon_that_knows_nothing():
    lexicon = Lexicon(SIZES, keep=2)
    before = lexicon.chances.clone()
    lexicon.fit([], rounds=2)
    lexicon.fit([([4, 5], [])], rounds=2)
    assert torch.equal(lexicon.chances, before)


def test_gathering_equals_the_dense_product():
    lexicon = Lexicon(SIZES, keep=3).double()
    lexicon.fit(corpus(), rounds=3)
    rng = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 12, (3, 5), generator=rng)
    weights = torch.rand(3, 4, 5, generator=rng, dtype=torch.float64)
    dense = torch.zeros(12, 12, dtype=torch.float64)
    for word in range(12):
        for e, chance in zip(lexicon.ids[word], lexicon.chances[word], strict=True):
            dense[e, word] += chance
    expected = torch.einsum(
        "es,bts->bte",
        dense,
        torch.zeros(3, 4, 12).double().scatter_add(2, tokens[:, None].expand(3, 4, 5), weights),
    )
    found = lexicon(weights, tokens)
    assert (found - expected).abs().max() < 1e-12
    words = torch.randint(0, 12, (3, 4), generator=rng)
    at = lexicon.at(weights, tokens, words)
    assert (at - found.gather(2, words[..., None])[..., 0]).abs().max() < 1e-12
