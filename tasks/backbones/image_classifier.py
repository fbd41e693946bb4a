"""Convolutions with self-attention between them; the mean state is classified.

Zhang et al., 2019, "Self-attention generative adversarial networks",
https://arxiv.org/abs/1805.08318, section 3: attention over all positions of a feature map comes
between convolutions and is added to them.

Deviations: a classifier, where the paper has the two networks of an adversarial pair; the
convolutions are those of the encoder `grid_cnn`; the mean of all positions is classified, without a
norm before it: one at each position kept a small object on a large canvas from being learned.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace
from tasks.backbones.encoders.grid_cnn import GridBlocks, coordinates, grid_of
from tasks.backbones.source_embedding import embed_source, source_table


@dataclass(frozen=True, kw_only=True)
class ImageClassifierConfig(Config):
    """Options of the image classifier."""

    width: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Channels of a position."""
    layers: Annotated[int, IntRange(0, 8)] = 2
    """Convolutions before the attention, and as many behind it."""
    heads: Annotated[int, IntRange(1, 16)] = 4
    """Heads of slots whose variant does not choose its own."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.layers < 0 or self.heads < 1 or self.width % self.heads:
            raise InvalidConfig(
                "image_classifier: layers must be at least 0 and heads divide width, "
                f"got {self.layers}, {self.heads} and {self.width}."
            )


@register(
    "backbone",
    "image_classifier",
    config=ImageClassifierConfig,
    title="convolutions with self-attention between them",
    revision=2,
    citation=Citation(
        text="Zhang et al., 2019", url="https://arxiv.org/abs/1805.08318", where="section 3"
    ),
)
class ImageClassifier(Backbone):
    """convolutions; x + attention(x); convolutions; mean; one linear map."""

    slots = ("self",)
    sized_by = ("width",)
    reads_frames = True
    gives_numbers = True

    def __init__(self, config: ImageClassifierConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.embedding = source_table(sizes, 0, width)
        self.enter = nn.Linear(width + 2, width)
        self.before = GridBlocks(width, config.layers)
        self.slot = parts.attach(
            SlotPlace(
                regime="self",
                query_width=width,
                source_width=width,
                head=f"multi[heads={config.heads}]",
                source_vocab=sizes.source_vocabs[0],
                given=parts.capabilities,
            )
        )
        self.join: nn.Module = nn.Identity()
        if self.slot.output_width != width:
            self.join = nn.Linear(self.slot.output_width, width)
        self.behind = GridBlocks(width, config.layers)
        self.project = nn.Linear(width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(sizes.target_vocab, width, 0, width, sizes.unk, bos=sizes.bos)
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run over the picture once."""
        if batch.targets.shape[1] != 1:
            raise Refused("image_classifier gives one answer, and this task has several.")
        text = batch.sources[0]
        grid = grid_of(text)
        embedded = embed_source(self.embedding, text)
        placed = coordinates(grid).to(embedded).expand(len(embedded), -1, -1)
        x = self.before(self.enter(torch.cat((embedded, placed), -1)), grid, text.mask)
        given = self.slot.variant.embed(x, 0)
        state = self.slot.start(None, given)
        found, attended = self.slot.attend(
            given, None, state, own=(given, text.mask, None), **mode.call()
        )
        x = self.behind(x + self.join(found), grid, text.mask)
        if text.mask is None:
            pooled = x.mean(1, keepdim=True)
        else:
            real = text.mask.unsqueeze(-1)
            count = real.sum(1, keepdim=True).clamp(min=1)
            pooled = torch.where(real, x, 0.0).sum(1, keepdim=True) / count
        return Trace(pooled, pooled[..., :0], pooled, (attended,), (None,))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Classify the mean."""
        return self.project(states)

    def variant_slots(self) -> tuple[Slot, ...]:
        """The one slot."""
        return (self.slot,)
