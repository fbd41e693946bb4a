"""An answer at every token of one source: transformer blocks that read it in both directions.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.1
(the encoder) and 3.5 (positions are added to embeddings).

Deviations: pre-norm and GELU by default; a linear map of every last state names its answer. Parts
can be left out, as in all transformer blocks here. `beside` puts sinusoids beside embeddings in
the place of adding them, and `encoder=birnn` reads the tokens by recurrent layers before the
blocks: with attention that sees its own token alone, no other part of the network mixes tokens.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.call import Attended
from bench.api.encoder import ENCODERS
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace
from tasks.backbones.encoders.input_positions import positions
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.precision import multiply_in
from tasks.backbones.transformer_blocks import (
    FEED_SIZE,
    Block,
    BlockConfig,
    LayerPath,
    embedding_table,
    free_unread_positions,
    last_norm,
)


@dataclass(frozen=True, kw_only=True)
class TaggerConfig(BlockConfig):
    """Options of the tagger."""

    encoder: Selector = Selector("embed")
    """How token states are made below the blocks; `embed` leaves all context to the attention."""
    beside: int = 0
    """Units of sinusoidal positions beside each embedding, which is narrower by as many."""

    def __post_init__(self) -> None:
        """Check that something is left of the embedding."""
        super().__post_init__()
        if not 0 <= self.beside < self.width:
            raise InvalidConfig(
                f"tagger: beside must be at least 0 and below width {self.width}, "
                f"got {self.beside}."
            )


@register(
    "backbone",
    "tagger",
    config=TaggerConfig,
    title="transformer encoder with an answer at every token",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.1"
    ),
)
class Tagger(Backbone):
    """Blocks of bidirectional self-attention, all of which hold the variant; then a linear map."""

    slots = ("self",)
    sized_by = ("width", "feed_width")
    size_of = FEED_SIZE

    def __init__(self, config: TaggerConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        words = width - config.beside
        self.scale = words**0.5
        self.embedding = embedding_table(sizes.source_vocabs[0], words)
        self.beside = config.beside
        self.places = positions("sinusoid", config.beside) if config.beside else None
        self.encoder = registry.make(ENCODERS, config.encoder, width, width)
        place = SlotPlace(
            regime="self",
            query_width=width,
            source_width=width,
            head=f"multi[heads={config.heads}]",
            source_vocab=sizes.source_vocabs[0],
            given=parts.capabilities,
        )
        self.blocks = nn.ModuleList(
            Block(config, parts.attach(replace(place, layer=n)), first=n == 0)
            for n in range(config.layers)
        )
        free_unread_positions(self.variant_slots(), config)
        self.norm = last_norm(config)
        self.project = nn.Linear(width, sizes.target_vocab)
        multiply_in(self, config.precision)
        self.output = parts.output(output_sizes(sizes, states=width, context=0, embedded=width))

    def arrange(self, batch: Batch) -> Batch:
        """Gold as the encoder lines it up with its states."""
        return batch if batch.arranged else replace(self.encoder.arrange(batch), arranged=True)

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Read the source once; only the last block returns weights."""
        batch = self.arrange(batch)
        text = batch.sources[0]
        embedded = self._placed(self.embedding(text.tokens) * self.scale)
        encoded = self.encoder.read(embedded, text.mask, batch, mode)
        count, asked = encoded.states.shape[1], batch.targets.shape[1]
        if count != asked:
            raise Refused(
                f"tagger gives one answer a state of its source; here are {count} states and "
                f"{asked} answers."
            )
        x = self.variant_slots()[0].variant.embed(encoded.states, 0)
        quiet = replace(mode, want_weights=False, edit=None)
        answers: list[Attended] = []
        for index, block in enumerate(self.blocks):
            last = index == len(self.blocks) - 1
            here = (mode if last else quiet).layer(index)
            x, _, attended, _ = block(x, encoded.mask, (), LayerPath(), (here, here))
            answers.append(attended)
        states = self.norm(x)
        found = tuple(answers[::-1])
        return Trace(
            states, states[..., :0], embedded, found, (None,) * len(found), (encoded.terms,)
        )

    def _placed(self, words: Float[Tensor, "B S Dw"]) -> Float[Tensor, "B S D"]:
        """Embedded words with positions beside them, where they stand there."""
        if self.places is None:
            return words
        nothing = words.new_zeros(*words.shape[:2], self.beside)
        return torch.cat((words, self.places.embed(nothing, 0)), -1)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a block."""
        return tuple(block.own for block in self.blocks if isinstance(block, Block))
