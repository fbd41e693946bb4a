"""Transformer encoder-decoder: bidirectional, causal and cross attention.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.

Deviations: pre-norm by default, GELU instead of ReLU. One slot holds the variant; the others hold
scaled dot-product attention with sinusoidal positions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts, Generated, Mode, OutputSizes, Trace
from bench.api.call import Attended, Regime
from bench.api.registry import Citation, register
from bench.api.resolve import SlotPlace
from bench.api.source import Memory
from bench.api.task import Batch
from bench.api.variant import Slot
from tasks.backbones._blocks import Block, BlockConfig, LayerPath, embedding_table, last_norm
from tasks.backbones.rnn_seq2seq import cut_at_eos

PLAIN = Mode(want_weights=False)


@dataclass(frozen=True, kw_only=True)
class TransformerSeq2SeqConfig(BlockConfig):
    """Options of the transformer encoder-decoder."""


@register(
    "backbone",
    "transformer_seq2seq",
    config=TransformerSeq2SeqConfig,
    title="transformer encoder-decoder",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3"
    ),
)
class TransformerSeq2Seq(Backbone):
    """The variant stands in the `cross`, the decoder's `causal` or the encoder's `self` slots."""

    slots = ("cross", "causal", "self")

    def __init__(self, config: TransformerSeq2SeqConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.sizes = sizes
        self.scale = width**0.5
        self.variant_regime = parts.slot or "cross"
        self.parts_given = parts.facts
        self.source_embedding = embedding_table(sizes.source_vocabs[0], width)
        self.target_embedding = embedding_table(sizes.target_vocab, width)

        def slot(regime: Regime) -> Slot:
            place = SlotPlace(
                regime=regime,
                query_width=width,
                source_width=width,
                head=f"multi[heads={config.heads}]",
                source_vocab=sizes.source_vocabs[0],
                given=parts.facts,
            )
            if regime == self.variant_regime:
                return parts.attach(place)
            return parts.attach_default(place)

        layers = range(config.layers)
        self.encoder = nn.ModuleList(Block(config, slot("self"), first=n == 0) for n in layers)
        self.decoder = nn.ModuleList(
            Block(config, slot("causal"), slot("cross"), first=n == 0) for n in layers
        )
        self.encoder_norm, self.decoder_norm = last_norm(config), last_norm(config)
        self.project = nn.Linear(width, sizes.target_vocab)
        self.output = parts.output(OutputSizes(sizes.target_vocab, width, width, width, sizes.unk))

    def encode(self, batch: Batch, mode: Mode) -> tuple[tuple[Memory, ...], Attended]:
        """Encode the source and let every decoder layer prepare it."""
        text = batch.sources[0]
        embedded = self.source_embedding(text.tokens) * self.scale
        x = self._blocks(self.encoder)[0].own.variant.embed(embedded, 0)
        answers = []
        for block in self._blocks(self.encoder):
            x, _, attended, _ = block(x, text.mask, None, LayerPath(), (mode, mode))
            answers.append(attended)
        x = self.encoder_norm(x)
        memories = tuple(
            block.cross.prepare(x, text.mask, batch.extended)
            for block in self._blocks(self.decoder)
            if block.cross is not None
        )
        return memories, answers[-1]

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        memories, encoded = self.encode(batch, self._mode("self", mode))
        embedded = self.target_embedding(batch.inputs) * self.scale
        states, context, attended, _ = self._decode(embedded, memories, [], 0, mode)
        return Trace(states, context, embedded, (self._own(encoded, attended),), (memories[-1],))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode greedily with a cache until every row has said EOS."""
        memories, encoded = self.encode(batch, self._mode("self", mode))
        rows, device = batch.sources[0].tokens.shape[0], batch.sources[0].tokens.device
        word = torch.full((rows, 1), self.sizes.bos, device=device)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        paths: list[LayerPath] = []
        said: list[Tensor] = []
        carried = self.output.begin(batch)
        for place in range(max_length):
            known = torch.where(word < self.sizes.target_vocab, word, self.sizes.unk)
            embedded = self.target_embedding(known) * self.scale
            states, context, attended, paths = self._decode(embedded, memories, paths, place, mode)
            own = self._own(encoded, attended)
            trace = Trace(states, context, embedded, (own,), (memories[-1],))
            found, carried = self.output.step(trace, self.emit, batch, word, carried)
            word = found.argmax(-1)
            said.append(torch.where(done[:, None], self.sizes.eos, word))
            done = done | (word[:, 0] == self.sizes.eos)
            if bool(done.all()):
                break
        return Generated(cut_at_eos(torch.cat(said, 1), self.sizes.eos), len(said))

    def _decode(
        self,
        embedded: Tensor,
        memories: tuple[Memory, ...],
        paths: list[LayerPath],
        offset: int,
        mode: Mode,
    ) -> tuple[Tensor, Tensor, tuple[Attended, Attended], list[LayerPath]]:
        blocks = self._blocks(self.decoder)
        x = blocks[0].own.variant.embed(embedded, offset)
        modes = (self._mode("causal", mode), self._mode("cross", mode))
        after = []
        for index, block in enumerate(blocks):
            path = paths[index] if paths else LayerPath()
            x, path, own, crossed = block(x, None, memories[index], path, modes)
            after.append(path)
        assert crossed is not None, "decoder blocks have cross attention"
        return self.decoder_norm(x), crossed[0], (own, crossed[1]), after

    def _own(self, encoded: Attended, decoded: tuple[Attended, Attended]) -> Attended:
        """What the slots that hold the variant answered."""
        answers = {"self": encoded, "causal": decoded[0], "cross": decoded[1]}
        return answers[self.variant_regime]

    def _mode(self, regime: str, mode: Mode) -> Mode:
        """The variant's own mode in its slot, a plain one elsewhere."""
        return mode if regime == self.variant_regime else PLAIN

    @staticmethod
    def _blocks(blocks: nn.ModuleList) -> list[Block]:
        return [block for block in blocks if isinstance(block, Block)]

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slots of the chosen regime."""
        if self.variant_regime == "self":
            return tuple(block.own for block in self._blocks(self.encoder))
        chosen = self._blocks(self.decoder)
        if self.variant_regime == "causal":
            return tuple(block.own for block in chosen)
        return tuple(block.cross for block in chosen if block.cross is not None)
