"""Recurrent encoder-decoder: the house of the classic mechanisms.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473; Luong et al., 2015,
https://arxiv.org/abs/1508.04025. Encoder, wiring, direction and
search are axes.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api import registry
from bench.api.backbone import (
    Backbone,
    BackboneParts,
    Encoded,
    Encoder,
    Generated,
    Mode,
    OutputSizes,
    Path,
    Steps,
    Trace,
    Wiring,
    WiringSizes,
    join_steps,
)
from bench.api.config import Config, FloatRange, IntRange
from bench.api.registry import register
from bench.api.resolve import SlotPlace
from bench.api.search import Said, Search
from bench.api.selector import Selector
from bench.api.source import Memory, Tree, tree_map
from bench.api.task import Batch
from bench.api.variant import Slot
from tasks.backbones._decoding import repeated_rows


@dataclass(frozen=True, kw_only=True)
class RnnSeq2SeqConfig(Config):
    """Options of the recurrent encoder-decoder."""

    hidden: Annotated[int, IntRange(16, 1024, log=True)] = 64
    """Width of decoder states, and of encoder states (both directions together)."""
    embedding: Annotated[int, IntRange(8, 1024, log=True)] = 32
    """Width of word embeddings."""
    dropout: Annotated[float, FloatRange(0.0, 0.5)] = 0.0
    """Share of embedding and readout units dropped in training."""
    encoder: Selector = Selector("birnn")
    """How source states are made."""
    wiring: Selector = Selector("luong")
    """Where attention stands in the decoder."""
    direction: Selector = Selector("single")
    """One direction, or two trained jointly."""
    search: Selector = Selector("greedy")
    """How words are chosen when decoding."""
    projection: Literal["float32", "bfloat16"] = "float32"
    """Precision of the product with the vocabulary matrix."""


@register("backbone", "rnn_seq2seq", config=RnnSeq2SeqConfig, title="GRU encoder-decoder")
class RnnSeq2Seq(Backbone):
    """GRU encoder, GRU decoder, and a slot of cross attention for each source."""

    slots = ("cross",)

    def __init__(self, config: RnnSeq2SeqConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes = parts.sizes
        self.sizes = sizes
        self.dropout = config.dropout
        self.low_precision = config.projection == "bfloat16"
        self.source_embeddings = nn.ModuleList(
            nn.Embedding(vocab, config.embedding, padding_idx=0) for vocab in sizes.source_vocabs
        )
        self.target_embedding = nn.Embedding(sizes.target_vocab, config.embedding, padding_idx=0)
        encoders: list[Encoder] = [
            registry.make("encoder", config.encoder, config.embedding, config.hidden)
            for _ in sizes.source_vocabs
        ]
        self.encoders = nn.ModuleList(encoders)
        # a module list registers the parameters; the tuple keeps the type
        self._encoders = tuple(encoders)

        def attach(query_width: int, source_width: int) -> Slot:
            return parts.attach(
                SlotPlace(
                    regime="cross",
                    query_width=query_width,
                    source_width=source_width,
                    head="raw",
                    source_vocab=sizes.source_vocabs[0],
                    word_width=config.embedding,
                    given=parts.facts,
                )
            )

        self.fed = parts.feed_width(encoders[0].output_width)
        embedded = config.embedding + self.fed
        widths = WiringSizes(
            embedded,
            config.hidden,
            sum(encoder.summary_width for encoder in encoders),
            tuple(encoder.output_width for encoder in encoders),
        )
        self.search: Search = registry.make("search", config.search, sizes)
        self.wiring: Wiring = registry.make("wiring", config.wiring, widths, attach)
        self.project = nn.Linear(self.wiring.readout_width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(
                vocab=sizes.target_vocab,
                states=config.hidden,
                context=self.wiring.context_width,
                embedded=embedded,
                unk=sizes.unk,
                source=encoders[0].output_width,
                source_vocab=sizes.source_vocabs[0],
                bos=sizes.bos,
                eos=sizes.eos,
            )
        )

    def encode(self, batch: Batch, mode: Mode) -> tuple[Encoded, ...]:
        """Embed and encode every source."""
        return tuple(
            encoder.encode(self._drop(embedding(text.tokens)), text.mask, mode)
            for encoder, embedding, text in zip(
                self._encoders, self.source_embeddings, batch.sources, strict=True
            )
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        encoded = self.encode(batch, mode)
        memories = self.wiring.prepare(encoded, batch)
        embedded = self._drop(self.target_embedding(batch.inputs))
        summary = torch.cat([source.summary for source in encoded], -1)
        path = self.wiring.begin(summary, memories)
        if self.fed:
            embedded, steps = self._run_fed(embedded, batch, memories, path, mode)
        else:
            steps = self.wiring.run(embedded, memories, path, mode)
        terms = tuple(source.terms for source in encoded)
        return Trace(steps.states, steps.context, embedded, steps.attended, memories, terms)

    def _run_fed(
        self,
        embedded: Float[Tensor, "B T De"],
        batch: Batch,
        memories: tuple[Memory, ...],
        path: Path,
        mode: Mode,
    ) -> tuple[Float[Tensor, "B T Df"], Steps]:
        """Word by word: what is read includes what the output says of the word before."""
        carried = self.output.begin(batch, memories)
        words = self._heard(batch).split(1, 1)
        read: list[Tensor] = []
        found: list[Steps] = []
        for index, word in enumerate(embedded.split(1, 1)):
            states = found[-1].states if found else None
            read.append(self.join_feed(word, states, words[index], carried))
            found.append(self.wiring.step(read[-1], memories, path, mode))
            path = found[-1].path
        return torch.cat(read, 1), join_steps(found)

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
        """Readout and vocabulary projection."""
        read = self._drop(self.wiring.readout(states, context, embedded))
        if not self.low_precision:
            return self.project(read)
        weight, bias = self.project.weight.bfloat16(), self.project.bias.bfloat16()
        return functional.linear(read.bfloat16(), weight, bias)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode by the search that was chosen."""
        encoded = self.encode(batch, mode)
        memories = self.wiring.prepare(encoded, batch)
        path = self.wiring.begin(torch.cat([e.summary for e in encoded], -1), memories)
        walk = RnnWalk(self, batch, mode, memories, path, self.output.begin(batch, memories))
        return self.search.decode(walk, batch, max_length)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a source."""
        return self.wiring.slots

    def _drop(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.training or self.dropout == 0:
            return x
        return functional.dropout(x, self.dropout)


@dataclass(frozen=True)
class RnnWalk:
    """Rows on their way through the recurrent decoder."""

    network: RnnSeq2Seq
    batch: Batch
    mode: Mode
    memories: tuple[Memory, ...]
    path: Path
    carried: Tree
    states: Float[Tensor, "B 1 D"] | None = None
    """What predicted the word said last; None before the first."""

    def step(self, words: Int[Tensor, "B 1"]) -> Said:
        """Read one word a row; copied words are read as UNK."""
        network, sizes = self.network, self.network.sizes
        known = torch.where(words < sizes.target_vocab, words, sizes.unk)
        embedded = network.target_embedding(known)
        embedded = network.join_feed(embedded, self.states, words, self.carried)
        steps = network.wiring.step(embedded, self.memories, self.path, self.mode)
        trace = Trace(steps.states, steps.context, embedded, steps.attended, self.memories)
        found, carried = network.output.step(trace, network.emit, self.batch, words, self.carried)
        after = replace(self, path=steps.path, carried=carried, states=steps.states)
        return Said(found.squeeze(1), trace, after)

    def repeat(self, times: int) -> "RnnWalk":
        """Copy every row beside itself, its source too."""
        rows = repeated_rows(self.batch, times)
        memories = tuple(memory.select(rows) for memory in self.memories)
        return replace(self, batch=self.batch.select(rows), memories=memories).reorder(rows)

    def reorder(self, rows: Int[Tensor, " N"]) -> "RnnWalk":
        """Take other rows' paths; sources stay where they are."""
        carried = tree_map(lambda leaf: leaf.index_select(0, rows), self.carried)
        states = None if self.states is None else self.states.index_select(0, rows)
        return replace(self, path=self.path.select(rows), carried=carried, states=states)
