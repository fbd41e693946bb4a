"""Multi-head latent attention: keys and values of all heads are made of one small vector a token.

DeepSeek-AI, 2024, "DeepSeek-V2: a strong, economical, and efficient mixture-of-experts language
model", https://arxiv.org/abs/2405.04434, section 2.1.2 (the latent vector, equations 9 to 11),
section 2.1.3 (a key apart that positions turn, equations 14 to 19), and section 3.1.2 (norms of the
latent vectors).

Deviations: `form=absorbed` moves the maps from the latent vector to keys into the queries, and
those to values behind attention, as section 2.1.2 proposes for decoding; `form=naive` writes keys
and values out for every head, and keeps them so. `form=mixed` keeps the latent vector, and writes
keys and values out for the time of a call that has many queries. All compute the same under
`scaled_dot`. Under other scores that read keys `naive` differs, because the others are given the
latent vector; under `dot` their energies have another factor. With `query_latent=0` queries are
mapped straight from the state, as in DeepSeek-V2-Lite.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import Heads
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.source import Source
from variants.heads.projections import oracle_linear, split_heads, width_of_head

EPS = 1e-6
"""Added to the mean square of a latent vector."""


@dataclass(frozen=True, kw_only=True)
class MlaConfig(Config):
    """Options of multi-head latent attention."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    latent: Annotated[int, IntRange(8, 512, log=True)] = 16
    """Width of the vector that keys and values are made of."""
    turned: Annotated[int, Choices((4, 8, 16, 32, 64))] = 8
    """Width of the key that all heads share and that positions turn."""
    query_latent: Annotated[int, Choices((0, 16, 32, 64))] = 32
    """Width of the vector that queries are made of; 0 where they are mapped straight."""
    form: Literal["mixed", "absorbed", "naive"] = "mixed"
    """Whether heads read keys and values that are written out where that takes fewer operations
    (`mixed`), never, or always."""

    def __post_init__(self) -> None:
        """Check the widths."""
        if min(self.latent, self.turned) < 1 or self.query_latent < 0:
            raise InvalidConfig(
                "mla: latent and turned must be at least 1 and query_latent at least 0, "
                f"got {self.latent}, {self.turned} and {self.query_latent}."
            )


