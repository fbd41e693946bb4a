"""Transformer encoder-decoder: bidirectional, causal and cross attention.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3. Several sources have an encoder
each, and a combiner in every decoder layer: Libovický, Helcl & Mareček, 2018, "Input combination
strategies for multi-source Transformer decoder", https://arxiv.org/abs/1811.04716, section 3.

Deviations: pre-norm and GELU by default. Embeddings and the output layer have matrices of their
own (section 3.4 shares them). Dropout falls on the outputs of sublayers alone (section 5.4 names
the sums of embeddings and positions, too). One regime holds the variant, in the slots of all
sources and layers; the others hold scaled dot-product attention with sinusoidal positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts, Generated
from bench.api.batch import Batch, Sizes
from bench.api.build import SlotPlace
from bench.api.call import Attended, Regime
from bench.api.combiner import COMBINERS, Combiner, CombinerSizes, States
from bench.api.errors import Refused
from bench.api.registry import Citation, register
from bench.api.search import SEARCHES, Said
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory, Tree, tree_map
from bench.api.trace import Mode, Trace
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.precision import multiply_in, vocabulary_matrix
from tasks.backbones.searches.found_words import repeated_rows
from tasks.backbones.source_embedding import embed_source
from tasks.backbones.transformer_blocks import (
    FEED_SIZE,
    Block,
    BlockConfig,
    LayerPath,
    embedding_table,
    free_unread_positions,
    last_norm,
)

PLAIN = Mode(want_weights=False)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TransformerSeq2SeqConfig(BlockConfig):
    """Options of the transformer encoder-decoder."""

    search: Selector = Selector("greedy")
    """How words are chosen when decoding."""
    combiner: Selector = Selector("concat")
    """How several sources are read; with one source all do the same."""


@dataclass(frozen=True)
class LayerSlots:
    """Makes what holds attention in a layer: the variant in one regime, the plain one elsewhere."""

    config: TransformerSeq2SeqConfig
    parts: BackboneParts
    variant_regime: str

    def slot(self, regime: Regime, layer: int) -> Slot:
        """The slot of a regime, in a layer counted from the first."""
        place = SlotPlace(
            regime=regime,
            query_width=self.config.width,
            source_width=self.config.width,
            head=f"multi[heads={self.config.heads}]",
            source_vocab=self.parts.sizes.source_vocabs[0],
            layer=layer,
            given=self.parts.capabilities,
        )
        if regime == self.variant_regime:
            return self.parts.attach(place)
        return self.parts.attach_default(place)

    def combiner(self, layer: int) -> Combiner:
        """What reads the sources in a decoder layer.

        Raises:
            Refused: A residual block cannot add what it returns.
        """
        config, num_sources = self.config, len(self.parts.sizes.source_vocabs)
        width = config.width
        read = CombinerSizes(width, (width,) * num_sources, residual=True)
        made = registry.make(
            COMBINERS, config.combiner, read, lambda *widths: self.slot("cross", layer)
        )
        if num_sources == 1 and config.residual and made.context_width != width:
            raise Refused(
                f"a residual block adds values of width {width}, and the heads return "
                f"{made.context_width}; choose heads that map back, such as head=multi."
            )
        if num_sources > 1 and made.context_width != width:
            raise Refused(
                f"{config.combiner.name} returns contexts of width {made.context_width}, and "
                f"a residual block adds {width}; use combiner=serial, parallel or flat."
            )
        return made


class Layer(NamedTuple):
    """Outputs of one decoder layer."""

    own: Attended
    crossed: tuple[Attended, ...]
    """One for each slot of the cross attention."""


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
    """The variant is in the `cross`, the decoder's `causal` or the encoder's `self` slots."""

    slots = ("cross", "causal", "self")
    sized_by = ("width", "feed_width")
    size_of = FEED_SIZE
    reads_frames = True
    gives = frozenset({"source_states", "residual_sublayers"})

    def __init__(self, config: TransformerSeq2SeqConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.sizes = sizes
        self.scale = width**0.5
        self.search = registry.make(SEARCHES, config.search, sizes)
        self.variant_regime = parts.slot or "cross"
        making = LayerSlots(config, parts, self.variant_regime)
        sources = range(len(sizes.source_vocabs))
        self.source_embeddings = nn.ModuleList(_source_map(sizes, n, width) for n in sources)
        self.target_embedding = embedding_table(sizes.target_vocab, width)
        layers = range(config.layers)
        self.encoders = nn.ModuleList(
            nn.ModuleList(Block(config, making.slot("self", n), first=n == 0) for n in layers)
            for _ in sources
        )
        self.decoder = nn.ModuleList(
            Block(config, making.slot("causal", n), making.combiner(n), first=n == 0)
            for n in layers
        )
        for stack in (*self.encoders, self.decoder):
            free_unread_positions([block.own for block in self._blocks(stack)], config)
        self.encoder_norms = nn.ModuleList(last_norm(config) for _ in sources)
        self.decoder_norm = last_norm(config)
        self.project = vocabulary_matrix(width, sizes.target_vocab, config.precision)
        multiply_in(self, config.precision)
        self.output = parts.output(
            output_sizes(sizes, states=width, context=width, embedded=width, source=width)
        )

    def arrange(self, batch: Batch) -> Batch:
        """Gold and extended ids as the combiner lines the sources up."""
        if batch.arranged:
            return batch
        return replace(self._combiners()[0].arrange(batch), arranged=True)

    def encode(
        self, batch: Batch, mode: Mode
    ) -> tuple[tuple[tuple[Memory, ...], ...], tuple[Attended, ...]]:
        """Encode every source of an arranged batch and let every decoder layer prepare them.

        Returns:
            Memories of each layer, and what the slots of the encoders answered, layer by layer.
        """
        read = [self._encode_source(index, batch, mode) for index in range(len(batch.sources))]
        states = tuple(states for states, _ in read)
        memories = tuple(one.prepare(states, batch.extended) for one in self._combiners())
        layers = zip(*(answers for _, answers in read), strict=True)
        return memories, tuple(answer for layer in layers for answer in layer)

    def _encode_source(self, index: int, batch: Batch, mode: Mode) -> tuple[States, list[Attended]]:
        """States of one source, and what the slots of its encoder answered."""
        text, blocks = batch.sources[index], self._blocks(self.encoders[index])
        embedded = embed_source(self.source_embeddings[index], text) * self.scale
        x = blocks[0].own.variant.embed(embedded, 0)
        answers = []
        mine = mode.source(index)
        for layer, block in enumerate(blocks):
            modes = (mine.layer(layer), mine.layer(layer))
            x, _, attended, _ = block(x, text.mask, (), LayerPath(), modes)
            answers.append(attended)
        return States(self.encoder_norms[index](x), text.mask), answers

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        batch = self.arrange(batch)
        memories, encoded = self.encode(batch, self._mode("self", mode))
        embedded = self.target_embedding(batch.inputs) * self.scale
        states, context, layers, _ = self.advance(embedded, memories, (), 0, mode)
        answers = self.variant_answers(encoded, layers)
        return Trace(states, context, embedded, answers, last_first(memories))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode with a cache, by the search that was chosen."""
        batch = self.arrange(batch)
        memories, encoded = self.encode(batch, self._mode("self", mode))
        walk = TransformerWalk(
            self, batch, mode, memories, encoded, self.output.begin(batch, last_first(memories))
        )
        return self.search.decode(walk, batch, max_length)

    def advance(
        self,
        embedded: Tensor,
        memories: tuple[tuple[Memory, ...], ...],
        paths: Sequence[LayerPath],
        offset: int,
        mode: Mode,
    ) -> tuple[Tensor, Tensor, list[Layer], list[LayerPath]]:
        """Read some words: states, context, outputs of the slots of each layer, and the paths."""
        blocks = self._blocks(self.decoder)
        x = blocks[0].own.variant.embed(embedded, offset)
        modes = (self._mode("causal", mode), self._mode("cross", mode))
        after, answers = [], []
        for index, block in enumerate(blocks):
            path = paths[index] if paths else LayerPath()
            asked = (modes[0].layer(index), modes[1].layer(index))
            x, path, own, crossed = block(x, None, memories[index], path, asked)
            assert crossed is not None, "decoder blocks have cross attention"
            context, found = crossed
            after.append(path)
            answers.append(Layer(own, found))
        return self.decoder_norm(x), context, answers, after

    def variant_answers(
        self, encoded: Sequence[Attended], decoded: Sequence[Layer]
    ) -> tuple[Attended, ...]:
        """Outputs of the slots that hold the variant, the last layer first.

        Slots of one layer are in the order of the sources.
        """
        if self.variant_regime == "causal":
            return tuple(layer.own for layer in reversed(decoded))
        if self.variant_regime == "cross":
            return last_first([layer.crossed for layer in decoded])
        each = len(self.encoders)
        return last_first([encoded[at : at + each] for at in range(0, len(encoded), each)])

    def _mode(self, regime: str, mode: Mode) -> Mode:
        """The variant's own mode in its slot, a plain one elsewhere."""
        return mode if regime == self.variant_regime else PLAIN

    @staticmethod
    def _blocks(blocks: nn.Module) -> list[Block]:
        return [block for block in blocks.children() if isinstance(block, Block)]

    def _combiners(self) -> list[Combiner]:
        """What reads the sources, layer by layer."""
        return [block.cross for block in self._blocks(self.decoder) if block.cross is not None]

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slots of the chosen regime, layer by layer, in the order of the sources."""
        if self.variant_regime == "self":
            stacks = [self._blocks(blocks) for blocks in self.encoders]
            return tuple(block.own for layer in zip(*stacks, strict=True) for block in layer)
        if self.variant_regime == "causal":
            return tuple(block.own for block in self._blocks(self.decoder))
        return tuple(slot for combiner in self._combiners() for slot in combiner.slots)


@dataclass(frozen=True)
class TransformerWalk:
    """Decoding state of some rows in the transformer decoder."""

    network: TransformerSeq2Seq
    batch: Batch
    mode: Mode
    memories: tuple[tuple[Memory, ...], ...]
    """Of each layer, one for each slot of the cross attention."""
    encoded: tuple[Attended, ...]
    carried: Tree
    paths: tuple[LayerPath, ...] = ()
    place: int = 0

    def step(self, words: Int[Tensor, "B 1"]) -> Said:
        """Read one word a row; copied words are read as UNK."""
        network, sizes = self.network, self.network.sizes
        known = torch.where(words < sizes.target_vocab, words, sizes.unk)
        embedded = network.target_embedding(known) * network.scale
        states, context, layers, paths = network.advance(
            embedded, self.memories, self.paths, self.place, self.mode
        )
        own = network.variant_answers(self.encoded, layers)
        trace = Trace(states, context, embedded, own, last_first(self.memories))
        found, carried = network.output.step(trace, network.emit, self.batch, words, self.carried)
        after = replace(self, carried=carried, paths=tuple(paths), place=self.place + 1)
        return Said(found.squeeze(1), trace, after)

    def repeat(self, times: int) -> "TransformerWalk":
        """Repeat every row, its source too."""
        rows = repeated_rows(self.batch, times)
        copied = replace(
            self,
            batch=self.batch.select(rows),
            memories=tuple(
                tuple(memory.select(rows) for memory in layer) for layer in self.memories
            ),
            encoded=tuple(select_answer(answer, rows) for answer in self.encoded),
        )
        return copied.reorder(rows)

    def reorder(self, rows: Int[Tensor, " N"]) -> "TransformerWalk":
        """Take other rows' paths; sources stay where they are."""
        carried = tree_map(lambda leaf: leaf.index_select(0, rows), self.carried)
        paths = tuple(path.select(rows) for path in self.paths)
        return replace(self, carried=carried, paths=paths)


def _source_map(sizes: Sizes, source: int, width: int) -> nn.Module:
    """Word embeddings of one source, or a linear map of its frames."""
    frames = sizes.frames_of(source)
    return (
        nn.Linear(frames, width) if frames else embedding_table(sizes.source_vocabs[source], width)
    )


def last_first(layers: Sequence[Sequence[T]]) -> tuple[T, ...]:
    """What layers hold, the last layer first, each in its own order."""
    return tuple(one for layer in reversed(layers) for one in layer)


def select_answer(answer: Attended, rows: Int[Tensor, " N"]) -> Attended:
    """Rows of what a slot answered."""
    weights = answer.weights
    return Attended(
        answer.output.index_select(0, rows),
        None if weights is None else weights.index_select(0, rows),
        answer.state.select(rows),
        {name: term.index_select(0, rows) for name, term in answer.terms.items()},
    )
