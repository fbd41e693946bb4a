import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.source import Source

NOISE = Noise(seed=3)
DROPPED = "dropped_sum[share=0.4]"


def test_windows_and_history_drop_by_the_place_of_a_key(equals_oracle):
    for extra in ("mask=luong_local_m[window=1]", "score=additive,history=tu_coverage"):
        selector = f"dropped_sum[share=0.4,{extra}]"
        equals_oracle(selector, read="train", noise=NOISE)


def test_a_long_source_is_read_alike_with_a_window_as_with_a_mask(beneath, answer, draw):
    drawn = draw(1, 2, 3, 200, lengths=())
    window = "mask=luong_local_m[window=1]"
    auto = beneath(f"dropped_sum[{window}]")
    eager = beneath(f"dropped_sum[{window}]", impl="eager")
    one, two = (
        answer(v, drawn.query, drawn.source, read="train", noise=NOISE) for v in (auto, eager)
    )
    torch.testing.assert_close(one.output, two.output, rtol=0, atol=1e-12)


def identity(rows, heads, keys):
    """Values that show the weights they were read with."""
    eye = torch.eye(keys, dtype=torch.float64).expand(rows, heads, -1, -1)
    return Source(eye, eye)


def test_a_dropped_weight_is_zero_and_the_others_are_scaled_not_normalized(read, weigh):
    weights = weigh(4, 2, 3, 6)
    found = read(DROPPED, weights, identity(4, 2, 6), read="train", noise=NOISE)
    dropped = found == 0
    assert 0.25 < dropped.double().mean() < 0.55
    torch.testing.assert_close(found[~dropped], weights[~dropped] / 0.6, rtol=0, atol=1e-12)
    assert (found.sum(-1) - 1).abs().max() > 0.1


def test_over_many_draws_the_mean_is_the_weighted_sum_and_the_share_is_dropped(read, weigh):
    weights = weigh(1, 1, 1, 4).detach().expand(20000, 1, 1, 4)
    found = read(DROPPED, weights, identity(20000, 1, 4), read="train", noise=NOISE)
    share = (found == 0).double().mean(0).flatten()
    assert ((share - 0.4).abs() < 4 * (0.4 * 0.6 / 20000) ** 0.5).all()
    sigma = weights[0].flatten() * (0.4 / 0.6 / 20000) ** 0.5
    assert ((found.mean(0) - weights[0]).flatten().abs() < 4 * sigma).all()


def test_outside_of_training_it_is_the_weighted_sum(read, weigh, draw):
    source = draw(2, 2, 3, 6, lengths=()).source
    weights = weigh(2, 2, 3, 6)
    found = read(DROPPED, weights, source)
    assert torch.equal(found, read("weighted_sum", weights, source))
    trained = read(DROPPED, weights, source, read="train", noise=NOISE)
    assert (trained - found).abs().max() > 0.1


def test_gradients_reach_kept_weights_alone(read, weigh):
    weights = weigh(2, 1, 3, 5)
    found = read(DROPPED, weights, identity(2, 1, 5), read="train", noise=NOISE)
    (slope,) = torch.autograd.grad(found.sum(), weights)
    assert torch.equal(slope == 0, found == 0)
    assert torch.equal(slope[found != 0], torch.full_like(slope[found != 0], 1 / 0.6))


def test_what_losses_see_is_not_dropped(beneath, answer, draw):
    drawn = draw()
    variant = beneath(DROPPED)
    assert variant.reads == ("expected", "train")
    trained = answer(variant, drawn.query, drawn.source, read="train", noise=NOISE)
    plain = answer(variant, drawn.query, drawn.source)
    assert torch.equal(trained.weights, plain.weights)
    assert not torch.equal(trained.output, plain.output)


def test_it_joins_normalizers_that_draw_too(equals_oracle, beneath):
    alone = beneath("hard_gumbel_st").reads
    assert beneath("hard_gumbel_st[readout=dropped_sum]").reads == alone
    equals_oracle("hard_gumbel_st[readout=dropped_sum]", read="train", noise=NOISE, progress=0.5)


def test_fused_attention_would_drop_nothing_and_is_refused():
    with pytest.raises(Refused, match="impl=sdpa needs"):
        variants.build("dropped_sum", dim=8, heads=2, impl="sdpa")


@pytest.mark.parametrize("share", ["0", "1", "-0.1"])
def test_shares_that_drop_nothing_or_all_are_refused(share):
    with pytest.raises(InvalidConfig, match="above 0 and below 1"):
        variants.build(f"dropped_sum[share={share}]", dim=8, heads=2)
