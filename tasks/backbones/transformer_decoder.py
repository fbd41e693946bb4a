"""Decoder-only transformer: causal self-attention in every layer.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3; pre-norm as in later practice.

Deviations: GELU by default.
"""

from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.trace import Mode, Trace
from bench.api.variant import Slot
from tasks.backbones.source_embedding import input_frames, with_frames
from tasks.backbones.transformer_blocks import (
    Block,
    BlockConfig,
    LayerPath,
    embedding_table,
    last_norm,
)


@register(
    "backbone",
    "transformer_decoder",
    config=BlockConfig,
    revision=2,
    title="transformer decoder",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3"
    ),
)
class TransformerDecoder(Backbone):
    """Blocks of causal self-attention; all of them hold the variant."""

    slots = ("causal",)
    sized_by = ("width",)
    reads_frames = True

    def __init__(self, config: BlockConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.scale = width**0.5
        self.embedding = embedding_table(sizes.target_vocab, width)
        self.frames = input_frames(sizes, width)
        place = SlotPlace(
            regime="causal",
            query_width=width,
            source_width=width,
            head=f"multi[heads={config.heads}]",
            given=parts.capabilities,
        )
        self.blocks = nn.ModuleList(
            Block(config, parts.attach(place), first=layer == 0) for layer in range(config.layers)
        )
        self.norm = last_norm(config)
        self.project = nn.Linear(width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(
                vocab=sizes.target_vocab,
                states=width,
                context=0,
                embedded=width,
                unk=sizes.unk,
                bos=sizes.bos,
                eos=sizes.eos,
            )
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run the whole sequence; only the last layer returns weights."""
        embedded = with_frames(self.embedding(batch.inputs), self.frames, batch) * self.scale
        x = self.variant_slots()[0].variant.embed(embedded, 0)
        quiet = Mode(mode.read, mode.noise, mode.progress, want_weights=False)
        answers = []
        for index, block in enumerate(self.blocks):
            asked = (mode if index == len(self.blocks) - 1 else quiet).layer(index)
            x, _, attended, _ = block(x, None, (), LayerPath(), (asked, asked))
            answers.append(attended)
        states = self.norm(x)
        return Trace(
            states, states[..., :0], embedded, tuple(answers[::-1]), (None,) * len(answers)
        )

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a layer."""
        return tuple(block.own for block in self.blocks if isinstance(block, Block))
