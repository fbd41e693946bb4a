import pytest
import torch

from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("adaptive_span[largest=8,ramp=2]", regime, padded=padded)
    equals_oracle("adaptive_span[largest=4,ramp=5]", regime, padded=padded)


def set_span(variant, *keys):
    with torch.no_grad():
        share = torch.tensor(keys, dtype=torch.float64) / variant.normalizer.config.largest
        variant.normalizer.share.copy_(share[:, None, None])


def test_the_mask_falls_along_the_ramp(beneath, answer, draw):
    """Equal energies leave the mask itself: one up to z, then down to zero over R keys."""
    drawn = draw(1, 2, 9, 9, lengths=())
    variant = beneath("adaptive_span[largest=8,ramp=4]", regime="causal")
    set_span(variant, 0.0, 3.0)
    weights = answer(variant, 0 * drawn.query, drawn.source).weights[0, :, 8].flip(-1)
    for head, mask in enumerate(
        ([1, 0.75, 0.5, 0.25, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0])
    ):
        wanted = torch.tensor(mask, dtype=torch.float64)
        torch.testing.assert_close(weights[head], wanted / wanted.sum(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_a_span_over_the_sequence_is_full_attention(beneath, answer, draw, regime):
    drawn = draw(queries=6, keys=6)
    variant = beneath("adaptive_span[largest=8,ramp=2]", regime=regime)
    set_span(variant, 6.0, 8.0)
    found = answer(variant, drawn.query, drawn.source)
    wanted = answer(beneath("scaled_dot", regime=regime), drawn.query, drawn.source)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)


def test_a_span_of_zero_with_a_ramp_of_one_is_the_window_of_one_key(beneath, answer, draw):
    drawn = draw(queries=6, keys=6, lengths=())
    variant = beneath("adaptive_span[largest=8,ramp=1]", regime="causal")
    set_span(variant, 0.0, 0.0)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, drawn.source.value, rtol=0, atol=1e-12)


def test_real_queries_read_weights_that_sum_to_one(beneath, answer, draw):
    drawn = draw(queries=6, keys=6)
    weights = answer(beneath("adaptive_span", regime="causal"), drawn.query, drawn.source).weights
    for row, length in enumerate(drawn.lengths):
        total = weights[row, :, :length].sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)


def test_the_span_learns_from_keys_on_the_ramp_alone(beneath, answer, draw):
    drawn = draw(1, 2, 8, 8, lengths=())
    variant = beneath("adaptive_span[largest=16,ramp=2]", regime="causal")
    set_span(variant, 3.0, 12.0)
    answer(variant, drawn.query, drawn.source).output.square().sum().backward()
    gradient = variant.normalizer.share.grad.flatten()
    assert gradient.isfinite().all()
    assert gradient[0] != 0
    assert gradient[1] == 0


def test_spans_start_at_half_of_the_largest(beneath):
    variant = beneath("adaptive_span[largest=20]", seed=None, regime="causal")
    assert variant.normalizer.span().flatten().tolist() == [10.0, 10.0]


def test_two_sequences_and_empty_ramps_are_refused(beneath):
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="distances need one sequence"):
            beneath("adaptive_span", regime=regime)
    with pytest.raises(InvalidConfig, match="largest and ramp must be at least 1"):
        beneath("adaptive_span[ramp=0]", regime="causal")