@register(
    "head",
    "mla",
    config=MlaConfig,
    citation=Citation(
        text="DeepSeek-AI, 2024", url="https://arxiv.org/abs/2405.04434", where="section 2.1"
    ),
)
class MlaHeads(Heads):
    """Energy (q_c . k_c + q_r . k_r) / sqrt(E + R), with k_c and the value mapped from a latent.

    Cost: a cache of `latent + turned` numbers a token for all heads together, but for
    `form=naive`; a pair then costs 2 latent + R products a head where the latent vector is read,
    and 2 E + R where keys and values are written out, which costs 2 latent E a key.
    """

    def __init__(
        self,
        config: MlaConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads, latent, turned = config.heads, config.latent, config.turned
        self.config, self.output_width = config, query_width
        self.width = width_of_head("mla", heads, query_width)
        whole = self.width + turned
        self.keeps_latent = config.form != "naive"
        self.longest = math.inf
        if config.form == "mixed" and latent > self.width:
            self.longest = latent * self.width / (latent - self.width)
        if self.keeps_latent:
            dims = Dims(heads, 1, latent + turned, latent + turned, latent, query_width, regime)
        else:
            dims = Dims(heads, heads, whole, whole, self.width, query_width, regime)
        self.dims = dims._replace(turned_width=turned)
        inner = config.query_latent
        self.to_query_latent = nn.Linear(query_width, inner, bias=False) if inner else None
        self.query_gain = nn.Parameter(torch.ones(inner)) if inner else None
        self.to_query = nn.Linear(inner or query_width, heads * whole, bias=False)
        self.to_latent = nn.Linear(source_width, latent, bias=False)
        self.gain = nn.Parameter(torch.ones(latent))
        self.starts = {"gain": 1.0} | ({"query_gain": 1.0} if inner else {})
        self.to_turned = nn.Linear(source_width, turned, bias=False)
        self.key_up = nn.Parameter(torch.empty(heads, self.width, latent))
        self.value_up = nn.Parameter(torch.empty(heads, self.width, latent))
        self.to_output = nn.Linear(query_width, query_width, bias=False)
        for weight in (self.key_up, self.value_up):
            nn.init.normal_(weight, std=latent**-0.5)
        # the score divides by the root of the width of its keys, the paper by that of E + R
        self.mend = math.sqrt((latent + turned) / whole) if self.keeps_latent else 1.0

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L Eq"]:
        """Two parts a head; the first one asks the latent vector, or keys that are written out."""
        if self.to_query_latent is not None:
            inner = self.to_query_latent(x)
            x = nn.functional.rms_norm(inner, inner.shape[-1:], self.query_gain, EPS)
        found = split_heads(self.to_query(x), self.dims.heads)
        if not self.keeps_latent:
            return found
        # one pass over many queries costs more by the latent vector than by what is made of it
        if self.any_width and x.shape[1] > self.longest:
            return found * self.mend
        content, turned = found.split((self.width, self.config.turned), -1)
        return torch.cat((content @ self.key_up, turned), -1) * self.mend

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """The latent vector and the key that is turned; or what is made of them for every head."""
        latent = self.to_latent(x)
        latent = nn.functional.rms_norm(latent, latent.shape[-1:], self.gain, EPS).unsqueeze(1)
        turned = self.to_turned(x).unsqueeze(1)
        if self.keeps_latent:
            key = torch.cat((latent, turned), -1)
            width = self.config.latent
            return Source(key, key[..., :width], mask=mask, tokens=tokens, shared=width)
        return Source(*self._written_out(latent, turned, latent), mask=mask, tokens=tokens)

    def _written_out(
        self,
        latent: Float[Tensor, "B 1 S C"],
        turned: Float[Tensor, "B 1 S R"],
        read: Float[Tensor, "B 1 S C"],
    ) -> tuple[Float[Tensor, "B H S E"], Float[Tensor, "B H S Ev"]]:
        """Keys and values of every head; values are made of `read`."""
        every = turned.expand(-1, self.dims.heads, -1, -1)
        key = torch.cat((latent @ self.key_up.transpose(1, 2), every), -1)
        return key, read @ self.value_up.transpose(1, 2)

    def written(self, source: Source, query: Float[Tensor, "B H L Eq"]) -> Source:
        """Keys and values written out for queries that were not absorbed."""
        if not self.keeps_latent or query.shape[3] == source.key.shape[3]:
            return source
        latent, turned = source.key.split((self.config.latent, self.config.turned), -1)
        # values may be those of other states than the keys
        key, value = self._written_out(latent, turned, source.value)
        return replace(source, key=key, value=value, shared=0)

    def merge(self, output: Float[Tensor, "B H L Ev"]) -> Float[Tensor, "B L D"]:
        """Map what was read of the latent vector to values, and join the heads."""
        if self.keeps_latent and output.shape[3] == self.config.latent:
            output = output @ self.value_up.transpose(1, 2)
        return self.to_output(output.transpose(1, 2).flatten(2))

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H Eq"]:
        """One head after the other, number by number."""
        if self.to_query_latent is not None:
            x = _oracle_norm(oracle_linear(self.to_query_latent, x), self.query_gain)
        numbers = oracle_linear(self.to_query, x)
        whole = self.width + self.config.turned
        heads = []
        for head in range(self.dims.heads):
            own = numbers[head * whole : (head + 1) * whole]
            if self.keeps_latent:
                asked = [
                    sum(own[e] * self.key_up[head, e, c] for e in range(self.width))
                    for c in range(self.config.latent)
                ]
                # E + R of the paper instead of the width that the score sees
                seen = len(asked) + self.config.turned
                own = [n * seen**0.5 / whole**0.5 for n in (*asked, *own[self.width :])]
            heads.append(torch.stack([torch.as_tensor(number) for number in own]))
        return torch.stack(heads)

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "Hk Ek"], Float[Tensor, "Hv Ev"]]:
        """The latent vector of one state, or keys and values, head by head."""
        latent = _oracle_norm(oracle_linear(self.to_latent, x), self.gain)
        turned = torch.stack(oracle_linear(self.to_turned, x))
        if self.keeps_latent:
            return torch.cat((latent, turned))[None], latent[None]
        keys = [torch.cat((_oracle_map(up, latent), turned)) for up in self.key_up]
        return torch.stack(keys), torch.stack([_oracle_map(up, latent) for up in self.value_up])

    def oracle_merge(self, output: Float[Tensor, "H Ev"]) -> Float[Tensor, " D"]:
        """One head after the other."""
        if self.keeps_latent:
            pairs = zip(self.value_up, output, strict=True)
            output = torch.stack([_oracle_map(up, read) for up, read in pairs])
        joined = torch.stack([number for head in output for number in head])
        return torch.stack(oracle_linear(self.to_output, joined))


def _oracle_norm(numbers: list[Tensor], gain: Tensor | None) -> Float[Tensor, " C"]:
    assert gain is not None, "a latent vector has gains"
    mean = sum((n * n for n in numbers), torch.zeros_like(numbers[0])) / len(numbers)
    size = torch.sqrt(mean + EPS)
    return torch.stack([n / size * own for n, own in zip(numbers, gain, strict=True)])


def _oracle_map(rows: Float[Tensor, "E C"], latent: Float[Tensor, " C"]) -> Float[Tensor, " E"]:
    return torch.stack([sum((a * b for a, b in zip(row, latent, strict=True))) for row in rows])


register_recipe(
    "mla",
    Recipe(axes={"head": "mla", "position": "rope", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Multi-head latent attention (MLA)",
    citation=Citation(
        text="DeepSeek-AI, 2024", url="https://arxiv.org/abs/2405.04434", where="section 2.1"
    ),
    cost=1.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "DeepSeek-AI report a quality above that of one key and value a head, with a small part "
        "of the cache, for models of 16 to 236 billion parameters. Here the latent vector of a "
        "token is far narrower, the baseline finds nearly all values already, and the score does "
        "not count the cache."
    ),
    deviations="those of the head.",
)
