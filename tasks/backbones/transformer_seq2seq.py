"""Transformer encoder-decoder: bidirectional, causal and cross attention.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.

Deviations: pre-norm and GELU by default. One slot holds the variant; the others hold
scaled dot-product attention with sinusoidal positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor, nn

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts, Generated
from bench.api.call import Attended, Regime
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.resolve import SlotPlace
from bench.api.search import Said, Search
from bench.api.selector import Selector
from bench.api.source import Memory, Tree, tree_map
from bench.api.task import Batch
from bench.api.trace import Mode, Trace
from bench.api.variant import Slot
from tasks.backbones._blocks import Block, BlockConfig, LayerPath, embedding_table, last_norm
from tasks.backbones._decoding import repeated_rows
from tasks.backbones._sources import embed_source

PLAIN = Mode(want_weights=False)


@dataclass(frozen=True, kw_only=True)
class TransformerSeq2SeqConfig(BlockConfig):
    """Options of the transformer encoder-decoder."""

    search: Selector = Selector("greedy")
    """How words are chosen when decoding."""


@register(
    "backbone",
    "transformer_seq2seq",
    config=TransformerSeq2SeqConfig,
    revision=2,
    title="transformer encoder-decoder",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3"
    ),
)
class TransformerSeq2Seq(Backbone):
    """The variant stands in the `cross`, the decoder's `causal` or the encoder's `self` slots."""

    slots = ("cross", "causal", "self")
    reads_frames = True
    gives = frozenset({"source_states"})

    def __init__(self, config: TransformerSeq2SeqConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.sizes = sizes
        self.scale = width**0.5
        self.search: Search = registry.make("search", config.search, sizes)
        self.variant_regime = parts.slot or "cross"
        self.parts_given = parts.facts
        frames = sizes.frames_of(0)
        self.source_embedding = (
            nn.Linear(frames, width) if frames else embedding_table(sizes.source_vocabs[0], width)
        )
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
        self.output = parts.output(
            OutputSizes(
                vocab=sizes.target_vocab,
                states=width,
                context=width,
                embedded=width,
                unk=sizes.unk,
                source=width,
                source_vocab=sizes.source_vocabs[0],
                bos=sizes.bos,
                eos=sizes.eos,
            )
        )

    def encode(self, batch: Batch, mode: Mode) -> tuple[tuple[Memory, ...], tuple[Attended, ...]]:
        """Encode the source and let every decoder layer prepare it."""
        text = batch.sources[0]
        embedded = embed_source(self.source_embedding, text) * self.scale
        x = self._blocks(self.encoder)[0].own.variant.embed(embedded, 0)
        answers = []
        for index, block in enumerate(self._blocks(self.encoder)):
            modes = (mode.layer(index), mode.layer(index))
            x, _, attended, _ = block(x, text.mask, None, LayerPath(), modes)
            answers.append(attended)
        x = self.encoder_norm(x)
        memories = tuple(
            block.cross.prepare(x, text.mask, batch.extended)
            for block in self._blocks(self.decoder)
            if block.cross is not None
        )
        return memories, tuple(answers)

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        memories, encoded = self.encode(batch, self._mode("self", mode))
        embedded = self.target_embedding(batch.inputs) * self.scale
        states, context, attended, _ = self.advance(embedded, memories, (), 0, mode)
        answers = self.variant_answers(encoded, attended)
        return Trace(states, context, embedded, answers, memories[::-1])

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode with a cache, by the search that was chosen."""
        memories, encoded = self.encode(batch, self._mode("self", mode))
        walk = TransformerWalk(
            self, batch, mode, memories, encoded, self.output.begin(batch, (memories[-1],))
        )
        return self.search.decode(walk, batch, max_length)

    def advance(
        self,
        embedded: Tensor,
        memories: tuple[Memory, ...],
        paths: Sequence[LayerPath],
        offset: int,
        mode: Mode,
    ) -> tuple[Tensor, Tensor, list[tuple[Attended, Attended]], list[LayerPath]]:
        """Read some words: states, context, what the slots of each layer answered, the paths."""
        blocks = self._blocks(self.decoder)
        x = blocks[0].own.variant.embed(embedded, offset)
        modes = (self._mode("causal", mode), self._mode("cross", mode))
        after, answers = [], []
        for index, block in enumerate(blocks):
            path = paths[index] if paths else LayerPath()
            asked = (modes[0].layer(index), modes[1].layer(index))
            x, path, own, crossed = block(x, None, memories[index], path, asked)
            assert crossed is not None, "decoder blocks have cross attention"
            after.append(path)
            answers.append((own, crossed[1]))
        return self.decoder_norm(x), crossed[0], answers, after

    def variant_answers(
        self, encoded: Sequence[Attended], decoded: Sequence[tuple[Attended, Attended]]
    ) -> tuple[Attended, ...]:
        """What the slots that hold the variant answered, the last layer first."""
        answers = {
            "self": list(encoded),
            "causal": [own for own, _ in decoded],
            "cross": [crossed for _, crossed in decoded],
        }
        return tuple(answers[self.variant_regime][::-1])

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


@dataclass(frozen=True)
class TransformerWalk:
    """Rows on their way through the transformer decoder."""

    network: TransformerSeq2Seq
    batch: Batch
    mode: Mode
    memories: tuple[Memory, ...]
    encoded: tuple[Attended, ...]
    carried: Tree
    paths: tuple[LayerPath, ...] = ()
    place: int = 0

    def step(self, words: Int[Tensor, "B 1"]) -> Said:
        """Read one word a row; copied words are read as UNK."""
        network, sizes = self.network, self.network.sizes
        known = torch.where(words < sizes.target_vocab, words, sizes.unk)
        embedded = network.target_embedding(known) * network.scale
        states, context, attended, paths = network.advance(
            embedded, self.memories, self.paths, self.place, self.mode
        )
        own = network.variant_answers(self.encoded, attended)
        trace = Trace(states, context, embedded, own, self.memories[::-1])
        found, carried = network.output.step(trace, network.emit, self.batch, words, self.carried)
        after = replace(self, carried=carried, paths=tuple(paths), place=self.place + 1)
        return Said(found.squeeze(1), trace, after)

    def repeat(self, times: int) -> "TransformerWalk":
        """Copy every row beside itself, its source too."""
        rows = repeated_rows(self.batch, times)
        copied = replace(
            self,
            batch=self.batch.select(rows),
            memories=tuple(memory.select(rows) for memory in self.memories),
            encoded=tuple(select_answer(answer, rows) for answer in self.encoded),
        )
        return copied.reorder(rows)

    def reorder(self, rows: Int[Tensor, " N"]) -> "TransformerWalk":
        """Take other rows' paths; sources stay where they are."""
        carried = tree_map(lambda leaf: leaf.index_select(0, rows), self.carried)
        paths = tuple(path.select(rows) for path in self.paths)
        return replace(self, carried=carried, paths=paths)


def select_answer(answer: Attended, rows: Int[Tensor, " N"]) -> Attended:
    """Rows of what a slot answered."""
    weights = answer.weights
    return Attended(
        answer.output.index_select(0, rows),
        None if weights is None else weights.index_select(0, rows),
        answer.state.select(rows),
        {name: term.index_select(0, rows) for name, term in answer.terms.items()},
    )
