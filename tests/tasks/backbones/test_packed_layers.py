"""Packed sentences: what torch's own layers say, at a cost linear in the length."""

from itertools import product

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.backbones.packed_layers import read_packed, read_padded, torch_would_slice
from tasks.backbones.recurrent_layers import encode, recurrent

ROWS, INPUTS, HIDDEN = 6, 5, 8


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def packed(x, lengths):
    return pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)


def answers(rnn, read, x, lengths):
    """States, last states, and the gradients of the input and of every parameter."""
    given = x.clone().requires_grad_()
    run, last = read(packed(given, lengths))
    last = last[0] if isinstance(last, tuple) else last
    rnn.zero_grad()
    total = (run.data * drawn(*run.data.shape, dtype=x.dtype)).sum()
    (total + (last * drawn(*last.shape, dtype=x.dtype)).sum()).backward()
    return [run.data, last, given.grad, *(p.grad.clone() for p in rnn.parameters())]


@pytest.mark.parametrize(
    ("cell", "layers", "both_ways", "dtype"),
    list(product(("gru", "lstm"), (1, 2), (False, True), (torch.float32, torch.float64))),
)
@pytest.mark.parametrize("lengths", [[4, 9, 1, 9, 2, 6], [3] * ROWS], ids=["mixed", "equal"])
def test_states_and_gradients_are_those_of_torch(cell, layers, both_ways, dtype, lengths):
    torch.manual_seed(0)
    rnn = recurrent(cell, INPUTS, HIDDEN, layers=layers, both_ways=both_ways).to(dtype)
    x = drawn(ROWS, max(lengths), INPUTS, dtype=dtype)
    slices = torch_would_slice(rnn, packed(x, lengths))
    assert slices == (cell == "gru" or len(set(lengths)) > 1)
    ours = answers(rnn, lambda given: read_packed(rnn, given), x, lengths)
    theirs = answers(rnn, rnn, x, lengths)
    for found, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_states_are_the_same_bits_without_gradients(cell):
    torch.manual_seed(0)
    rnn, x = recurrent(cell, INPUTS, HIDDEN, both_ways=True), drawn(ROWS, 9, INPUTS)
    given = packed(x, [4, 9, 1, 9, 2, 6])
    with_gradients = read_packed(rnn, given)
    with torch.no_grad():
        without = read_packed(rnn, given)
    assert torch.equal(with_gradients[0].data, without[0].data)
    assert torch.equal(with_gradients[1], without[1])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_padded_sentences_go_on_from_what_is_carried_as_in_torch(cell):
    torch.manual_seed(0)
    rnn = recurrent(cell, INPUTS, HIDDEN, layers=2).double()
    x = drawn(ROWS, 7, INPUTS, dtype=torch.float64).requires_grad_()
    first = [
        drawn(2, ROWS, HIDDEN, dtype=torch.float64).mul(n).requires_grad_()
        for n in range(1, 2 if cell == "gru" else 3)
    ]
    theirs, ends = rnn(x, first[0] if cell == "gru" else tuple(first))
    states, last = read_padded(rnn, x, first)
    found, wanted = (states, *last), (theirs, *(ends if isinstance(ends, tuple) else (ends,)))
    slopes = [drawn(*one.shape, dtype=torch.float64) for one in wanted]
    parts = (x, *first, *rnn.parameters())
    for one, two in zip(
        (*found, *torch.autograd.grad(found, parts, slopes)),
        (*wanted, *torch.autograd.grad(wanted, parts, slopes)),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("begins", [False, True])
def test_where_networks_are_trained_in_half_precision_sums_are_those_of_the_weights(cell, begins):
    """What comes out of a product is in bfloat16 there, and is carried in float32 all the same."""
    torch.manual_seed(0)
    rnn, x = recurrent(cell, INPUTS, HIDDEN, layers=2), drawn(ROWS, 7, INPUTS).bfloat16()
    first = [drawn(2, ROWS, HIDDEN).bfloat16() for _ in range(1 if cell == "gru" else 2)]
    given = packed(x, [4, 7, 1, 7, 2, 6])
    with torch.autocast("cpu", torch.bfloat16):
        run, last = read_packed(rnn, given)
        states, ends = read_padded(rnn, x, first if begins else None)
    last = last if isinstance(last, tuple) else (last,)
    assert {one.dtype for one in (run.data, *last, states, *ends)} == {torch.float32}
    # the product with the input alone is in half precision
    wanted, _ = read_padded(rnn, x.float(), [one.float() for one in first] if begins else None)
    torch.testing.assert_close(states, wanted, rtol=0, atol=0.02)
    states.sum().backward()
    assert all(p.grad.isfinite().all() for p in rnn.parameters())


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_rows_of_a_batch_are_read_as_if_alone(cell, near):
    torch.manual_seed(0)
    rnn = recurrent(cell, INPUTS, HIDDEN, both_ways=True).double()
    x, lengths = drawn(3, 7, INPUTS, dtype=torch.float64), [2, 7, 4]
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    states, last = encode(rnn, x, mask)
    for row, length in enumerate(lengths):
        alone, end = encode(rnn, x[row : row + 1, :length], None)
        near(states[row, :length], alone[0])
        near(last[:, row], end[:, 0])
        assert not states[row, length:].any()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_row_without_tokens_has_states_of_zero_and_changes_no_bit_of_the_others(cell, layers):
    torch.manual_seed(0)
    rnn = recurrent(cell, INPUTS, HIDDEN, layers=layers, both_ways=True)
    empty, lengths = torch.tensor([1, 4]), torch.tensor([2, 0, 7, 4, 0])
    x = drawn(5, 7, INPUTS).requires_grad_()
    mask = torch.arange(7) < lengths[:, None]
    states, last = encode(rnn, x, mask)
    assert not states[~mask].any()
    assert not last[:, empty].any()
    (states.square().sum() + last.square().sum()).backward()
    found = [one.grad.clone() for one in rnn.parameters()]
    assert x.grad is not None
    assert not x.grad[~mask].any()
    # torch reads no empty row: here the first padded token of each is real
    rnn.zero_grad()
    others = lengths > 0
    read, end = encode(rnn, x, torch.arange(7) < lengths.clamp(min=1)[:, None])
    assert read[empty, 0].any()
    assert torch.equal(states[others], read[others])
    assert torch.equal(last[:, others], end[:, others])
    rnn.zero_grad()
    read, end = encode(rnn, x[others], mask[others])
    (read.square().sum() + end.square().sum()).backward()
    for one, two in zip(found, (one.grad for one in rnn.parameters()), strict=True):
        torch.testing.assert_close(one, two)


class Written(TorchDispatchMode):
    """Counts the numbers that operations put out."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not func.is_view:
            self.count += found.numel()
        return found


def test_the_backward_pass_is_linear_in_the_length():
    rnn = recurrent("gru", INPUTS, HIDDEN, both_ways=True)

    def cost(length: int) -> int:
        rnn.zero_grad()
        run, _ = read_packed(rnn, packed(drawn(ROWS, length, INPUTS), [length] * ROWS))
        total = run.data.sum()
        with Written() as written:
            total.backward()
        return written.count

    # from length to length the same is added; a gradient of the whole a step would add ever more
    assert cost(80) - cost(60) == cost(60) - cost(40)
