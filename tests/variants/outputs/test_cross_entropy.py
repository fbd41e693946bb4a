import pytest
import torch
from torch.nn import functional

from variants.outputs.cross_entropy import cross_entropy


def drawn(rows, words, dtype=torch.float64, scale=1.0):
    rng = torch.Generator().manual_seed(rows)
    logits = scale * torch.randn(rows, words, generator=rng, dtype=torch.float64)
    targets = torch.randint(words, (rows,), generator=rng)
    return logits.to(dtype).requires_grad_(), targets


@pytest.mark.parametrize(("rows", "words"), [(0, 3), (1, 1), (1, 5), (7, 4), (40, 300)])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_values_and_gradients_are_those_of_pytorch(rows, words, scale):
    results = []
    for made in (cross_entropy, lambda x, y: functional.cross_entropy(x, y, reduction="none")):
        logits, targets = drawn(rows, words, scale=scale)
        losses = made(logits, targets)
        weight = torch.linspace(-1.0, 2.0, rows, dtype=torch.float64)
        (weight * losses).sum().backward()
        results.append((losses.detach(), logits.grad))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def test_the_gradient_is_that_of_the_value():
    logits, targets = drawn(3, 4)
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, targets), logits)


def test_half_precision_is_summed_in_single_and_its_gradient_is_half():
    logits, targets = drawn(5, 3000, torch.bfloat16)
    losses = cross_entropy(logits, targets)
    losses.sum().backward()
    assert losses.dtype == torch.float32
    assert logits.grad.dtype == torch.bfloat16
    wide = logits.detach().float().requires_grad_()
    wanted = functional.cross_entropy(wide, targets, reduction="none")
    wanted.sum().backward()
    torch.testing.assert_close(losses, wanted)
    torch.testing.assert_close(logits.grad, wide.grad.bfloat16())


def test_a_loss_may_be_differentiated_again_from_the_same_graph():
    logits, targets = drawn(4, 6)
    total = cross_entropy(logits, targets).sum()
    first, second = (torch.autograd.grad(total, logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_nothing_is_kept_where_no_gradient_is_asked_for():
    logits, targets = drawn(4, 6)
    with torch.no_grad():
        assert cross_entropy(logits, targets).grad_fn is None
