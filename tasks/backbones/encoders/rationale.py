"""Rationale encoder: a generator selects tokens, and an inner encoder reads only those.

Lei, Barzilay & Jaakkola, 2016, "Rationalizing neural predictions",
https://arxiv.org/abs/1606.04155, sections 3 and 4.

Deviations: selections are independent given the text (the paper's first generator; its second lets
a selection see earlier ones). An unselected token is a zero vector in its position, not cut out, so
that an encoder inside still sees how long a gap is; attention reads selected positions only. A
trained generator selects where the probability exceeds one half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api import registry
from bench.api.batch import Batch
from bench.api.config import Config, OfAxis
from bench.api.encoder import ENCODERS, Encoded, Encoder
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.trace import Mode

NOT_INSIDE = {
    "multimodal": "its features are no tokens that can be selected",
    "rationale": "what it selects would be lost",
}
"""Encoders that cannot stand inside, and why."""
TOKEN = "rationale.token"
"""Stream of noise: whether a token is selected."""


@dataclass(frozen=True, kw_only=True)
class RationaleConfig(Config):
    """Options of the rationale encoder."""

    encoder: Selector = Selector("embed")
    """What reads the selected tokens."""
    generator: Annotated[Selector, OfAxis("encoder")] = Selector("birnn")
    """Encoder whose states, one for each token, give the probability of selecting it."""

    def __post_init__(self) -> None:
        """Check that both encoders read tokens, and all of them."""
        for option, chosen in (("encoder", self.encoder), ("generator", self.generator)):
            if chosen.name in NOT_INSIDE:
                raise InvalidConfig(
                    f"rationale: {option}={chosen.name} cannot stand inside, because "
                    f"{NOT_INSIDE[chosen.name]}; name another encoder."
                )


@register(
    "encoder",
    "rationale",
    config=RationaleConfig,
    title="encoder of selected tokens",
    citation=Citation(
        text="Lei et al., 2016", url="https://arxiv.org/abs/1606.04155", where="sections 3 and 4"
    ),
)
class RationaleEncoder(Encoder):
    """z_s ~ Bernoulli(sigmoid(w h_s + b)) with h of the generator; encodes x z.

    The generator learns from the `log_prob` term alone, through the rationale loss.
    """

    needs = frozenset({"loss:rationale"})
    gives = frozenset({"selection"})

    def __init__(self, config: RationaleConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.inner = registry.make(ENCODERS, config.encoder, embedding_width, hidden)
        self.generator = registry.make(ENCODERS, config.generator, embedding_width, hidden)
        if self.generator.stride != 1:
            raise Refused(
                f"rationale: the generator selects tokens, and {config.generator.name} has a state "
                f"for {self.generator.stride} of them; name an encoder with a state for each."
            )
        self.choose = nn.Linear(self.generator.output_width, 1)
        self.output_width = self.inner.output_width
        self.summary_width = self.inner.summary_width
        self.backward = self.inner.backward
        self.stride = self.inner.stride

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Encode the likelier choice at every token."""
        return self._encode(self.generator(x, mask), x, mask, Mode(), self.inner)

    def read(
        self,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        batch: Batch,
        mode: Mode,
    ) -> Encoded:
        """Select as the mode reads, then encode."""

        def inner(x: Tensor, mask: Tensor | None) -> Encoded:
            return self.inner.read(x, mask, batch, mode)

        return self._encode(self.generator.read(x, mask, batch, mode), x, mask, mode, inner)

    def arrange(self, batch: Batch) -> Batch:
        """As the encoder inside does."""
        return self.inner.arrange(batch)

    def _encode(
        self,
        generated: Encoded,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        mode: Mode,
        inner: Callable[[Tensor, Tensor | None], Encoded],
    ) -> Encoded:
        """A source of which nothing is selected has no key."""
        logits = self.choose(generated.states).squeeze(-1)
        selected = logits > 0
        if mode.read in ("train", "sample"):
            assert mode.noise is not None, "reading by draws needs noise"
            first = torch.zeros(1, dtype=torch.int64, device=x.device)
            drawn = mode.noise.uniform(TOKEN, x.shape[0], 1, first, x.shape[1])[:, 0, 0]
            selected = drawn < torch.sigmoid(logits)
        real = torch.ones_like(selected) if mask is None else mask
        selected = selected & real
        # the value of an unselected position, NaN included, is replaced
        encoded = inner(torch.where(selected.unsqueeze(-1), x, 0.0), mask)
        terms = {
            "selected": selected.to(x.dtype),
            "log_prob": torch.where(real, _log_prob(logits, selected), 0.0),
            "real": real.to(x.dtype),
        }
        kept = _fold(selected, self.inner.stride, encoded.states.shape[1])
        return encoded._replace(mask=kept, terms=terms)


def _log_prob(logits: Float[Tensor, "B S"], selected: Bool[Tensor, "B S"]) -> Float[Tensor, "B S"]:
    """Log probability of a Bernoulli draw."""
    return functional.logsigmoid(torch.where(selected, logits, -logits))


def _fold(selected: Bool[Tensor, "B S"], stride: int, states: int) -> Bool[Tensor, "B Z"]:
    """Whether anything is selected under each state of the encoder inside."""
    if stride == 1:
        return selected
    short = states * stride - selected.shape[1]
    return functional.pad(selected, (0, short)).unflatten(1, (states, stride)).any(-1)
