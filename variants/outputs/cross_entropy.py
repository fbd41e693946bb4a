"""Cross entropy of many words, whose gradient is made while their logarithms are in cache.

PyTorch's gradient first fills a matrix with the gradient of the chosen words, then reads it and
the logarithms of all words, and widens half precision on the way there and back. Over a vocabulary
of thousands of words that is a tenth of a training step.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from variants.precision import at_least_single


def cross_entropy(logits: Float[Tensor, "n V"], targets: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """-log softmax(logits) of each row's target (nats), in at least float32.

    Differentiable once.
    """
    return _CrossEntropy.apply(logits, targets)


class _CrossEntropy(torch.autograd.Function):
    """The gradient of a row is its softmax, less one at the target, in the format of the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        known = torch.log_softmax(at_least_single(logits), -1)
        chosen = targets.unsqueeze(1)
        found = known.gather(1, chosen).squeeze(1).neg_()
        if ctx.needs_input_grad[0]:
            # while the logarithms are in cache
            slopes = known.exp_().scatter_add_(1, chosen, known.new_full(chosen.shape, -1.0))
            ctx.save_for_backward(slopes.to(logits.dtype))
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * grads[0].unsqueeze(1).to(slopes.dtype), None
