import pytest
import torch

import variants
from bench.api import chain
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source
from bench.api.variant import Variant
from bench.conformance.checks_cost import Meter, exponent


@pytest.fixture
def seen(beneath, answer, draw):
    """`seen(selector, lengths, queries, keys, regime)` -> places with weight, row by row."""

    def make(selector, lengths, queries=8, keys=6, regime="cross"):
        drawn = draw(len(lengths), 1, queries, keys, lengths=lengths)
        found = answer(beneath(selector, heads=1, regime=regime), drawn.query, drawn.source).weights
        return [[row.nonzero().flatten().tolist() for row in rows] for rows in found[:, 0]]

    return make


@pytest.mark.parametrize("regime", ["cross", "causal", "self"])
@pytest.mark.parametrize("options", ["window=1", "window=2,ratio=0.6", "window=0,ratio=1.7"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"luong_local_m[{options}]", regime)
    equals_oracle(f"luong_local_m[{options},score=additive[width=3]]", regime, padded=False)


@pytest.mark.parametrize(
    ("selector", "regime"),
    [
        ("luong_local_m[window=1,ratio=1.3]", "cross"),
        ("luong_local_m[window=1,ratio=1.3]", "causal"),
        ("luong_local_m[window=1,ratio=1.3]", "self"),
        ("luong_local_p[window=1]", "cross"),
        ("luong_local_p[window=1]", "self"),
    ],
)
@pytest.mark.parametrize("padded", [True, False])
def test_windows_that_are_copied_out_equal_the_loops(
    equals_oracle, always_gather, regime, selector, padded
):
    equals_oracle(selector, regime, padded=padded)
    equals_oracle(f"{selector[:-1]},score=additive[width=3]]", regime, padded=padded)
    equals_oracle(f"{selector[:-1]},readout=unnormalized_sum]", regime, padded=padded)
    equals_oracle(f"{selector[:-1]},readout=gated_sum]", regime, padded=padded)


@pytest.mark.parametrize("mask", ["luong_local_m[window=1]", "luong_local_p[window=1]"])
def test_gradients_of_copied_windows_are_those_of_the_mask(
    beneath, answer, draw, mask, monkeypatch
):
    found = []
    for gather_from in (0, 1000):
        monkeypatch.setattr(Variant, "gather_from", gather_from)
        drawn = draw(3, 2, 7, 9, lengths=[9, 4, 0])
        variant = beneath(mask)
        leaves = [drawn.query, drawn.source.key, drawn.source.value]
        for leaf in leaves:
            leaf.requires_grad_()
        answer(variant, drawn.query, drawn.source).output.square().sum().backward()
        found.append([leaf.grad for leaf in (*leaves, *variant.parameters())])
    for one, two in zip(*found, strict=True):
        assert two.any()
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_long_sources_are_copied_out_and_short_ones_and_eager_code_masked(
    beneath, answer, draw, monkeypatch
):
    used = []
    plain = chain.Chain._mix_gathered
    monkeypatch.setattr(
        chain.Chain,
        "_mix_gathered",
        lambda self, *given, **how: used.append(1) or plain(self, *given, **how),
    )

    def asks(selector, keys, impl="auto"):
        used.clear()
        drawn = draw(1, 2, 2, keys, lengths=())
        answer(beneath(selector, impl=impl), drawn.query, drawn.source)
        return bool(used)

    long = 3 * Variant.gather_from
    assert asks("luong_local_m[window=1]", long)
    assert not asks("luong_local_m[window=1]", long - 1)
    assert not asks("luong_local_m[window=1]", long, impl="eager")
    for other in (
        "score=conv_attention",
        "normalizer=sparsemax",
        "history=tu_coverage,score=additive",
    ):
        assert not asks(f"luong_local_m[window=1,{other}]", long)


def test_work_and_memory_are_linear_in_the_source_only_where_windows_are_copied_out(beneath, draw):
    def growth(impl):
        work, peak = [], []
        for length in (128, 256, 512):
            drawn = draw(1, 2, length, length, lengths=())
            variant = beneath("luong_local_m[window=1]", impl=impl)
            with torch.no_grad(), Meter() as meter:
                memory = variant.prepare(drawn.source)
                state = variant.start(
                    memory, QueryShape(1, 2, 5, torch.float64, memory.source.key.device)
                )
                variant.attend(drawn.query, memory, state, want_weights=False)
            work.append(meter.operations)
            peak.append(meter.peak)
        return exponent(work), exponent(peak)

    assert growth("auto") == pytest.approx((1, 1), abs=0.1)
    assert growth("eager") == pytest.approx((2, 2), abs=0.2)


@pytest.mark.parametrize("regime", ["cross", "self"])
def test_a_window_wider_than_the_source_is_global_attention(beneath, answer, draw, regime):
    drawn = draw(queries=6, keys=6)
    local, plain = (
        beneath("luong_local_m[window=50]", regime=regime),
        beneath("general", regime=regime),
    )
    plain.score.load_state_dict(local.score.state_dict())
    found = answer(local, drawn.query, drawn.source)
    wanted = answer(plain, drawn.query, drawn.source)
    assert torch.equal(found.output, wanted.output)
    assert torch.equal(found.weights, wanted.weights)


def test_the_window_moves_on_by_one_key_a_query_and_stays_on_the_last_key_of_the_row(seen):
    full, short = seen("luong_local_m[window=1]", [6, 3])
    assert full == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5], [4, 5], [4, 5]]
    assert short == [[0, 1], [0, 1, 2], *[[1, 2]] * 6]


