import pytest
import torch

from bench.api.source import Source


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("dot[mask=last_key]", regime, padded=padded)


def test_the_last_real_key_gets_all_the_weight_whatever_the_score_says(beneath, answer, draw):
    drawn = draw(lengths=[6, 3, 1])
    for score in ("dot", "additive"):
        found = answer(beneath(f"{score}[mask=last_key]"), drawn.query, drawn.source)
        expected = torch.zeros(3, 6, dtype=torch.float64)
        for row, length in enumerate(drawn.lengths):
            expected[row, length - 1] = 1.0
        assert torch.equal(found.weights, expected[:, None, None].expand(3, 2, 4, 6))


def test_holes_in_the_mask_are_passed_over_and_a_row_without_keys_reads_zero(beneath, answer, draw):
    drawn = draw(2, 2, 3, 6, lengths=())
    mask = torch.tensor([[False, True, False, True, False, False], [False] * 6])
    source = Source(drawn.source.key, drawn.source.value.requires_grad_(), mask)
    found = answer(beneath("dot[mask=last_key]"), drawn.query, source)
    assert (found.weights[0, :, :, 3] == 1).all()
    assert found.weights.sum() == 2 * 3
    assert not found.output[1].any()
    found.output.sum().backward()
    assert source.value.grad.isfinite().all()


def test_under_causality_each_query_sees_itself_alone(beneath, answer, draw):
    drawn = draw(1, 2, 5, 5, lengths=())
    found = answer(beneath("dot[mask=last_key]", regime="causal"), drawn.query, drawn.source)
    assert torch.equal(found.weights, torch.eye(5).double().expand(1, 2, 5, 5))
    assert torch.equal(found.output, drawn.source.value)
