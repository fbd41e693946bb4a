import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, sharpness):
    equals_oracle(f"sharpened[sharpness={sharpness}]", regime)


def weights(beneath, answer, drawn, sharpness):
    variant = beneath(f"dot[normalizer=sharpened[sharpness={sharpness}]]")
    return answer(variant, drawn.query, drawn.source).weights


def test_sharpness_one_is_the_softmax_and_two_is_its_square_made_to_sum_to_one(
    beneath, answer, draw
):
    drawn = draw()
    plain = answer(beneath("dot"), drawn.query, drawn.source).weights
    torch.testing.assert_close(weights(beneath, answer, drawn, 1.0), plain, rtol=0, atol=1e-12)
    square = plain.square() / plain.square().sum(-1, keepdim=True)
    torch.testing.assert_close(weights(beneath, answer, drawn, 2.0), square, rtol=0, atol=1e-12)


def test_the_limits_are_the_best_key_alone_and_the_mean(beneath, answer, draw):
    drawn = draw(lengths=())
    plain = answer(beneath("dot"), drawn.query, drawn.source).weights
    hard = torch.nn.functional.one_hot(plain.argmax(-1), 6).double()
    torch.testing.assert_close(weights(beneath, answer, drawn, 1e5), hard, rtol=0, atol=1e-9)
    flat = weights(beneath, answer, drawn, 1e-9)
    torch.testing.assert_close(flat, torch.full_like(flat, 1 / 6), rtol=0, atol=1e-7)


def test_fused_attention_would_forget_the_sharpness_and_is_refused():
    with pytest.raises(Refused, match="impl=sdpa needs"):
        variants.build("sharpened", dim=8, heads=2, impl="sdpa")
    slot = variants.build("sharpened", dim=8, heads=2, regime="self")
    x = torch.randn(1, 4, 8)
    state = slot.start(None, x)
    outputs = [
        slot.attend(x, None, state, own=(x, None, None), want_weights=wanted)[0]
        for wanted in (True, False)
    ]
    assert torch.equal(*outputs)


@pytest.mark.parametrize("sharpness", ["0.0", "-1.0"])
def test_a_sharpness_that_is_not_positive_is_refused(sharpness):
    with pytest.raises(InvalidConfig, match="sharpness must be positive"):
        variants.build(f"sharpened[sharpness={sharpness}]", dim=8, heads=2)
