import pytest
import torch

from bench.api.errors import Refused

BOTH = ("max", "max[gradient=none]")


@pytest.mark.parametrize("normalizer", ["sparsemax", "none", "raffel_monotonic"])
def test_it_reads_other_normalizers_too(equals_oracle, normalizer):
    equals_oracle(f"max_readout[normalizer={normalizer}]")


def test_it_reads_what_hardmax_reads_but_weights_stay_soft(beneath, answer, draw):
    drawn = draw()
    soft = answer(beneath("max_readout"), drawn.query, drawn.source)
    hard = answer(beneath("hardmax"), drawn.query, drawn.source)
    assert torch.equal(soft.output, hard.output)
    assert torch.equal(soft.weights.argmax(-1), hard.weights.argmax(-1))
    assert (soft.weights > 0).sum() > (hard.weights > 0).sum()


def test_the_value_is_read_whole_whatever_its_weight(read, draw):
    source = draw(1, 1, 1, 3, lengths=()).source
    for row in ([0.2, 0.5, 0.3], [0.01, 0.02, 0.0], [-3.0, -1.0, -2.0]):
        weights = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, 3)
        assert torch.equal(read("max", weights, source)[0, 0, 0], source.value[0, 0, 1])


def test_a_query_that_weighs_nothing_reads_nothing(read, draw):
    source = draw(1, 1, 2, 3, lengths=()).source
    allowed = torch.tensor([[True] * 3, [False] * 3])[None, None]
    nothing = torch.zeros(1, 1, 2, 3, dtype=torch.float64)
    for selector in BOTH:
        assert not read(selector, nothing, source, allowed).any()


def test_a_hidden_key_is_not_the_best_of_negative_weights(read, draw):
    source = draw(1, 1, 1, 3, lengths=()).source
    weights = torch.tensor([-3.0, -1.0, 0.0], dtype=torch.float64).view(1, 1, 1, 3)
    allowed = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    assert torch.equal(read("max", weights, source, allowed)[0, 0, 0], source.value[0, 0, 1])


def test_in_training_weights_get_the_gradient_of_the_weighted_sum_and_the_answer_is_the_same(
    read, weigh, draw
):
    source = draw(2, 2, 3, 5, lengths=()).source
    weights, copy = weigh(2, 2, 3, 5), weigh(2, 2, 3, 5)
    trained = read("max", weights, source, read="train")
    assert torch.equal(trained, read("max[gradient=none]", weights, source, read="train"))
    pull = torch.randn(trained.shape, generator=torch.Generator().manual_seed(1)).double()
    (trained * pull).sum().backward()
    (read("weighted_sum", copy, source) * pull).sum().backward()
    torch.testing.assert_close(weights.grad, copy.grad, rtol=0, atol=1e-12)
    assert not read("max", weights, source).requires_grad
    assert not read("max[gradient=none]", weights, source, read="train").requires_grad


def test_hard_decoding_in_linear_time_is_refused(beneath, draw):
    drawn = draw(queries=1)
    variant = beneath("raffel_monotonic[readout=max]")
    pointer = torch.zeros(3, 2, dtype=torch.long)
    with pytest.raises(Refused, match="a weighted sum"):
        variant.stream(drawn.query, variant.prepare(drawn.source), pointer)
