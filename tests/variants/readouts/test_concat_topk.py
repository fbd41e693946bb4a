import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.source import Source


@pytest.mark.parametrize("normalizer", ["none", "sparsemax"])
def test_it_reads_other_normalizers_too(equals_oracle, normalizer):
    equals_oracle(f"concat_topk[k=2,normalizer={normalizer}]")


def test_as_it_begins_with_every_key_kept_it_is_the_weighted_sum(read, weigh, draw):
    source, weights = draw(2, 2, 3, 5, lengths=()).source, weigh(2, 2, 3, 5)
    plain = read("weighted_sum", weights, source)
    for k in (5, 8):
        found = read(f"concat_topk[k={k}]", weights, source)
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)
    assert not torch.allclose(read("concat_topk[k=2]", weights, source), plain)


def test_values_stand_side_by_side_in_the_order_of_their_weights(component, ask):
    part = component("readout", "concat_topk[k=2]", heads=1, widths=(2, 2, 2), seed=None)
    with torch.no_grad():
        part.projection.zero_()
        part.projection[0, 0, 0] = 1.0  # first unit of the best value
        part.projection[0, 3, 1] = 1.0  # second unit of the second best
    value = torch.tensor([[1.0, 2], [3, 4], [5, 6]], dtype=torch.float64)[None, None]
    weights = torch.tensor([0.3, 0.2, 0.5], dtype=torch.float64).view(1, 1, 1, 3)
    found = part.read(ask(value[:, :, :1], Source(value, value)), weights, None)
    assert found.flatten().tolist() == pytest.approx([0.5 * 5, 0.3 * 2])


def test_ties_are_broken_by_place(read, draw):
    source = draw(1, 1, 1, 40, lengths=()).source
    even = torch.full((1, 1, 1, 40), 1 / 40, dtype=torch.float64)
    found = read("concat_topk[k=3]", even, source)
    wanted = source.value[:, :, :3].sum(2, keepdim=True) / 40
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_weights_that_are_kept_get_a_gradient_and_the_others_none(read, weigh, draw):
    source, weights = draw(2, 1, 3, 6, lengths=()).source, weigh(2, 1, 3, 6)
    read("concat_topk[k=2]", weights, source).sum().backward()
    assert ((weights.grad != 0).sum(-1) == 2).all()
    kept = weights.detach().topk(2).indices
    assert weights.grad.gather(-1, kept).all()


def test_at_least_one_value_is_kept(beneath):
    with pytest.raises(InvalidConfig, match="concat_topk: k must be at least 1, got 0"):
        beneath("concat_topk[k=0]")
