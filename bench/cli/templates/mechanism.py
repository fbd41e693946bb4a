"""Say in one sentence what stands in the place of the chain; here the mean of all values.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from collections.abc import Mapping
from typing import ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.capabilities import Capability
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import DefaultTask, register
from bench.api.source import Memory, Source, Tree, leaf
from bench.api.variant import Variant
from variants.precision import at_least_single


@register(
    "mechanism",
    "new_name",
    title="The name that tables print",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameMechanism(Variant):
    """o = sum_s v_s / S; no parameters; time O(S Ev) once a source.

    A mechanism that keeps a state from token to token has a template of its own, `--axis
    recurrence`.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "the mean is of a source that is there as a whole"
    }

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)

    def prepare(self, source: Source) -> Memory:
        """The mean over real keys, or zero where there are none."""
        value = at_least_single(source.value)
        if source.mask is not None:
            value = torch.where(source.mask[:, None, :, None], value, 0.0)
        count = source.length.clamp(min=1).to(value.dtype)[:, None, None, None]
        mean = value.sum(2, keepdim=True) / count
        return Memory(source, {"mean": mean.to(source.value.dtype)})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """The same for every query."""
        heads, length = call.query.shape[1:3]
        found = expand_heads(leaf(call.memory.parts, "mean"), heads)
        return MixResult(found.expand(-1, -1, length, -1), None, carried, {})

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """The same, value by value; written from the paper, not from `prepare`."""
        heads, length, _ = query.shape
        group = heads // source.value.shape[1]
        found = []
        for head in range(heads):
            values = list(source.value[0, head // group])
            found += [sum(values[1:], values[0]) / len(values)] * length
        return torch.stack(found).unflatten(0, (heads, length)), None
