"""Products in bfloat16: near those in float32, with one gradient for all steps of a sequence."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.backbones import rounded_product
from tasks.backbones.precision import multiply_in
from tasks.backbones.rounded_product import BLOCK, RoundedProduct, rounded

FORMATS = (torch.bfloat16, torch.float32)
"""What processors multiply rounded numbers in: those with instructions for bfloat16, and others."""


@pytest.fixture(autouse=True)
def every_product(monkeypatch):
    monkeypatch.setattr(rounded_product, "SMALL", 0)


@pytest.fixture(autouse=True, params=FORMATS, ids=str)
def factors(request, monkeypatch):
    """Every test holds on both kinds of processor."""
    monkeypatch.setattr(rounded_product, "format_of_factors", lambda device: request.param)
    return request.param


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def near(found, wanted, share=0.02):
    for one, two in zip(found, wanted, strict=True):
        assert one.dtype == two.dtype == torch.float32
        assert 0 < (one - two).norm() < share * two.norm()


def test_the_gradient_of_all_steps_is_the_sum_of_theirs():
    weight, bias = drawn(7, 5).requires_grad_(), drawn(7, seed=3).requires_grad_()
    steps = [drawn(2, 3, 5, seed=n).requires_grad_() for n in range(4)]
    product = RoundedProduct(weight, bias)
    total = sum(n * product(x).square().sum() for n, x in enumerate(steps, 1))
    found = torch.autograd.grad(total, (weight, bias, *steps), retain_graph=True)
    again = torch.autograd.grad(total, (weight, bias, *steps))
    for one, two in zip(found, again, strict=True):
        assert torch.equal(one, two)
    exact = sum(
        n * nn.functional.linear(x, weight, bias).square().sum() for n, x in enumerate(steps, 1)
    )
    near(found, torch.autograd.grad(exact, (weight, bias, *steps)))


def gathered(weight: torch.Tensor, bias: torch.Tensor, steps: list[torch.Tensor]):
    """Gradients of the weights by one product of all steps, the last one first, by hand."""
    given, grads = [], []
    for x in reversed(steps):
        rows = x.detach().reshape(-1, x.shape[-1])
        rows = rounded(nn.functional.pad(rows, (0, 0, 0, -len(rows) % BLOCK)))
        said = nn.functional.linear(rows, rounded(weight.detach()), rounded(bias.detach()))
        given.append(rows)
        slopes = 2 * said.bfloat16().float()
        slopes[x.shape[:-1].numel() :] = 0
        grads.append(rounded(slopes))
    grad = torch.cat(grads)
    return (grad.T @ torch.cat(given)).bfloat16().float(), grad.sum(0).bfloat16().float()


def drawn_steps():
    weight, bias = drawn(7, 5).requires_grad_(), drawn(7, seed=3).requires_grad_()
    return weight, bias, [drawn(2, 3, 5, seed=n).requires_grad_() for n in range(4)]


def test_a_backward_pass_gathers_all_steps_in_one_product():
    weight, bias, steps = drawn_steps()
    product = RoundedProduct(weight, bias)
    sum(product(x).square().sum() for x in steps).backward()
    for found, wanted in zip((weight.grad, bias.grad), gathered(weight, bias, steps), strict=True):
        assert torch.equal(found, wanted)
    assert product.seen == {}


@pytest.mark.parametrize("times", [1, 2])
def test_gradients_of_inputs_alone_leave_nothing_for_the_weights_of_the_next_pass(times):
    weight, bias, steps = drawn_steps()
    product = RoundedProduct(weight, bias)
    total = sum(product(x).square().sum() for x in steps)
    found = []
    for _ in range(times):
        found.append(torch.autograd.grad(total, steps, retain_graph=True))
        assert product.seen == {}, "nothing is kept"
    total.backward(inputs=steps[:1], retain_graph=True)
    steps[0].grad = None
    total.backward()
    for one, two in zip((weight.grad, bias.grad), gathered(weight, bias, steps), strict=True):
        assert torch.equal(one, two)
    for alone in found:
        assert all(torch.equal(one, x.grad) for one, x in zip(alone, steps, strict=True))


def test_a_pass_that_ends_in_an_error_leaves_nothing_for_the_next_one():
    weight, bias, steps = drawn_steps()
    product, fails = RoundedProduct(weight, bias), [True]
    first = product(steps[0])

    def fail(grad):
        if fails.pop() if fails else False:
            raise RuntimeError("out of memory")

    first.register_hook(fail)
    total = first.square().sum() + sum(product(x).square().sum() for x in steps[1:])
    with pytest.raises(RuntimeError, match="out of memory"):
        total.backward(retain_graph=True)
    assert product.seen, "later steps came first"
    assert weight.grad is None
    total.backward()
    for one, two in zip((weight.grad, bias.grad), gathered(weight, bias, steps), strict=True):
        assert torch.equal(one, two)


def test_a_gradient_that_nobody_wants_is_not_computed():
    weight, x = drawn(7, 5), drawn(3, 5).requires_grad_()
    product = RoundedProduct(weight, None)
    product(x).sum().backward()
    assert product.seen == {}
    assert x.grad is not None
    with torch.no_grad():
        assert not RoundedProduct(weight.requires_grad_(), None)(x).requires_grad


class Shapes(TorchDispatchMode):
    """Notes the sizes of products in bfloat16."""

    def __init__(self):
        super().__init__()
        self.seen: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            left, right = args[-2:]
            assert left.dtype == torch.bfloat16
            self.seen.add((*left.shape, right.shape[1]))
        return func(*args, **(kwargs or {}))


def test_products_of_any_number_of_rows_have_few_shapes_and_the_same_rows(monkeypatch):
    monkeypatch.setattr(rounded_product, "format_of_factors", lambda device: torch.bfloat16)
    weight, bias = drawn(7, 5).requires_grad_(), drawn(7, seed=3).requires_grad_()
    x = drawn(3 * BLOCK, 5).requires_grad_()
    with torch.no_grad():
        whole = RoundedProduct(weight, bias)(x)
    counts = [1, 17, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 5]
    with Shapes() as shapes:
        for rows in counts:
            product = RoundedProduct(weight, bias)
            said = product(x[:rows])
            assert torch.equal(said, whole[:rows])
            said.square().sum().backward()
    blocks = {-(-rows // BLOCK) * BLOCK for rows in counts}
    assert shapes.seen == {sizes for m in blocks for sizes in ((m, 5, 7), (m, 7, 5), (7, m, 5))}


def test_small_products_stay_in_float32(monkeypatch):
    monkeypatch.setattr(rounded_product, "SMALL", 3 * 35 + 1)
    weight, x = drawn(7, 5).requires_grad_(), drawn(4, 5)
    product = RoundedProduct(weight, None)
    assert torch.equal(product(x[:3]), x[:3] @ weight.T)
    assert product(x).dtype == torch.float32
    assert not torch.equal(product(x), x @ weight.T)


def test_a_product_that_is_not_widened_has_the_same_numbers_and_gradients():
    weight, bias = drawn(7, 5).requires_grad_(), drawn(7, seed=3).requires_grad_()
    x = drawn(4, 5).requires_grad_()
    wide, narrow = RoundedProduct(weight, bias)(x), RoundedProduct(weight, bias, widens=False)(x)
    assert narrow.dtype == torch.bfloat16
    assert torch.equal(narrow.float(), wide)
    found = torch.autograd.grad(narrow.float().square().sum(), (weight, bias, x))
    wanted = torch.autograd.grad(wide.square().sum(), (weight, bias, x))
    for one, two in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, two)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.GRUCell, nn.LSTMCell, nn.Linear])
def test_both_kinds_of_processor_say_the_same(kind, monkeypatch):
    found = []
    for kept in FORMATS:
        monkeypatch.setattr(rounded_product, "format_of_factors", lambda device, f=kept: f)
        torch.manual_seed(0)
        network = nn.Sequential(kind(9, 24))
        multiply_in(network, "bfloat16")
        x = drawn(5, 9).requires_grad_()
        said = network[0](x.unsqueeze(0) if kind in (nn.GRU, nn.LSTM) else x)
        said = said[0] if isinstance(said, tuple) else said
        said.square().sum().backward()
        found.append((said.detach(), x.grad, *(one.grad for one in network.parameters())))
    for one, two in zip(*found, strict=True):
        assert one.dtype == two.dtype == torch.float32
        # a sum in another order rounds to the neighbor in bfloat16, if at all
        torch.testing.assert_close(one, two, rtol=2**-8, atol=2**-8 * float(one.abs().max()))


def test_what_is_multiplied_is_rounded_on_both_kinds_of_processor():
    nearly, one = 1 + 2**-9, 1.0
    for weight, x in (([nearly, -one], [one, one]), ([one, -one], [nearly, one])):
        assert RoundedProduct(torch.tensor([weight]), None)(torch.tensor([x])).item() == 0
