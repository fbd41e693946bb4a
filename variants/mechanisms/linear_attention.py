"""Linear attention: a product of feature maps replaces softmax, so that all keys become one matrix.

Katharopoulos et al., 2020, "Transformers are RNNs: fast autoregressive transformers with linear
attention", https://arxiv.org/abs/2006.16236, sections 3.2 to 3.4.

Deviations: none; 1e-6 is added to the normalizer as in the authors' code.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.call import Dims
from bench.api.config import NoOptions
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.feature_attention import FeatureAttention
from variants.mechanisms.turned import Turned


@register(
    "mechanism",
    "linear_attention",
    title="Linear attention (elu + 1)",
    citation=Citation(
        text="Katharopoulos et al., 2020",
        url="https://arxiv.org/abs/2006.16236",
        where="sections 3.2 to 3.4",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Katharopoulos et al. report a quality near that of softmax attention at up to 4,000 times "
        "the speed where very long sequences are generated, and no gain of quality over it. "
        "Sequences of this task have at most 128 symbols. Costs are in the tables of speed."
    ),
    rosters=("quick", "standard"),
)
class LinearAttention(Turned, FeatureAttention):
    """f(q).M / (f(q).z + eps), M = sum f(k) v, z = sum f(k), f(x) = elu(x) + 1.

    Time O((L + S) E Ev) per head. Cross attention keeps M and z in the memory, causal
    self-attention in the state, in float32 at least; nothing grows with the number of keys.
    """

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, dims.key_width)

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """elu(x) + 1."""
        return functional.elu(x) + 1

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " E"]:
        """elu(x) + 1, unit by unit."""
        return torch.stack([unit + 1 if unit > 0 else torch.exp(unit) for unit in x])
