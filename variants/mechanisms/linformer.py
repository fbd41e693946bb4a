"""Linformer: keys and values are mixed along the sequence into a fixed number of them.

Wang et al., 2020, "Linformer: self-attention with linear complexity",
https://arxiv.org/abs/2006.04768, section 4, equation 7.

Deviations: the matrices are those of one layer and shared by its heads, the paper's headwise
sharing; they have `longest` columns, of which a shorter sequence uses the first. Padding is made
zero before they are applied. They start normal with variance 1 / rank, as R in theorem 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, Read
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, Tree, leaf
from variants.mechanisms.turned import Turned
from variants.normalizers.masked_softmax import oracle_softmax


@dataclass(frozen=True, kw_only=True)
class LinformerConfig(Config):
    """Options of Linformer."""

    rank: Annotated[int, IntRange(4, 256, log=True)] = 64
    """k, keys and values that are left."""
    longest: Annotated[int, IntRange(512, 8192, log=True)] = 1024
    """Longest sequence that can be read (tokens)."""

    def __post_init__(self) -> None:
        """Check both sizes."""
        if self.rank < 1 or self.longest < 1:
            raise InvalidConfig(
                "linformer: rank and longest must be at least 1, "
                f"got {self.rank} and {self.longest}."
            )


@register(
    "mechanism",
    "linformer",
    title="Linformer",
    config=LinformerConfig,
    citation=Citation(
        text="Wang et al., 2020",
        url="https://arxiv.org/abs/2006.04768",
        where="section 4, equation 7",
    ),
    default_task=DefaultTask(
        task="transduction[rule=reverse]", backbone="transformer_seq2seq", slot="self"
    ),
    does_not_show=(
        "Wang et al. report the quality of full attention at less cost on sequences of 512 tokens "
        "and more, after pretraining on 3.3 billion words. Costs are in the tables of speed. Its "
        "matrices have a column for each place, and those beyond the lengths of training were "
        "never trained."
    ),
)
class Linformer(Turned):
    """softmax(Q (E K)' / sqrt(d)) F V, where E and F have `rank` rows and a column a place.

    Time O((L + S) rank d) per head. A later key would reach earlier queries through every row of
    E, so there is no causal form.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it mixes keys along the sequence, so that later ones reach earlier queries",
    }
    time_exponent = 1.0
    memory_exponent = 1.0

    def __init__(self, config: LinformerConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        shape = config.rank, config.longest
        self.mix_keys = nn.Parameter(torch.randn(shape) * config.rank**-0.5)
        self.mix_values = nn.Parameter(torch.randn(shape) * config.rank**-0.5)
        self.scale = dims.key_width**-0.5

    def prepare(self, source: Source) -> Memory:
        """Mix keys and values along the sequence, once per source.

        Raises:
            Refused: The sequence is longer than the matrices.
        """
        length, longest = source.num_keys, self.mix_keys.shape[1]
        if length > longest:
            raise Refused(
                f"linformer: the matrices end at longest={longest}, but the sequence has {length} "
                "tokens; raise longest."
            )
        key, value = (expand_heads(x, self.dims.heads) for x in (source.key, source.value))
        if source.mask is not None:
            real = source.mask[:, None, :, None]
            key, value = torch.where(real, key, 0.0), torch.where(real, value, 0.0)
        mixed = {"key": self.mix_keys[:, :length] @ key}
        mixed["value"] = self.mix_values[:, :length] @ value
        return Memory(source, mixed)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Softmax over the rows that are left."""
        key, value = (leaf(call.memory.parts, name) for name in ("key", "value"))
        weights = torch.softmax(self.scale * call.query @ key.transpose(-1, -2), -1)
        return MixResult(weights @ value, None, carried, {})

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Row by row, then query by query."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        found = []
        for head in range(query.shape[0]):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            rows, places = range(len(self.mix_keys)), range(len(key))
            none, nothing = torch.zeros_like(key[0]), torch.zeros_like(value[0])
            keys = [sum((self.mix_keys[r, s] * key[s] for s in places), none) for r in rows]
            values = [
                sum((self.mix_values[r, s] * value[s] for s in places), nothing) for r in rows
            ]
            for asked in query[head]:
                energy = [self.scale * (asked * k).sum() for k in keys]
                weights = oracle_softmax(torch.stack(energy), [True] * len(keys))
                found.append(sum((weights[r] * values[r] for r in rows), nothing))
        return torch.stack(found).unflatten(0, query.shape[:2]), None
