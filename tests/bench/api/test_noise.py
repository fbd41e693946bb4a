"""Draws belong to places, not to calls: any split of a batch gives the same numbers."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.api.noise import Noise

KINDS = ("uniform", "gumbel", "normal")


def draw(kind="uniform", seed=0, stream="a", rows=2, heads=3, position=range(5), num_keys=4):
    place = torch.tensor(list(position))
    return getattr(Noise(seed), kind)(stream, rows, heads, place, num_keys)


@pytest.mark.parametrize("kind", KINDS)
def test_one_query_at_a_time_draws_what_all_at_once_draw(kind):
    whole = draw(kind)
    parts = [draw(kind, position=[p]) for p in range(5)]
    assert torch.equal(torch.cat(parts, 2), whole)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**40), st.integers(1, 4), st.integers(1, 6), st.integers(0, 1000))
def test_padding_and_further_rows_change_no_draw(seed, rows, keys, first):
    small = draw(seed=seed, rows=rows, num_keys=keys, position=[first, first + 3])
    large = draw(seed=seed, rows=rows + 2, num_keys=keys + 5, position=[first, first + 3], heads=4)
    assert torch.equal(large[:rows, :3, :, :keys], small)


def test_row_head_query_and_key_each_have_draws_of_their_own():
    values = draw(rows=20, heads=8, position=range(30), num_keys=25).flatten()
    # of n draws from 2^23 values about n^2 / 2^24 pairs agree by chance
    expected = values.numel() ** 2 / 2**24
    repeated = values.numel() - values.unique().numel()
    assert repeated < expected + 6 * math.sqrt(expected)


@pytest.mark.parametrize("seed", [0, 1, 123_456_789, 2**62, 10**30])
def test_draws_are_uniform(seed):
    values = draw(seed=seed, rows=10, heads=4, position=range(50), num_keys=50).double().flatten()
    count = values.numel()
    assert values.min() > 0
    assert values.max() < 1
    assert float(values.mean()) == pytest.approx(0.5, abs=5 / math.sqrt(12 * count))
    assert float(values.var()) == pytest.approx(1 / 12, abs=5 * math.sqrt(1 / 180 / count))
    counts = torch.histc(values, 64, 0, 1)
    chi2 = float(((counts - count / 64) ** 2 / (count / 64)).sum())
    assert 63 - 5 * math.sqrt(126) < chi2 < 63 + 5 * math.sqrt(126)


def test_gumbel_and_normal_have_their_moments():
    big = {"rows": 10, "heads": 4, "position": range(50), "num_keys": 50}
    gumbel, normal = draw("gumbel", **big).double(), draw("normal", **big).double()
    assert float(gumbel.mean()) == pytest.approx(0.5772156649, abs=0.02)
    assert float(gumbel.var()) == pytest.approx(math.pi**2 / 6, abs=0.05)
    assert float(normal.mean()) == pytest.approx(0.0, abs=0.02)
    assert float(normal.var()) == pytest.approx(1.0, abs=0.03)
    assert torch.isfinite(gumbel).all()
    assert torch.isfinite(normal).all()


def test_neighbors_seeds_and_streams_are_independent():
    big = {"rows": 10, "heads": 4, "position": range(50), "num_keys": 50}
    here = draw(**big).double()
    others = [
        draw(**big, seed=1).double(),
        draw(**big, stream="b").double(),
        here.roll(1, 0),
        here.roll(1, 1),
        here.roll(1, 2),
        here.roll(1, 3),
    ]
    bound = 5 / math.sqrt(here.numel())
    for other in others:
        together = torch.stack((here.flatten(), other.flatten()))
        assert abs(float(torch.corrcoef(together)[0, 1])) < bound


def test_the_argmax_of_scores_with_gumbel_noise_samples_the_softmax():
    scores = torch.tensor([0.0, 1.0, 2.0])
    noise = draw("gumbel", rows=10000, heads=1, position=[0], num_keys=3)[:, 0, 0]
    share = torch.bincount((scores + noise).argmax(-1), minlength=3) / 10000
    torch.testing.assert_close(share, scores.softmax(0), atol=0.03, rtol=0)


def test_masked_keys_do_not_shift_the_draws_of_real_ones():
    scores = torch.zeros(5000, 6)
    noise = draw("gumbel", rows=5000, heads=1, position=[0], num_keys=6)[:, 0, 0]
    allowed = torch.tensor([True, False, True, True, False, False])
    chosen = (scores + noise).masked_fill(~allowed, -torch.inf).argmax(-1)
    share = torch.bincount(chosen, minlength=6) / 5000
    torch.testing.assert_close(share, allowed / 3, atol=0.04, rtol=0)


def test_the_first_draws_never_change():
    """If this fails, no old number of a mechanism that samples can be reproduced."""
    found = draw(rows=1, heads=1, position=[0], num_keys=3).flatten().tolist()
    assert found == pytest.approx([0.52245694, 0.39834338, 0.00226027], abs=2e-7)


def test_no_draw_is_zero_or_one_even_at_the_ends(monkeypatch):
    for ends in (0, -1):
        monkeypatch.setattr("bench.api.noise._scramble", lambda x, ends=ends: x * 0 + ends)
        assert 0 < draw().min() <= draw().max() < 1
        assert torch.isfinite(draw("gumbel")).all()
        assert torch.isfinite(draw("normal")).all()


def test_draws_do_not_touch_the_global_generator():
    before = torch.random.get_rng_state()
    for kind, seed in itertools.product(KINDS, (0, 1)):
        draw(kind, seed=seed)
    assert torch.equal(before, torch.random.get_rng_state())
