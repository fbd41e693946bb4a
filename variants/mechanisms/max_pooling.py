"""Max pooling: each feature of the output is its largest value over all keys, without any query.

Collobert et al., 2011, "Natural language processing (almost) from scratch",
https://arxiv.org/abs/1103.0398, section 3.2.2 (max over time); Yang et al., 2016,
https://aclanthology.org/N16-1174, table 2 (HN-MAX) compares attention with it.

Deviations: none.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, MixResult, Read
from bench.api.capabilities import Capability
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, Tree, leaf
from bench.api.variant import Variant


@register(
    "mechanism",
    "max_pooling",
    title="Max pooling",
    citation=Citation(
        text="Collobert et al., 2011",
        url="https://arxiv.org/abs/1103.0398",
        where="section 3.2.2",
    ),
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=birnn]"),
    does_not_show=(
        "Collobert et al. use it where a label belongs to a whole sentence and compare it with no "
        "attention, which came later, so they claim no advantage over it. Yang et al. report it "
        "behind attention in their table 2."
    ),
)
class MaxPooling(Variant):
    """o_f = max_s v_sf; no parameters; time O(S Ev) once per source.

    It has no weights: each feature comes from a key of its own.
    """

    gives = frozenset({"key_local"})
    time_exponent = 1.0
    memory_exponent = 1.0
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "a maximum so far may leave out the query's own value altogether"
    }

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)

    def prepare(self, source: Source) -> Memory:
        """The maximum over real keys, or zero where there are none."""
        value = source.value
        if source.mask is None:
            return Memory(source, {"largest": value.amax(2, keepdim=True)})
        real = source.mask[:, None, :, None]
        largest = torch.where(real, value, torch.finfo(value.dtype).min).amax(2, keepdim=True)
        return Memory(source, {"largest": torch.where(real.any(2, keepdim=True), largest, 0.0)})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """The same for every query."""
        heads, length = call.query.shape[1:3]
        found = expand_heads(leaf(call.memory.parts, "largest"), heads)
        return MixResult(found.expand(-1, -1, length, -1), None, carried, {})

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """The larger of two values, key by key and feature by feature."""
        heads, length, _ = query.shape
        value_group = heads // source.value.shape[1]
        found = []
        for head in range(heads):
            largest = list(source.value[0, head // value_group, 0])
            for value in source.value[0, head // value_group, 1:]:
                largest = [max(x, y) for x, y in zip(value, largest, strict=True)]
            found += [torch.stack(largest)] * length
        return torch.stack(found).unflatten(0, (heads, length)), None
