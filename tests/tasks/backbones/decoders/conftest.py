"""Equations in plain tensors, shared by the tests of single decoders."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch


@pytest.fixture
def loops() -> SimpleNamespace:
    """`affine`, `sigmoid`, `softmax`, `mixed`, `lstm`, and `ask` for the additive score."""
    return SimpleNamespace(
        affine=affine, sigmoid=sigmoid, softmax=softmax, mixed=mixed, lstm=lstm, ask=ask
    )


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 1 / (1 + torch.exp(-x))


def affine(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    found = layer.weight @ x
    return found if layer.bias is None else found + layer.bias


def softmax(energies: list[torch.Tensor]) -> list[torch.Tensor]:
    exps = [torch.exp(energy) for energy in energies]
    return [one / sum(exps) for one in exps]


def mixed(weights: list[torch.Tensor], vectors: list[torch.Tensor]) -> torch.Tensor:
    return sum(w * v for w, v in zip(weights, vectors, strict=True))


def lstm(weights: Callable[[str], torch.Tensor], x, hidden, cell):
    """One step; `weights` finds a matrix or a bias by the beginning of its name in torch."""
    gates = weights("weight_ih") @ x + weights("bias_ih")
    gates = gates + weights("weight_hh") @ hidden + weights("bias_hh")
    entering, forgetting, fresh, leaving = gates.chunk(4)
    cell = sigmoid(forgetting) * cell + sigmoid(entering) * torch.tanh(fresh)
    return sigmoid(leaving) * torch.tanh(cell), cell


def ask(slot, query, states):
    """The additive score, a softmax and a mean."""
    own = slot.variant.score
    w, u, b, v = own.query_map[0], own.key_map[0], own.bias[0, 0], own.v[0, :, 0]
    weights = softmax([v @ torch.tanh(query @ w + state @ u + b) for state in states])
    return mixed(weights, states), weights
