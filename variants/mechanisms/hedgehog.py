"""Hedgehog: trained features, a softmax over the units of a map of each query or key.

Zhang et al., 2024, "The hedgehog & the porcupine: expressive linear attentions with softmax
mimicry", https://arxiv.org/abs/2402.04347, section 4.

Deviations: trained with the task alone, not by distillation from softmax attention; no bias. 1e-6
is added to the sum of weights.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.feature_attention import FeatureAttention
from variants.mechanisms.turned import Turned
from variants.per_head_linear import per_head_linear


@register(
    "mechanism",
    "hedgehog",
    title="Linear attention (Hedgehog)",
    citation=Citation(
        text="Zhang et al., 2024", url="https://arxiv.org/abs/2402.04347", where="section 4"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Zhang et al. report that it comes closer to softmax attention than other feature maps, "
        "with 125 million parameters on WikiText-103 and with 7 billion (Llama 2). That holds "
        "above all where a trained transformer is converted with a loss that compares weights. "
        "Here it is trained with the task alone, and a state of a fixed size stands against one "
        "that keeps all keys."
    ),
)
class Hedgehog(Turned, FeatureAttention):
    """f(x) = softmax([W x, -W x]) with maps W of queries and of keys that start as the identity.

    Time O((L + S) E (E + Ev)) per head.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, 2 * dims.key_width)
        identity = torch.eye(dims.key_width)
        self.to_query = nn.Parameter(identity.repeat(dims.heads, 1, 1))
        self.to_key = nn.Parameter(identity.repeat(dims.heads, 1, 1))
        self.starts = {"to_query": identity, "to_key": identity}

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """Softmax over the mapped key and its negative."""
        return _softmax_of_both(per_head_linear(x, self.to_key.to(x.dtype)))

    def of_queries(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """Softmax over the mapped query and its negative."""
        return _softmax_of_both(per_head_linear(x, self.to_query.to(x.dtype)))

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Exponential by exponential."""
        return _oracle_softmax_of_both(x, self.to_key[head])

    def oracle_of_query(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Exponential by exponential."""
        return _oracle_softmax_of_both(x, self.to_query[head])


def _softmax_of_both(x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n F"]:
    return torch.softmax(torch.cat((x, -x), -1), -1)


def _oracle_softmax_of_both(
    x: Float[Tensor, " E"], matrix: Float[Tensor, "E E"]
) -> Float[Tensor, " F"]:
    width, zero = len(x), x.new_zeros(())
    mapped = [sum((x[e] * matrix[e, u] for e in range(width)), zero) for u in range(width)]
    both = mapped + [-unit for unit in mapped]
    total = sum((torch.exp(unit) for unit in both), zero)
    return torch.stack([torch.exp(unit) / total for unit in both])
