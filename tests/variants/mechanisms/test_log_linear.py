import pytest
import torch
from torch.nn import functional

from bench.api.errors import InvalidConfig
from variants.mechanisms.log_linear import LogLinearConfig
from variants.softplus import inverse_softplus


def test_levels_of_two_rows_by_hand(beneath):
    variant = beneath("log_linear", regime="causal")
    token = torch.arange(8)
    found = variant._levels(token, token)
    assert found[5, :6].tolist() == [3, 3, 3, 3, 1, 0]
    assert found[7].tolist() == [3, 3, 3, 3, 2, 2, 1, 0]


def test_levels_behind_the_last_one_are_one(beneath):
    found = beneath("log_linear[levels=3]", regime="causal")._levels(
        torch.tensor([7]), torch.arange(8)
    )
    assert found[0].tolist() == [2, 2, 2, 2, 2, 2, 1, 0]


@pytest.mark.parametrize("levels", [4, 12])
def test_with_equal_weights_of_all_levels_it_is_mamba2(beneath, answer, draw, beside, levels):
    drawn = draw(2, 2, 150, 150)
    tree, one = (
        beneath(n, regime="causal") for n in (f"log_linear[levels={levels}]", "mamba2_ssd")
    )
    with torch.no_grad():
        tree.rate.copy_(one.rate)
        tree.bias.copy_(one.bias)
        tree.level_bias.fill_(inverse_softplus(1.0))
        one.skip.zero_()
    source = beside(one, drawn.source)
    expected = answer(one, drawn.query, source).output
    extras = {"levels": torch.zeros(2, 150, 2, levels, dtype=torch.float64)}
    found = answer(tree, drawn.query, source, extras=extras).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_it_equals_the_hierarchical_matrix_of_the_paper(beneath, answer, draw, beside):
    drawn = draw(2, 2, 150, 150, lengths=())
    variant = beneath("log_linear", regime="causal")
    source = beside(variant, drawn.source)
    said = torch.randn(
        2, 150, 2, 12, generator=torch.Generator().manual_seed(5), dtype=torch.double
    )
    step = functional.softplus(source.extras["step"] + variant.bias[:, None])
    total = (-variant.rate.exp()[:, None, None] * step).cumsum(2)
    decay = (total - total.mT).tril().exp().tril()
    level = torch.tensor([[min((t ^ s).bit_length(), 11) for s in range(150)] for t in range(150)])
    weights = functional.softplus(said.transpose(1, 2) + variant.level_bias[:, None])
    weights = weights.gather(3, level.expand(2, 2, -1, -1))
    expected = (drawn.query @ source.key.mT * decay * weights) @ (step * source.value)
    found = answer(variant, drawn.query, source, extras={"levels": said}).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_a_level_without_weight_is_not_read(beneath, answer, draw, beside):
    drawn = draw(1, 1, 8, 8, lengths=())
    variant = beneath("log_linear", heads=1, regime="causal")
    source = beside(variant, drawn.source)
    said = torch.zeros(1, 8, 1, 12, dtype=torch.float64)
    said[..., 3] = -200.0
    source.value.requires_grad_()
    output = answer(variant, drawn.query, source, extras={"levels": said}).output
    (gradient,) = torch.autograd.grad(output[0, 0, 7].sum(), source.value)
    assert (gradient[0, 0].abs().sum(-1) > 1e-12).tolist() == [False] * 4 + [True] * 4


def test_a_tree_without_a_past_is_refused():
    with pytest.raises(InvalidConfig, match="levels must be at least 2"):
        LogLinearConfig(levels=1)
