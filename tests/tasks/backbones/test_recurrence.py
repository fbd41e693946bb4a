"""Steps of a recurrent layer as one operation, whose written backward pass is the derivative."""

import pytest
import torch
from torch import nn

from tasks.backbones import rounded_product
from tasks.backbones.recurrence import read_steps

WIDTH = 3
GATES = {1: 3, 2: 4}
"""Gates of what carries so many vectors from step to step: a GRU, and an LSTM."""
KINDS = pytest.mark.parametrize("carries", GATES, ids=["gru", "lstm"])
BACK = pytest.mark.parametrize("back", [False, True], ids=["forward", "backward"])


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def operands(carries: int, rows: list[int], dtype: torch.dtype = torch.float64, width: int = WIDTH):
    gates = GATES[carries] * width
    given, weight = (
        drawn(sum(rows), gates, seed=1, dtype=dtype),
        drawn(gates, width, seed=2, dtype=dtype),
    )
    first = [drawn(max(rows), width, seed=4 + n, dtype=dtype) for n in range(carries)]
    return given, weight, drawn(gates, seed=3, dtype=dtype), *first


def asked(rows: list[int], *, back: bool, rounded: bool = False):
    def ask(given, weight, bias, *first):
        states, last = read_steps(given, weight, bias, first, rows, back=back, rounded=rounded)
        return states, *last

    return ask


@KINDS
@BACK
@pytest.mark.parametrize("rows", [[4, 4, 4], [4, 3, 3, 1], [1]], ids=str)
def test_the_backward_pass_is_the_derivative(carries, back, rows):
    assert torch.autograd.gradcheck(asked(rows, back=back), operands(carries, rows))


@KINDS
def test_steps_are_those_of_a_cell_of_torch(carries):
    cell = (nn.GRUCell if carries == 1 else nn.LSTMCell)(WIDTH, WIDTH).double()
    x, rows = drawn(6, WIDTH, seed=9), [3, 2, 1]
    first = [drawn(3, WIDTH, seed=n) for n in range(carries)]
    given = x @ cell.weight_ih.T + cell.bias_ih
    states, last = read_steps(
        given, cell.weight_hh, cell.bias_hh, tuple(first), rows, back=False, rounded=False
    )
    carried, at, said = [one.clone() for one in first], 0, []
    for count in rows:
        before = [one[:count] for one in carried]
        after = cell(x[at : at + count], before[0] if carries == 1 else tuple(before))
        for kept, new in zip(carried, after if carries == 2 else (after,), strict=True):
            kept[:count] = new
        said.append(carried[0][:count].clone())
        at += count
    torch.testing.assert_close(states, torch.cat(said))
    for found, wanted in zip(last, carried, strict=True):
        torch.testing.assert_close(found, wanted)


@KINDS
@BACK
def test_products_in_bfloat16_change_little_and_rows_beside_a_step_nothing(
    carries, back, monkeypatch
):
    monkeypatch.setattr(rounded_product, "SMALL", 0)
    rows = [70, 65, 64, 3]
    parts = operands(carries, rows, torch.float32, width=16)
    parts[1].data /= 4
    found = {}
    for rounded in (False, True):
        said = asked(rows, back=back, rounded=rounded)(*parts)
        slopes = [drawn(*one.shape, seed=7, dtype=torch.float32) for one in said]
        found[rounded] = (*said, *torch.autograd.grad(said, parts, slopes))
    for exact, rough in zip(found[False], found[True], strict=True):
        assert rough.dtype == torch.float32
        assert 0 < (exact - rough).norm() < 0.02 * exact.norm()
    # buffers are not emptied: what memory held before is in no result
    again = asked(rows, back=back, rounded=True)(*parts)
    for one, two in zip(again, found[True], strict=False):
        assert torch.equal(one, two)


def test_a_weight_that_learns_nothing_is_left_out():
    given, weight, bias, first = operands(1, [2, 1])
    states = asked([2, 1], back=False)(given, weight.detach(), bias.detach(), first)[0]
    states.sum().backward()
    assert given.grad is not None
    assert first.grad is not None