def test_the_ratio_moves_it_by_so_many_keys_a_query(seen):
    assert seen("luong_local_m[window=0,ratio=2]", [6])[0] == [[0], [2], [4], *[[5]] * 5]
    assert seen("luong_local_m[window=0,ratio=0.5]", [6])[0] == [
        [s] for s in (0, 1, 1, 2, 2, 3, 3, 4)
    ]


def test_under_causality_the_window_ends_at_the_query_itself(seen):
    rows = seen("luong_local_m[window=2,ratio=3]", [6], 6, 6, regime="causal")[0]
    assert rows == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]


def test_it_is_predicted_attention_without_its_gaussian_where_the_center_is_the_query(
    beneath, answer, draw
):
    drawn = draw(lengths=(), queries=6)
    fixed, predicted = beneath("luong_local_m[window=2]"), beneath("luong_local_p[window=2]")
    predicted.score.load_state_dict(fixed.score.state_dict())
    place = torch.arange(6.0, dtype=torch.float64)
    predicted.mask.center = lambda call: place.view(1, 1, 6, 1).expand(3, 2, 6, 1)
    gauss = torch.exp(-((place - place[:, None]) ** 2) / 2)
    found = answer(fixed, drawn.query, drawn.source).weights * gauss
    wanted = answer(predicted, drawn.query, drawn.source).weights
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_pooling_and_windows_without_keys_are_refused():
    with pytest.raises(Refused, match="pooling has only one"):
        variants.build("luong_local_m", dim=8, heads=2, regime="pool")
    with pytest.raises(InvalidConfig, match="window must be at least 0, got -1"):
        variants.build("luong_local_m[window=-1]", dim=8, heads=2, regime="cross")
    with pytest.raises(InvalidConfig, match="ratio must be above 0, got 0"):
        variants.build("luong_local_m[ratio=0]", dim=8, heads=2, regime="cross")


def test_the_mask_of_a_padded_source_holds_in_copied_windows(always_gather, beneath, answer, draw):
    drawn = draw(2, 2, 5, 6, lengths=[6, 3])
    variant = beneath("luong_local_m[window=2]")
    found = answer(variant, drawn.query, drawn.source)
    poison = Source(
        torch.where(drawn.source.mask[:, None, :, None], drawn.source.key, 1e30),
        torch.where(drawn.source.mask[:, None, :, None], drawn.source.value, -1e30),
        drawn.source.mask,
    )
    assert torch.equal(answer(variant, drawn.query, poison).output, found.output)
    assert not found.weights[1, :, :, 3:].any()
