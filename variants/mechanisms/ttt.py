"""TTT-Linear: a linear map is trained on the keys and values so far, and answers the queries.

Sun et al., 2024, "Learning to (learn at test time): RNNs with expressive hidden states",
https://arxiv.org/abs/2407.04620, section 2.

Deviations: the rate of a token does not depend on its place in its batch, and is divided by the
width, as in the authors' code. Neither its map nor the map that is trained has a bias. The loss is
halved, as in their code and not in the paper. Queries and keys are turned where `position=rope` is
asked for, by their places in the sentence and not in the batch. There is no norm behind the layer
and no gate of the output. A query that no key has come before is answered by zeros. Padding takes
places in a batch.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, QueryShape
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, State, Tree, leaf
from variants.mechanisms.chunked_state import full_products
from variants.mechanisms.state_recurrence import (
    StateRecurrence,
    Table,
    Token,
    oracle_product,
)
from variants.mechanisms.turned import Turned
from variants.precision import wide_format

EPS = 1e-6
"""Added to variances."""
SPREAD = 0.02
"""Deviation of the map before the first token, as drawn."""


@dataclass(frozen=True, kw_only=True)
class TttConfig(Config):
    """Options of TTT-Linear."""

    batch: Annotated[int, IntRange(2, 64, log=True)] = 16
    """Tokens whose gradients are taken at the same map, b."""

    def __post_init__(self) -> None:
        """Check the batch."""
        if self.batch < 1:
            raise InvalidConfig(f"ttt: batch must be at least 1, got {self.batch}.")


@register(
    "mechanism",
    "ttt",
    title="Test-time training (TTT-Linear)",
    config=TttConfig,
    citation=Citation(
        text="Sun et al., 2024", url="https://arxiv.org/abs/2407.04620", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Sun et al. train models of 125 million to 1.3 billion parameters. They report that "
        "perplexity goes on falling over long texts, as with a transformer, where that of "
        "Mamba stops after 16,000 tokens. The inputs of this task are far shorter, and "
        "softmax attention keeps every pair of them."
    ),
)
class Ttt(Turned, StateRecurrence):
    """f(x; W) = x + norm(x W); W goes down the gradient of |f(k; W) - v|^2 / 2, o_t = f(q; W_t).

    norm is a layer norm with trained gain and shift. Gradients of a batch of tokens are all taken
    at the map before the batch, and are applied token by token. Time O(L E (E + batch)) per head.
    """

    counts_places = True

    def __init__(self, config: TttConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        if dims.value_width != dims.key_width:
            raise Refused(
                "ttt adds what it reads to the query, so values must be as wide as keys, "
                f"got {dims.value_width} and {dims.key_width}."
            )
        self.batch = config.batch
        self.key_inputs = {"rate": SlotInput(1)}
        heads, width = dims.heads, dims.key_width
        self.first = nn.Parameter(SPREAD * torch.randn(heads, width, width))
        self.gain = nn.Parameter(torch.ones(heads, width))
        self.shift = nn.Parameter(torch.zeros(heads, width))
        self.starts = {"gain": 1.0, "shift": 0.0}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """The first map, which is also the one before the first batch."""
        dtype = wide_format(like.dtype)
        matrix = self.first.to(dtype).expand(like.rows, -1, -1, -1)
        seen = torch.zeros(like.rows, dtype=dtype, device=like.device)
        return State(carried={"matrix": matrix, "before": matrix, "seen": seen})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Learn and answer, batch by batch; a call may begin and end within one."""
        matrix, before, seen = (leaf(carried, name) for name in ("matrix", "before", "seen"))
        same, mask = self.widened(call, matrix.dtype), call.memory.source.mask
        source, length = same.memory.source, call.query.shape[2]
        rate = torch.sigmoid(leaf(source.extras, "rate")) / self.dims.key_width
        if mask is not None:
            rate = torch.where(mask[:, None, :, None], rate, 0.0)
        read, at = [], 0
        while at < length:
            end = min(length, at + self.batch - (call.offset + at) % self.batch)
            some = slice(at, end)
            key, query = source.key[:, :, some], same.query[:, :, some]
            # products in half precision would lose what sums of steps need
            with full_products(matrix):
                error = self._error(key, source.value[:, :, some], before)
                step = -rate[:, :, some] * error
                read.append((query @ key.mT).tril() @ step + query @ matrix)
                matrix = matrix + key.mT @ step
            before = matrix if (call.offset + end) % self.batch == 0 else before
            at = end
        output = same.query + self._normed(torch.cat(read, 2))
        real = call.memory.source.key_mask().to(matrix.dtype)
        count = seen[:, None] + real.cumsum(1)
        output = torch.where(count[:, None, :, None] > 0, output, 0.0)
        if (call.offset + length) % self.batch == 0:
            before = matrix.clone()  # the next token parts them, so that both are kept
        after = {"matrix": matrix, "before": before, "seen": count[:, -1].clone()}
        return MixResult(output.to(call.query.dtype), None, after, {})

    def _normed(self, x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n E"]:
        """The layer norm of each head."""
        gain, shift = (one.to(x.dtype)[:, None] for one in (self.gain, self.shift))
        return gain * _standardized(x)[0] + shift

    def _error(
        self,
        key: Float[Tensor, "B H n E"],
        value: Float[Tensor, "B H n E"],
        matrix: Float[Tensor, "B H E E"],
    ) -> Float[Tensor, "B H n E"]:
        """Gradient of the squared error with respect to k W, through the norm."""
        inner = key @ matrix
        standard, size = _standardized(inner)
        error = key + self._normed(inner) - value
        weighted = self.gain.to(key.dtype)[:, None] * error
        along = (weighted * standard).mean(-1, keepdim=True)
        return (weighted - weighted.mean(-1, keepdim=True) - along * standard) / size

    def oracle_start(self, value: Float[Tensor, "S E"]) -> Table:
        """The map and that before the batch stand beside each other; heads fill them in."""
        width = value.shape[1]
        return value.new_zeros(width, 2 * width)

    def oracle_step(self, matrix: Table, token: Token) -> Table:
        """One step down the gradient that autograd finds at the map before the batch."""
        width = len(token.key)
        if token.place == 0:
            matrix = torch.cat((self.first[token.head],) * 2, 1)
        now, before = matrix.split(width, 1)
        if token.place % self.batch == 0:
            before = now
        with torch.enable_grad():
            at = before if before.requires_grad else before.detach().requires_grad_()
            guess = token.key + self._oracle_norm(oracle_product(token.key, at), token.head)
            loss = (guess - token.value).square().sum() / 2
            (gradient,) = torch.autograd.grad(loss, at, create_graph=True)
        rate = 1 / (1 + torch.exp(-token.given["rate"][0])) / width
        return torch.cat((now - rate * gradient, before), 1)

    def oracle_read(self, matrix: Table, token: Token) -> Float[Tensor, " E"]:
        """What the map makes of the query."""
        read = oracle_product(token.query, matrix[:, : len(token.query)])
        return token.query + self._oracle_norm(read, token.head)

    def _oracle_norm(self, x: Float[Tensor, " E"], head: int) -> Float[Tensor, " E"]:
        """Unit by unit."""
        mean = sum(x, 0 * x[0]) / len(x)
        variance = sum(((unit - mean) ** 2 for unit in x), 0 * x[0]) / len(x)
        return torch.stack(
            [
                self.gain[head, e] * (x[e] - mean) / torch.sqrt(variance + EPS)
                + self.shift[head, e]
                for e in range(len(x))
            ]
        )


def _standardized(
    x: Float[Tensor, "B H n E"],
) -> tuple[Float[Tensor, "B H n E"], Float[Tensor, "B H n 1"]]:
    """Each vector with mean zero and variance one, and the deviation it had."""
    centered = x - x.mean(-1, keepdim=True)
    size = (centered.square().mean(-1, keepdim=True) + EPS).sqrt()
    return centered / size, size
