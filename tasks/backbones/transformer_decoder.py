"""Decoder-only transformer: causal self-attention in every layer.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3; pre-norm as in later practice.

Deviations: GELU by default. Embeddings and the output layer have matrices of their own, and
dropout falls on the outputs of sublayers alone, as in `transformer_seq2seq`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts, Generated
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.capabilities import Capability
from bench.api.config import FloatRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import Output
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory, Tree
from bench.api.trace import Mode, Trace
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.precision import multiply_in
from tasks.backbones.searches.found_words import cut_at_eos
from tasks.backbones.source_embedding import input_frames, with_frames
from tasks.backbones.transformer_blocks import (
    FEED_SIZE,
    Block,
    BlockConfig,
    LayerPath,
    embedding_table,
    free_unread_positions,
    last_norm,
)

OWN = "own"
"""The word for the variant of the cell in a stack."""


@dataclass(frozen=True, kw_only=True)
class TransformerDecoderConfig(BlockConfig):
    """Options of the decoder-only transformer."""

    stack: tuple[Selector, ...] = (Selector(OWN),)
    """What the layers hold, from the lowest one up and then again. `own` is the variant of the
    cell; other names stay. `3*own+mha` has multi-head attention in every fourth layer. What these
    names add to their input is not added, and is refused."""
    temperature: Annotated[float, FloatRange(0.0, 2.0)] = 0.0
    """Of drawing words when text is continued; 0 takes the likeliest word. No command continues
    text, so that this acts where a program calls `generate`."""

    def __post_init__(self) -> None:
        """Check that the variant stands somewhere."""
        super().__post_init__()
        if self.temperature < 0:
            raise InvalidConfig(f"temperature must be at least 0, got {self.temperature}.")
        if all(self.in_layer(n).name != OWN for n in range(self.layers)):
            raise InvalidConfig(
                f"stack: no layer holds the variant; write {OWN} for it, as in stack=3*{OWN}+mha."
            )

    def in_layer(self, index: int) -> Selector:
        """What a layer holds."""
        return self.stack[index % len(self.stack)]

    def same_below(self, index: int) -> tuple[int, ...]:
        """Layers below one that hold the same."""
        return tuple(n for n in range(index) if self.in_layer(n) == self.in_layer(index))


@register(
    "backbone",
    "transformer_decoder",
    config=TransformerDecoderConfig,
    revision=2,
    title="transformer decoder",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3"
    ),
)
class TransformerDecoder(Backbone):
    """Blocks of causal self-attention; all of them hold the variant, unless `stack` says others."""

    slots = ("causal",)
    sized_by = ("width", "feed_width")
    size_of = FEED_SIZE
    reads_frames = True

    @classmethod
    def given(cls, config: TransformerDecoderConfig) -> frozenset[Capability]:
        """A layer can read another one where two of them hold the same."""
        stacked = any(config.same_below(layer) for layer in range(config.layers))
        return cls.gives | (frozenset({"layers_below"}) if stacked else frozenset())

    def __init__(self, config: TransformerDecoderConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        self.scale = width**0.5
        self.temperature = config.temperature
        self.embedding = embedding_table(sizes.target_vocab, width)
        self.frames = input_frames(sizes, width)
        place = SlotPlace(
            regime="causal",
            query_width=width,
            source_width=width,
            head=f"multi[heads={config.heads}]",
            relations=sizes.relations,
            given=parts.capabilities,
        )

        def slot(layer: int) -> Slot:
            held = config.in_layer(layer)
            at = replace(place, layer=layer, below=config.same_below(layer))
            if held.name == OWN:
                return parts.attach(at)
            named = parts.attach_named(held, at)
            if layer == 0 or not config.positions_each_layer:
                _refuse_unread_positions(held, named)
            return named

        layers = range(config.layers)
        self.blocks = nn.ModuleList(Block(config, slot(n), first=n == 0) for n in layers)
        self.holding = [n for n in layers if config.in_layer(n).name == OWN]
        free_unread_positions(self.variant_slots(), config)
        links = (block.own.link for block in self.blocks if isinstance(block, Block))
        self.read_above = {link.layer for link in links if link is not None}
        self.norm = last_norm(config)
        self.project = nn.Linear(width, sizes.target_vocab)
        multiply_in(self, config.precision)
        self.output = parts.output(output_sizes(sizes, states=width, context=0, embedded=width))

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run the whole sequence; only the last layer that holds the variant returns weights."""
        embedded = with_frames(self.embedding(batch.inputs), self.frames, batch) * self.scale
        return self.advance(embedded, (), 0, replace(mode, relations=batch.relations))[0]

    def advance(
        self,
        embedded: Float[Tensor, "B L D"],
        paths: Sequence[LayerPath],
        offset: int,
        mode: Mode,
    ) -> tuple[Trace, list[LayerPath]]:
        """Read some words behind those before; what each layer remembers of them comes back."""
        x = self.variant_slots()[0].variant.embed(embedded, offset)
        quiet = replace(mode, want_weights=False, edit=None)
        answers, after = [], []
        handed: dict[int, Memory] = {}
        for index, block in enumerate(self.blocks):
            asked = (mode if index == self.holding[-1] else quiet).layer(index)
            path = paths[index] if paths else LayerPath()
            link = block.own.link if isinstance(block, Block) else None
            below = None if link is None else handed[link.layer]
            x, path, attended, _ = block(
                x, None, (), path, (asked, asked), below, index in self.read_above
            )
            after.append(path)
            if attended.memory is not None:
                handed[index] = attended.memory
            if index in self.holding:
                answers.append(attended)
        states = self.norm(x)
        trace = Trace(
            states, states[..., :0], embedded, tuple(answers[::-1]), (None,) * len(answers)
        )
        return trace, after

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Continue the inputs of each row: they are read at once, then a word at a time.

        Words are the likeliest ones, or drawn from the noise of `mode` at the temperature of the
        options. Every step reads one word and what the layers remember.

        Args:
            batch: Its `inputs` are the beginnings, all of one length.
            max_length: Most words to say behind them.
            mode: How attention reads.

        Raises:
            Refused: Inputs have frames beside them.
        """
        if self.frames is not None:
            raise Refused(
                "this network continues words alone, and this task has frames beside them."
            )
        mode = replace(mode, want_weights=False)
        carried = self.output.begin(batch, ())
        paths: list[LayerPath] = []
        words, offset = batch.inputs, 0
        ended = torch.zeros(len(words), dtype=torch.bool, device=words.device)
        said: list[Tensor] = []
        for _ in range(max_length):
            embedded = self.embedding(words) * self.scale
            trace, paths = self.advance(embedded, paths, offset, mode)
            log_probs, carried = self._think(trace, batch, words, carried)
            offset += words.shape[1]
            word = self._choose(log_probs, offset, mode)
            said.append(torch.where(ended[:, None], self.output.sizes.eos, word))
            ended = ended | (word[:, 0] == self.output.sizes.eos)
            if bool(ended.all()):
                break
            words = word
        return Generated(cut_at_eos(torch.cat(said, 1), self.output.sizes.eos), len(said))

    def _think(
        self, trace: Trace, batch: Batch, words: Int[Tensor, "B L"], carried: Tree
    ) -> tuple[Float[Tensor, "B V"], Tree]:
        """What is said after the last of some words; an output that remembers sees them all."""
        length = words.shape[1]
        # what looks back has a step of its own, and may carry nothing before the first
        remembers = type(self.output).step is not Output.step
        for at in range(0 if remembers else length - 1, length):
            one = slice(at, at + 1)
            seen = Trace(
                trace.states[:, one], trace.context[:, one], trace.embedded[:, one], (), ()
            )
            found, carried = self.output.step(seen, self.emit, batch, words[:, one], carried)
        return found.squeeze(1), carried

    def _choose(
        self, log_probs: Float[Tensor, "B V"], place: int, mode: Mode
    ) -> Int[Tensor, "B 1"]:
        if not self.temperature:
            return log_probs.argmax(-1, keepdim=True)
        if mode.noise is None:
            raise Refused("words are drawn at this temperature, and there is no noise to draw by.")
        rows, vocab = log_probs.shape
        at = torch.tensor([place], device=log_probs.device)
        drawn = mode.noise.gumbel("word", rows, 1, at, vocab)[:, 0, 0]
        return (log_probs / self.temperature + drawn).argmax(-1, keepdim=True)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Vocabulary projection."""
        return self.project(states)

    def variant_slots(self) -> tuple[Slot, ...]:
        """One slot for each layer that holds the variant."""
        held = (block for n, block in enumerate(self.blocks) if n in self.holding)
        return tuple(block.own for block in held if isinstance(block, Block))


def _refuse_unread_positions(named: Selector, slot: Slot) -> None:
    """Refuse positions of a layer that would be added to the input of a network, which it is not.

    Raises:
        Refused: It has some.
    """
    if any(one.is_added() for one in slot.variant.positions):
        raise Refused(
            f"stack: {named} adds positions to its input, and in this layer nothing is added; name "
            "attention without them, and give the variant of the cell such a position, whose are "
            "added to the input of the network."
        )
