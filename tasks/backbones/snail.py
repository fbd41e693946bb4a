"""Dilated causal convolutions with attention between them, each block joined to its input.

Mishra et al., 2018, "A simple neural attentive meta-learner", https://arxiv.org/abs/1707.03141,
section 3 and the pseudo-code of its appendix.

Deviations: tokens instead of episodes; 16 filters and blocks for the task's longest sequence by
default. Dilations are 1, 2, 4, ... until every token is seen, as the text and the figure say; the
pseudo-code begins with 2, `first_dilation=2`, which hides every other token from the convolutions.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.call import Attended
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace
from tasks.backbones.source_embedding import input_frames, with_frames
from tasks.backbones.transformer_blocks import embedding_table


@dataclass(frozen=True, kw_only=True)
class SnailNetworkConfig(Config):
    """Options of the network."""

    width: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of embeddings."""
    filters: Annotated[int, IntRange(8, 512, log=True)] = 16
    """What a convolution adds to the width."""
    key: Annotated[int, IntRange(8, 512, log=True)] = 16
    """Width of keys and of values of slots whose variant does not choose its heads."""
    layers: Annotated[int, IntRange(1, 6)] = 2
    """Pairs of a block of convolutions and an attention block."""
    first_dilation: Annotated[int, Choices((1, 2))] = 1
    """Dilation of the first convolution of a block."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if min(self.width, self.filters, self.key, self.layers, self.first_dilation) < 1:
            raise InvalidConfig(
                "snail: width, filters, key, layers and first_dilation must be at least 1."
            )


class DenseBlock(nn.Module):
    """tanh(conv) sigmoid(conv), two taps apart, joined to the input."""

    def __init__(self, width: int, filters: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        # both convolutions at once: what is activated, and its gate
        self.mix = nn.Conv1d(width, 2 * filters, 2, dilation=dilation)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L More"]:
        """Convolve each position and the one `dilation` positions before it."""
        past = nn.functional.pad(x.transpose(1, 2), (self.dilation, 0))
        value, gate = self.mix(past).transpose(1, 2).chunk(2, -1)
        return torch.cat((x, torch.tanh(value) * torch.sigmoid(gate)), -1)


def convolution_block(width: int, filters: int, length: int, first: int) -> nn.Sequential:
    """Dense blocks whose dilations double until `length` tokens are in reach."""
    count = max(1, math.ceil(math.log2(length)))
    return nn.Sequential(
        *(DenseBlock(width + i * filters, filters, first * 2**i) for i in range(count))
    )


@register(
    "backbone",
    "snail",
    config=SnailNetworkConfig,
    title="dilated convolutions with attention between them",
    citation=Citation(
        text="Mishra et al., 2018", url="https://arxiv.org/abs/1707.03141", where="section 3"
    ),
)
class SnailNetwork(Backbone):
    """[convolutions, causal attention] x layers; every block adds channels and keeps the old ones.

    The variant is in all attention blocks.
    """

    slots = ("causal",)
    sized_by = ("width", "filters")
    reads_frames = True

    def __init__(self, config: SnailNetworkConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.scale = width**0.5
        self.embedding = embedding_table(sizes.target_vocab, width)
        self.frames = input_frames(sizes, width)
        self.convolutions = nn.ModuleList()
        self.attentions = nn.ModuleList()
        for _ in range(config.layers):
            block = convolution_block(
                width, config.filters, sizes.max_length, config.first_dilation
            )
            width += config.filters * len(block)
            place = SlotPlace(
                regime="causal",
                query_width=width,
                source_width=width,
                head=f"snail[key={config.key},value={config.key}]",
                given=parts.capabilities,
            )
            slot = parts.attach(place)
            width += slot.output_width
            self.convolutions.append(block)
            self.attentions.append(slot)
        self.project = nn.Linear(width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(sizes.target_vocab, width, 0, config.width, sizes.unk)
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run the whole sequence; only the last attention returns weights."""
        embedded = with_frames(self.embedding(batch.inputs), self.frames, batch) * self.scale
        x, slots = embedded, self.variant_slots()
        quiet = Mode(mode.read, mode.noise, mode.progress, want_weights=False)
        answers: list[Attended] = []
        for index, (block, slot) in enumerate(zip(self.convolutions, slots, strict=True)):
            x = block(x)
            asked = (mode if slot is slots[-1] else quiet).layer(index)
            placed = slot.variant.embed(x, 0)
            state = slot.start(None, placed)
            own = (placed, None, None)
            read, attended = slot.attend(placed, None, state, own=own, **asked.call())
            x = torch.cat((x, read), -1)
            answers.append(attended)
        memories = (None,) * len(answers)
        return Trace(x, x[..., :0], embedded, tuple(answers[::-1]), memories)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a layer."""
        return tuple(slot for slot in self.attentions if isinstance(slot, Slot))
