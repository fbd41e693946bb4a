"""Two texts to a label: each token is compared with its soft counterpart in the other text.

Parikh et al., 2016, "A decomposable attention model for natural language inference",
https://arxiv.org/abs/1606.01933, section 3. The paper's attend step is the score `decomposable`.

Deviations: embeddings are learned, 32 wide, and projected to 64, not GloVe of 300 to 200; the NULL
token is a vector of its own.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch, Text
from bench.api.build import SlotPlace, build_slot
from bench.api.call import Attended, Regime
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import Refused
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.resolve import resolve
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory
from bench.api.trace import Mode, Trace
from tasks.backbones.dropout import Dropout
from tasks.backbones.every_word import encoder_of_every_word

ATTEND = "decomposable"
INTRA = "decomposable[position=distance_bias]"
"""The score of the slot that does not hold the variant: the paper's own."""


@dataclass(frozen=True, kw_only=True)
class PairConfig(Config):
    """Options of the pair classifier."""

    embedding: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of word embeddings."""
    hidden: Annotated[int, IntRange(16, 512, log=True)] = 64
    """Width of projected tokens and of both layers of G and H."""
    encoder: Selector = Selector("embed")
    """How token states are made, one for each; `embed` keeps a text a bag of words."""
    intra: bool = False
    """Whether each token is first joined to what it reads in its own text (the `self` slot)."""
    null: bool = True
    """Whether a learned NULL token begins each text, for words without a counterpart."""
    dropout: Annotated[float, FloatRange(0.0, 0.5), Legal(0, 1)] = 0.0
    """Share of inputs of the layers of G and H dropped in training."""


class TwoLayers(nn.Sequential):
    """Two ReLU layers."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        first = (Dropout(dropout), nn.Linear(inputs, width), nn.ReLU())
        super().__init__(*first, Dropout(dropout), nn.Linear(width, width), nn.ReLU())


@register(
    "backbone",
    "pair",
    config=PairConfig,
    title="two texts compared token by token",
    citation=Citation(
        text="Parikh et al., 2016", url="https://arxiv.org/abs/1606.01933", where="section 3"
    ),
)
class PairNetwork(Backbone):
    """v1 = sum G([a_i; beta_i]), v2 = sum G([b_j; alpha_j]), label from H([v1; v2]).

    One slot attends both ways. Without `intra` and with `encoder=embed` the answer does not depend
    on the order of words, unless the variant uses it.
    """

    slots = ("cross", "self")
    sized_by = ("hidden", "embedding")
    gives_numbers = True

    def __init__(self, config: PairConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes = parts.sizes
        if len(sizes.source_vocabs) != 2 or len(set(sizes.source_vocabs)) != 1:
            raise Refused(
                "pair reads two texts of one vocabulary, and this task has sources with "
                f"vocabularies {list(sizes.source_vocabs)}."
            )
        self.held: Regime = "self" if parts.slot == "self" else "cross"
        if self.held == "self" and not config.intra:
            raise Refused("the self slot of pair is its intra-sentence attention; add intra=true.")
        self.embedding = nn.Embedding(sizes.source_vocabs[0], config.embedding, padding_idx=0)
        self.encoder = encoder_of_every_word(
            "pair", config.encoder, config.embedding, config.hidden
        )
        width = config.hidden
        self.to_states = nn.Linear(self.encoder.output_width, width, bias=False)
        self.null = nn.Parameter(torch.randn(config.embedding)) if config.null else None
        # NULL and the words after it are not where the token ids say
        capabilities = parts.capabilities - {"source_tokens"}

        def slot(regime: Regime, inputs: int, own: str) -> Slot:
            place = SlotPlace(
                regime=regime,
                query_width=inputs,
                source_width=inputs,
                head="raw",
                given=capabilities,
            )
            return parts.attach(place) if regime == self.held else build_slot(resolve(own), place)

        self.intra = slot("self", width, INTRA) if config.intra else None
        if self.intra is not None:
            width += self.intra.output_width
        self.cross = slot("cross", width, ATTEND)
        self.compare = TwoLayers(width + self.cross.output_width, config.hidden, config.dropout)
        self.aggregate = TwoLayers(2 * config.hidden, config.hidden, config.dropout)
        self.project = nn.Linear(config.hidden, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(sizes.target_vocab, 2 * config.hidden, 0, 0, sizes.unk)
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Attend both ways, compare and add up."""
        if batch.targets.shape[1] != 1:
            raise Refused("pair gives one label per pair, and this task has several words.")
        (one, seen_one, own_one), (two, seen_two, own_two) = (
            self._encode(text, self._mode("self", mode).layer(index))
            for index, text in enumerate(batch.sources)
        )
        asked = self._mode("cross", mode)
        first, there, in_two = self._compare(one, seen_one, two, seen_two, asked)
        second, back, in_one = self._compare(two, seen_two, one, seen_one, asked.layer(1))
        states = torch.cat((first, second), -1).unsqueeze(1)
        nothing = states[..., :0]
        if self.held == "self":
            assert own_one is not None, "the self slot is there when it holds the variant"
            assert own_two is not None, "both texts go through it"
            return Trace(states, nothing, nothing, (own_one, own_two), (None, None))
        return Trace(states, nothing, nothing, (there, back), (in_two, in_one))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Classify both sums together."""
        return self.project(self.aggregate(states))

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slot that holds the variant."""
        if self.held == "self":
            assert self.intra is not None, "checked when it was built"
            return (self.intra,)
        return (self.cross,)

    def aligns(self, batch: Batch) -> bool:
        """A row of weights belongs to a word of the other text, and none to the label."""
        return False

    def _encode(
        self, text: Text, mode: Mode
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"], Attended | None]:
        x, mask = self.embedding(text.tokens), text.mask
        mask = torch.ones_like(text.tokens, dtype=torch.bool) if mask is None else mask
        if self.null is not None:
            x = torch.cat((self.null.expand(len(x), 1, -1), x), 1)
            mask = nn.functional.pad(mask, (1, 0), value=True)
        states = self.to_states(self.encoder(x, mask).states)
        if self.intra is None:
            return states, mask, None
        start = self.intra.start(None, states)
        own, attended = self.intra.attend(
            states, None, start, own=(states, mask, None), **mode.call()
        )
        return torch.cat((states, own), -1), mask, attended

    def _compare(
        self,
        x: Float[Tensor, "B L D"],
        seen: Bool[Tensor, "B L"],
        other: Float[Tensor, "B S D"],
        other_seen: Bool[Tensor, "B S"],
        mode: Mode,
    ) -> tuple[Float[Tensor, "B Dh"], Attended, Memory]:
        memory = self.cross.prepare(other, other_seen)
        context, attended = self.cross.attend(x, memory, self.cross.start(memory, x), **mode.call())
        compared = self.compare(torch.cat((x, context), -1))
        return torch.where(seen.unsqueeze(-1), compared, 0.0).sum(1), attended, memory

    def _mode(self, regime: str, mode: Mode) -> Mode:
        """The variant's own mode in its slot, a plain one elsewhere."""
        return mode if regime == self.held else Mode(want_weights=False)
