"""Recurrent encoder-decoder: the house of the classic mechanisms.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473; Luong et al., 2015,
https://arxiv.org/abs/1508.04025. Encoder, source order, wiring, combiner and direction are axes.
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
    SourceOrder,
    Steps,
    Trace,
    Wiring,
    WiringSizes,
    join_steps,
)
from bench.api.config import Config, FloatRange, IntRange
from bench.api.noise import Noise
from bench.api.registry import register
from bench.api.resolve import SlotPlace
from bench.api.selector import Selector
from bench.api.source import Memory
from bench.api.task import Batch
from bench.api.variant import Slot
from tasks.backbones._child_sum import ChildSum


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
    source_order: Selector = Selector("forward")
    """Order in which the source is read."""
    wiring: Selector = Selector("luong")
    """Where attention stands in the decoder."""
    combiner: Selector = Selector("concat")
    """How several sources are read."""
    summaries: Literal["basic", "child_sum"] = "basic"
    """How the summaries of several sources start the decoder: side by side, or gated."""
    direction: Selector = Selector("single")
    """One direction, or two trained jointly."""
    projection: Literal["float32", "bfloat16"] = "float32"
    """Precision of the product with the vocabulary matrix."""


@register("backbone", "rnn_seq2seq", config=RnnSeq2SeqConfig, title="GRU encoder-decoder")
class RnnSeq2Seq(Backbone):
    """Recurrent decoder with cross attention over the states of each source."""

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
        self.source_order: SourceOrder = registry.make(
            "source_order", config.source_order, sizes.eos
        )
        widths = tuple(encoder.summary_width for encoder in encoders)
        self.child_sum: ChildSum | None = None
        if config.summaries == "child_sum":
            self.child_sum = ChildSum(widths, config.hidden)

        def attach(query_width: int, source_width: int) -> Slot:
            return parts.attach(
                SlotPlace(
                    regime="cross",
                    query_width=query_width,
                    source_width=source_width,
                    head="raw",
                    source_vocab=sizes.source_vocabs[0],
                    given=parts.facts,
                )
            )

        wired = WiringSizes(
            config.embedding,
            config.hidden,
            sum(widths) if self.child_sum is None else config.hidden,
            tuple(encoder.output_width for encoder in encoders),
            config.combiner,
            _backward_units(encoders) if self.child_sum is None else (),
        )
        self.wiring: Wiring = registry.make("wiring", config.wiring, wired, attach)
        self.project = nn.Linear(self.wiring.readout_width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(
                sizes.target_vocab,
                config.hidden,
                self.wiring.context_width,
                config.embedding,
                sizes.unk,
            )
        )

    def arrange(self, batch: Batch) -> Batch:
        """Turn the source, then fold or pad the gold as encoder and combiner do their states."""
        if batch.arranged:
            return batch
        first = self.encoders[0]
        assert isinstance(first, Encoder), "gold belongs to the first source"
        batch = first.arrange(self.source_order.arrange(batch))
        if self.wiring.combiner is not None:
            batch = self.wiring.combiner.arrange(batch)
        return replace(batch, arranged=True)

    def encode(self, batch: Batch) -> tuple[Encoded, ...]:
        """Embed and encode every source of an arranged batch."""
        found = []
        for encoder, table, text in zip(
            self.encoders, self.source_embeddings, batch.sources, strict=True
        ):
            assert isinstance(encoder, Encoder), "every source has an encoder"
            found.append(encoder.read(self._drop(table(text.tokens)), text.mask, batch))
        return tuple(found)

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""
        memories, path = self._begin(self.arrange(batch))
        embedded = self._drop(self.target_embedding(batch.inputs))
        if self.wiring.sampling > 0 and mode.read == "train":
            steps, embedded = self._run_sampling(embedded, memories, path, mode)
        else:
            steps = self.wiring.run(embedded, memories, path, mode)
        return Trace(steps.states, steps.context, embedded, steps.attended, memories)

    def _run_sampling(
        self, embedded: Tensor, memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> tuple[Steps, Tensor]:
        """Word by word; some inputs are what the network itself would have said before."""
        assert mode.noise is not None, "read='train' needs noise"
        rows, length, _ = embedded.shape
        place = torch.arange(length, device=embedded.device)
        drawn = mode.noise.uniform("sampling", rows, 1, place, 1)[:, 0] < self.wiring.sampling
        found: list[Steps] = []
        read: list[Tensor] = []
        for t, word in enumerate(embedded.split(1, 1)):
            given = word
            if t > 0 and bool(drawn[:, t].any()):
                said = self._said(found[-1], read[-1], mode.noise, t)
                given = torch.where(
                    drawn[:, t, None], self._drop(self.target_embedding(said)), word
                )
            read.append(given)
            found.append(self.wiring.step(given, memories, path, mode))
            path = found[-1].path
        return join_steps(found), torch.cat(read, 1)

    @torch.no_grad()
    def _said(self, steps: Steps, embedded: Tensor, noise: Noise, place: int) -> Int[Tensor, "B 1"]:
        """A word drawn from the prediction of one step."""
        logits = self.emit(steps.states, steps.context, embedded).float()
        at = torch.tensor([place], device=logits.device)
        draws = noise.gumbel("sampled word", len(logits), 1, at, logits.shape[-1])
        return (logits + draws[:, 0]).argmax(-1)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Readout and vocabulary projection."""
        read = self._drop(self.wiring.readout(states, context, embedded))
        if not self.low_precision:
            return self.project(read)
        weight, bias = self.project.weight.bfloat16(), self.project.bias.bfloat16()
        return functional.linear(read.bfloat16(), weight, bias)

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode greedily until every row has said EOS."""
        batch = self.arrange(batch)
        memories, path = self._begin(batch)
        rows = batch.sources[0].tokens.shape[0]
        device = batch.sources[0].tokens.device
        word = torch.full((rows, 1), self.sizes.bos, device=device)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        said: list[Tensor] = []
        carried = self.output.begin(batch)
        for _ in range(max_length):
            embedded = self.target_embedding(
                torch.where(word < self.sizes.target_vocab, word, self.sizes.unk)
            )
            steps = self.wiring.step(embedded, memories, path, mode)
            path = steps.path
            trace = Trace(steps.states, steps.context, embedded, steps.attended, memories)
            found, carried = self.output.step(trace, self.emit, batch, word, carried)
            word = found.argmax(-1)
            said.append(torch.where(done[:, None], self.sizes.eos, word))
            done = done | (word[:, 0] == self.sizes.eos)
            if bool(done.all()):
                break
        return Generated(cut_at_eos(torch.cat(said, 1), self.sizes.eos), len(said))

    def _begin(self, batch: Batch) -> tuple[tuple[Memory, ...], Path]:
        """Read the sources and stand before the first word."""
        encoded = self.encode(batch)
        memories = self.wiring.prepare(encoded, batch)
        summaries = [source.summary for source in encoded]
        joined = torch.cat(summaries, -1) if self.child_sum is None else self.child_sum(summaries)
        return memories, self.wiring.begin(joined, memories)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot a source, or one for all."""
        return self.wiring.slots

    def _drop(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.training or self.dropout == 0:
            return x
        return functional.dropout(x, self.dropout)


def _backward_units(encoders: list[Encoder]) -> tuple[int, ...]:
    """Places of the backward halves in the summaries side by side."""
    found: list[int] = []
    before = 0
    for encoder in encoders:
        found += [before + unit for unit in encoder.backward]
        before += encoder.summary_width
    return tuple(found)


def cut_at_eos(words: Tensor, eos: int) -> tuple[tuple[int, ...], ...]:
    """Rows of ids up to, not including, EOS."""
    found = []
    for row in words.tolist():
        end = row.index(eos) if eos in row else len(row)
        found.append(tuple(row[:end]))
    return tuple(found)
