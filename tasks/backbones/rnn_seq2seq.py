"""Recurrent encoder-decoder, the network of the classic mechanisms.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473; Luong et al., 2015,
https://arxiv.org/abs/1508.04025. Encoder, source order, decoder, combiner, direction and search are
axes.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api import registry
from bench.api.axes import DEFAULTS
from bench.api.backbone import Backbone, BackboneParts, Generated
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.decoder import DECODERS, DecoderSizes, DecoderState, Steps, join_steps
from bench.api.encoder import ENCODERS, SOURCE_ORDERS, Encoded, Encoder
from bench.api.errors import Refused
from bench.api.output import OUTPUTS, Output
from bench.api.registry import register
from bench.api.search import SEARCHES, Said
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory, Tree, tree_map
from bench.api.trace import Mode, Trace
from tasks.backbones.child_sum import ChildSum
from tasks.backbones.dropout import Dropout
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.precision import (
    Precision,
    multiply_in,
    reading_a_sequence,
    vocabulary_matrix,
)
from tasks.backbones.searches.found_words import repeated_rows
from tasks.backbones.source_embedding import embed_source, source_table


@dataclass(frozen=True, kw_only=True)
class RnnSeq2SeqConfig(Config):
    """Options of the recurrent encoder-decoder."""

    hidden: Annotated[int, IntRange(16, 1024, log=True)] = 64
    """Width of decoder states, and of encoder states (both directions together)."""
    embedding: Annotated[int, IntRange(8, 1024, log=True)] = 32
    """Width of word embeddings."""
    dropout: Annotated[float, FloatRange(0.0, 0.5), Legal(0, 1)] = 0.0
    """Share of embedding and output layer units dropped in training."""
    encoder: Selector = Selector("birnn")
    """How source states are made."""
    source_order: Selector = Selector("forward")
    """Order in which the source is read."""
    decoder: Selector = Selector("luong")
    """Decoder: where attention enters it."""
    combiner: Selector = Selector("concat")
    """How several sources are read; a decoder that does not attend reads none and ignores it."""
    summaries: Literal["basic", "child_sum", "none"] = "basic"
    """How the summaries of the sources start the decoder: side by side, gated, or not at all, so
    that its first state is learned and the same for every source."""
    direction: Selector = Selector("single")
    """One direction, or two trained jointly."""
    search: Selector = Selector("greedy")
    """How words are chosen when decoding."""
    projection: Precision = "float32"
    """`bfloat16` takes the product with the vocabulary matrix in bfloat16, and leaves logits so for
    the output to widen. `precision=bfloat16` takes this product in bfloat16, too; then `float32`
    here says only that logits are widened at once."""
    precision: Precision = "float32"
    """Of all products with weights: recurrent layers, projections of heads, output layers."""


@register("backbone", "rnn_seq2seq", config=RnnSeq2SeqConfig, title="GRU encoder-decoder")
class RnnSeq2Seq(Backbone):
    """Recurrent decoder with cross attention over the states of each source."""

    slots = ("cross",)
    sized_by = ("hidden", "embedding")
    reads_frames = True

    def __init__(self, config: RnnSeq2SeqConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes = parts.sizes
        self.sizes = sizes
        self.dropout = Dropout(config.dropout)
        self.source_embeddings = nn.ModuleList(
            source_table(sizes, source, config.embedding)
            for source in range(len(sizes.source_vocabs))
        )
        self.target_embedding = nn.Embedding(sizes.target_vocab, config.embedding, padding_idx=0)
        encoders: list[Encoder] = [
            registry.make(ENCODERS, config.encoder, config.embedding, config.hidden)
            for _ in sizes.source_vocabs
        ]
        self.encoders = nn.ModuleList(encoders)
        self.source_order = registry.make(SOURCE_ORDERS, config.source_order, sizes.eos)
        self.starts_unread = config.summaries == "none"
        self.child_sum: ChildSum | None = None
        if config.summaries == "child_sum":
            self.child_sum = ChildSum(_summary_widths(encoders), config.hidden)

        self.fed = parts.feed_width(encoders[0].output_width)
        embedded = config.embedding + self.fed
        self.search = registry.make(SEARCHES, config.search, sizes)
        self.decoder = registry.make(
            DECODERS,
            config.decoder,
            _decoder_sizes(config, encoders, embedded),
            partial(_attach, parts, embedded),
        )
        self.project = vocabulary_matrix(
            self.decoder.output_layer_width, sizes.target_vocab, config.projection
        )
        multiply_in(self, config.precision)
        self.output = parts.output(
            output_sizes(
                sizes,
                states=config.hidden,
                context=self.decoder.context_width,
                embedded=embedded,
                source=encoders[0].output_width,
            )
        )
        if self.decoder.sampling > 0:
            _refuse_other_words(config.decoder, self.output)

    @classmethod
    def given(cls, config: RnnSeq2SeqConfig) -> frozenset[Capability]:
        """Whether the decoder starts before anything is read."""
        return cls.gives | ({"unread_start"} if config.summaries == "none" else frozenset())

    def arrange(self, batch: Batch) -> Batch:
        """Turn the source, then fold or pad the gold as encoder and combiner do their states."""
        if batch.arranged:
            return batch
        first = self.encoders[0]
        assert isinstance(first, Encoder), "gold belongs to the first source"
        batch = first.arrange(self.source_order.arrange(batch))
        if self.decoder.combiner is not None:
            batch = self.decoder.combiner.arrange(batch)
        return replace(batch, arranged=True)

    def encode(self, batch: Batch, mode: Mode) -> tuple[Encoded, ...]:
        """Embed and encode every source of an arranged batch."""
        found = []
        for index, (encoder, table, text) in enumerate(
            zip(self.encoders, self.source_embeddings, batch.sources, strict=True)
        ):
            assert isinstance(encoder, Encoder), "every source has an encoder"
            embedded = self.dropout(embed_source(table, text))
            found.append(encoder.read(embedded, text.mask, batch, mode.source(index)))
        return tuple(found)

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        batch = self.arrange(batch)
        encoded, memories, path = self._begin(batch, mode)
        embedded = self.dropout(self.target_embedding(batch.inputs))
        with reading_a_sequence(self.decoder):
            if self.fed or (self.decoder.sampling > 0 and mode.read == "train"):
                embedded, steps = self._run_by_word(embedded, batch, memories, path, mode)
            else:
                steps = self.decoder.run(embedded, memories, path, mode)
        terms = tuple(source.terms for source in encoded)
        return Trace(steps.states, steps.context, embedded, steps.attended, memories, terms)

    def _run_by_word(
        self,
        embedded: Float[Tensor, "B T De"],
        batch: Batch,
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> tuple[Float[Tensor, "B T Df"], Steps]:
        """One word after the other, where an input depends on the prediction before it.

        An output may feed the decoder with what it computes from the last word. A decoder may draw
        some inputs from the network's own last prediction, which is then a softmax that feeds none.
        """
        carried = self.output.begin(batch, memories)
        words = list(self._heard(batch).split(1, 1))
        drawn = self._drawn(words, mode)
        read: list[Tensor] = []
        found: list[Steps] = []
        given = list(embedded.split(1, 1))
        for t in range(len(given)):
            if t > 0 and drawn is not None and bool(drawn[:, t].any()):
                said = self._said(found[-1], read[-1], mode, t)
                fresh = self.dropout(self.target_embedding(said))
                given[t] = torch.where(drawn[:, t, None], fresh, given[t])
            states = found[-1].states if found else None
            read.append(self.join_feed(given[t], states, words[t], carried))
            found.append(self.decoder.step(read[-1], memories, path, mode))
            path = found[-1].path
        return torch.cat(read, 1), join_steps(found)

    def _drawn(self, words: list[Tensor], mode: Mode) -> Bool[Tensor, "B T 1"] | None:
        """Which inputs are the network's own words; None where all are the targets."""
        if self.decoder.sampling == 0 or mode.read != "train":
            return None
        assert mode.noise is not None, "read='train' needs noise"
        place = torch.arange(len(words), device=words[0].device)
        draws = mode.noise.uniform("sampling", len(words[0]), 1, place, 1)
        return draws[:, 0] < self.decoder.sampling

    @torch.no_grad()
    def _said(self, steps: Steps, embedded: Tensor, mode: Mode, place: int) -> Int[Tensor, "B 1"]:
        """A word drawn from the prediction of one step."""
        assert mode.noise is not None, "read='train' needs noise"
        logits = self.emit(steps.states, steps.context, embedded).float()
        at = torch.tensor([place], device=logits.device)
        draws = mode.noise.gumbel("sampled word", len(logits), 1, at, logits.shape[-1])
        return (logits + draws[:, 0]).argmax(-1)

    def join_feed(
        self,
        embedded: Float[Tensor, "B 1 De"],
        states: Float[Tensor, "B 1 D"] | None,
        words: Int[Tensor, "B 1"],
        carried: Tree,
    ) -> Float[Tensor, "B 1 Df"]:
        """An embedded word beside what the output feeds; `states` predicted it, None the first."""
        if not self.fed:
            return embedded
        if states is None:
            feed = embedded.new_zeros(*words.shape, self.fed)
        else:
            feed = self.output.feed(states, words, carried)
        return torch.cat((embedded, feed), -1)

    def _heard(self, batch: Batch) -> Int[Tensor, "B T"]:
        """Decoder inputs in the extended vocabulary: a copied word keeps its own id."""
        said = torch.cat((batch.inputs[:, :1], batch.targets[:, :-1]), 1)
        copied = (batch.inputs == self.sizes.unk) & (said >= self.sizes.target_vocab)
        return torch.where(copied, said, batch.inputs)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Output layer and vocabulary projection."""
        read = self.dropout(self.decoder.output_layer(states, context, embedded))
        return self.project(read)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode by the search that was chosen."""
        batch = self.arrange(batch)
        mode = replace(mode, read=self.search.read or mode.read)
        _, memories, path = self._begin(batch, mode)
        walk = RnnWalk(self, batch, mode, memories, path, self.output.begin(batch, memories))
        return self.search.decode(walk, batch, max_length)

    def _begin(
        self, batch: Batch, mode: Mode
    ) -> tuple[tuple[Encoded, ...], tuple[Memory, ...], DecoderState]:
        """Read the sources; the state before the first word."""
        encoded = self.encode(batch, mode)
        memories = self.decoder.prepare(encoded, batch)
        return encoded, memories, self.decoder.begin(self._summary(encoded), memories)

    def _summary(self, encoded: tuple[Encoded, ...]) -> Float[Tensor, "B Ds"]:
        """What the decoder starts from; one zero where it starts unread."""
        summaries = [source.summary for source in encoded]
        if self.starts_unread:
            return torch.zeros_like(summaries[0][:, :1])
        return torch.cat(summaries, -1) if self.child_sum is None else self.child_sum(summaries)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a source, or one for all."""
        return self.decoder.slots


def _refuse_other_words(decoder: Selector, output: Output) -> None:
    """Refuse to draw inputs from a prediction that is not the network's.

    Raises:
        Refused: The output says words by more than a softmax of the logits.
    """
    if type(output) is not registry.find(OUTPUTS, DEFAULTS["output"]).target:
        raise Refused(
            f"{decoder.name}: sampling draws words from the softmax of the output layer, and "
            f"{type(output).__name__} gives words other probabilities; use "
            f"decoder={decoder.name}[sampling=0.0]."
        )


def _attach(parts: BackboneParts, embedded: int, query_width: int, source_width: int) -> Slot:
    """The variant between a decoder, whose inputs are `embedded` wide, and states of a source."""
    return parts.attach(
        SlotPlace(
            regime="cross",
            query_width=query_width,
            source_width=source_width,
            head="raw",
            source_vocab=parts.sizes.source_vocabs[0],
            word_width=embedded,
            given=parts.capabilities,
        )
    )


def _decoder_sizes(
    config: RnnSeq2SeqConfig, encoders: list[Encoder], embedded: int
) -> DecoderSizes:
    """What the decoder is told of the sources and of its inputs, which are `embedded` wide."""
    summaries = {"basic": sum(_summary_widths(encoders)), "child_sum": config.hidden, "none": 1}
    return DecoderSizes(
        embedded,
        config.hidden,
        summaries[config.summaries],
        tuple(encoder.output_width for encoder in encoders),
        config.combiner,
        _backward_units(encoders) if config.summaries == "basic" else (),
    )


def _summary_widths(encoders: list[Encoder]) -> tuple[int, ...]:
    return tuple(encoder.summary_width for encoder in encoders)


def _backward_units(encoders: list[Encoder]) -> tuple[int, ...]:
    """Positions of the backward halves in the summaries side by side."""
    found: list[int] = []
    before = 0
    for encoder in encoders:
        found += [before + unit for unit in encoder.backward]
        before += encoder.summary_width
    return tuple(found)


@dataclass(frozen=True)
class RnnWalk:
    """Decoding state of some rows in the recurrent decoder."""

    network: RnnSeq2Seq
    batch: Batch
    mode: Mode
    memories: tuple[Memory, ...]
    path: DecoderState
    carried: Tree
    states: Float[Tensor, "B 1 D"] | None = None
    """States that predicted the last word; None before the first."""

    def step(self, words: Int[Tensor, "B 1"]) -> Said:
        """Read one word a row; copied words are read as UNK."""
        network, sizes = self.network, self.network.sizes
        known = torch.where(words < sizes.target_vocab, words, sizes.unk)
        embedded = network.target_embedding(known)
        embedded = network.join_feed(embedded, self.states, words, self.carried)
        steps = network.decoder.step(embedded, self.memories, self.path, self.mode)
        trace = Trace(steps.states, steps.context, embedded, steps.attended, self.memories)
        found, carried = network.output.step(trace, network.emit, self.batch, words, self.carried)
        after = replace(self, path=steps.path, carried=carried, states=steps.states)
        return Said(found.squeeze(1), trace, after)

    def repeat(self, times: int) -> "RnnWalk":
        """Repeat every row, its source too."""
        return self.select(repeated_rows(self.batch, times))

    def select(self, rows: Int[Tensor, " N"]) -> "RnnWalk":
        """Take other rows, their sources too."""
        memories = tuple(memory.select(rows) for memory in self.memories)
        return replace(self, batch=self.batch.select(rows), memories=memories).reorder(rows)

    def reorder(self, rows: Int[Tensor, " N"]) -> "RnnWalk":
        """Take other rows' paths; sources stay where they are."""
        carried = tree_map(lambda leaf: leaf.index_select(0, rows), self.carried)
        states = None if self.states is None else self.states.index_select(0, rows)
        return replace(self, path=self.path.select(rows), carried=carried, states=states)
