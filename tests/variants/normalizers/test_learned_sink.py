import pytest
import torch

import variants


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("learned_sink", regime, padded=padded)


def set_sink(variant, *numbers):
    with torch.no_grad():
        sink = torch.tensor(numbers, dtype=torch.float64)
        variant.normalizer.sink.copy_(sink[:, None, None])


def test_a_sink_of_zero_is_softmax_off_by_one_and_it_starts_there(beneath, answer, draw):
    drawn = draw()
    variant = beneath("learned_sink", seed=None)
    assert not variant.normalizer.sink.any()
    found = answer(variant, drawn.query, drawn.source).weights
    wanted = answer(beneath("softmax_off_by_one"), drawn.query, drawn.source).weights
    assert torch.equal(found, wanted)


def test_a_sink_far_below_all_energies_is_the_softmax(beneath, answer, draw):
    drawn = draw()
    variant = beneath("learned_sink")
    set_sink(variant, -800.0, -900.0)
    found = answer(variant, drawn.query, drawn.source).weights
    wanted = answer(beneath("scaled_dot"), drawn.query, drawn.source).weights
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_each_head_has_a_sink_of_its_own(beneath, answer, draw):
    drawn = draw(lengths=())
    variant = beneath("learned_sink")
    set_sink(variant, -800.0, 800.0)
    total = answer(variant, drawn.query, drawn.source).weights.sum(-1)
    torch.testing.assert_close(total[:, 0], torch.ones_like(total[:, 0]), rtol=0, atol=1e-12)
    assert not total[:, 1].any()


def test_the_sink_learns(draw):
    slot = variants.build("learned_sink", dim=8, heads=2, regime="self")
    x = torch.randn(2, 5, 8)
    output, _ = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    output.square().sum().backward()
    assert slot.variant.normalizer.sink.grad.abs().min() > 0
