"""Decay by a rate of each head and a step of each token, as in Mamba-2.

Dao & Gu, 2024, https://arxiv.org/abs/2405.21060, section 7.1: a = exp(-D exp(A)) with the step
D = softplus(what the token says + a bias). Rates exp(A) are drawn from 1 to 16, and biases such
that steps begin between 0.001 and 0.1, as in the authors' code.

The gradient of A is a difference of long sums, which in float32 loses digits where steps are long:
in sequences of 80 tokens up to 1% where what tokens say has a scale of 30, a third where it is 100.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call
from bench.api.source import leaf
from variants.mechanisms.chunked_state import Steps
from variants.softplus import inverse_softplus_of_each

SHORTEST, LONGEST = 0.001, 0.1
FASTEST = 16.0


def drawn_rates(heads: int) -> Float[Tensor, " H"]:
    """A, the logarithm of a rate for each head."""
    return (1 + (FASTEST - 1) * torch.rand(heads)).log()


def drawn_biases(*shape: int) -> Float[Tensor, "*n"]:
    """Biases behind which softplus gives steps that are spread evenly on a logarithmic scale."""
    low, high = math.log(SHORTEST), math.log(LONGEST)
    return inverse_softplus_of_each((low + (high - low) * torch.rand(shape)).exp())


def steps_of(
    said: Float[Tensor, "B H n w"], bias: Float[Tensor, "H w"]
) -> Float[Tensor, "B H n w"]:
    """Steps, which are positive."""
    return functional.softplus(said + bias.to(said.dtype)[:, None])


def log_decays(
    step: Float[Tensor, "B H n w"], rates: Float[Tensor, " H"]
) -> Float[Tensor, "B H n w"]:
    """Logarithms of decays, which are not positive."""
    return -rates.to(step.dtype).exp()[:, None, None] * step


def decaying_steps(call: Call, bias: Float[Tensor, "H 1"], rates: Float[Tensor, " H"]) -> Steps:
    """A token writes as much as its step is long, and the longer the more is forgotten."""
    source = call.memory.source
    step = steps_of(leaf(source.extras, "step"), bias)
    return Steps(call.query, source.key, step * source.value, log_decays(step, rates))


def oracle_softplus(said: Tensor, bias: Tensor) -> Tensor:
    """`steps_of` for one number."""
    return torch.log(1 + torch.exp(said + bias))


def oracle_decay(step: Tensor, rate: Tensor) -> Tensor:
    """The decay of one step."""
    return torch.exp(-torch.exp(rate) * step)
