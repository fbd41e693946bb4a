"""Layers whose products are taken in bfloat16 say nearly what those in float32 say."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from tasks.backbones import precision, rounded_product
from tasks.backbones.precision import Bfloat16GRUCell, multiply_in, reading_a_sequence
from tasks.backbones.rounded_product import RoundedProduct


@pytest.fixture(autouse=True, params=[torch.bfloat16, torch.float32], ids=str)
def every_product(request, monkeypatch):
    """All products are rounded; every test holds on both kinds of processor."""
    monkeypatch.setattr(rounded_product, "SMALL", 0)
    monkeypatch.setattr(rounded_product, "format_of_factors", lambda device: request.param)


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rounded(kind: type[nn.Module], *sizes: int, **options) -> tuple[nn.Module, nn.Module]:
    """A layer, and the same in bfloat16."""
    torch.manual_seed(0)
    exact, rough = nn.Sequential(kind(*sizes, **options)), nn.Sequential(kind(*sizes, **options))
    rough.load_state_dict(exact.state_dict())
    multiply_in(rough, "bfloat16")
    assert type(rough[0]) is precision.ROUNDED[kind]
    return exact[0], rough[0]


def near(found, wanted, share=0.02):
    for one, two in zip(found, wanted, strict=True):
        assert one.dtype == two.dtype == torch.float32
        assert 0 < (one - two).norm() < share * two.norm()


def gradients(layer: nn.Module, total: torch.Tensor) -> list[torch.Tensor]:
    layer.zero_grad()
    total.backward()
    return [one.grad.clone() for one in layer.parameters()]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
@pytest.mark.parametrize("packed", [True, False])
def test_layers_say_nearly_what_those_in_float32_say(kind, packed):
    exact, rough = rounded(kind, 5, 8, 2, bidirectional=True, batch_first=True)
    x, weights = drawn(3, 6, 5), drawn(3, 6, 16, seed=2)
    found = []
    for layer in (exact, rough):
        if packed:
            lengths = torch.tensor([4, 6, 2])
            given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            states = layer(given)[0].data
            total = (states * weights.flatten(0, 1)[: len(states)]).sum()
        else:
            states, last = layer(x)
            ends = last if isinstance(last, tuple) else (last,)
            total = (states * weights).sum() + sum(end.square().sum() for end in ends)
        found.append((states.detach(), *gradients(layer, total)))
    near(found[1], found[0])


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_layers_go_on_from_what_was_carried(kind):
    _, rough = rounded(kind, 5, 8, 2, batch_first=True)
    x = drawn(3, 6, 5)
    with torch.no_grad():
        whole, end = rough(x)
        _, carried = rough(x[:, :4])
        states, last = rough(x[:, 4:], carried)
    assert torch.equal(states, whole[:, 4:])
    for one, two in zip(last, end, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell])
def test_cells_round_their_weights_once_in_a_sequence(kind, monkeypatch):
    exact, rough = rounded(kind, 5, 8)
    made = []
    real = RoundedProduct.__init__
    monkeypatch.setattr(
        RoundedProduct, "__init__", lambda self, *given: made.append(1) or real(self, *given)
    )
    found = []
    for cell in (exact, rough):
        with reading_a_sequence(nn.Sequential(cell)):
            carried = None
            for word in drawn(4, 3, 5):
                carried = cell(word, carried)
        state = carried[0] if isinstance(carried, tuple) else carried
        found.append((state.detach(), *gradients(cell, (state * drawn(3, 8)).sum())))
    near(found[1], found[0])
    assert len(made) == 2
    assert isinstance(rough, precision.RoundedCell)
    assert rough.products is None
    rough(drawn(3, 5))
    assert len(made) == 4


def test_cells_forget_their_products_where_a_sequence_ends_in_an_error():
    cell = rounded(nn.GRUCell, 5, 8)[1]
    assert isinstance(cell, Bfloat16GRUCell)
    with pytest.raises(RuntimeError), reading_a_sequence(nn.Sequential(cell)):
        raise RuntimeError
    assert cell.products is None


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_layers_have_the_same_gradients_after_those_of_their_inputs_alone(kind):
    _, rough = rounded(kind, 5, 8, 2, bidirectional=True, batch_first=True)
    x = drawn(3, 6, 5).requires_grad_()
    wanted = gradients(rough, rough(x)[0].square().sum())
    total = rough(x)[0].square().sum()
    torch.autograd.grad(total, x, retain_graph=True)
    for one, two in zip(gradients(rough, total), wanted, strict=True):
        assert torch.equal(one, two)
