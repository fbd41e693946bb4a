"""Transformer blocks whose parts can be switched off, shared by the transformer backbones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.call import Attended
from bench.api.combiner import Answers, Combiner
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.slot import Slot
from bench.api.source import Memory, State
from bench.api.trace import Mode
from tasks.backbones.dropout import Dropout
from tasks.backbones.precision import Precision


@dataclass(frozen=True, kw_only=True)
class BlockConfig(Config):
    """Options that every transformer backbone has."""

    width: Annotated[int, IntRange(16, 1024, log=True)] = 64
    """Model width D."""
    layers: Annotated[int, IntRange(1, 12)] = 2
    """Blocks, in encoder and decoder each."""
    heads: Annotated[int, IntRange(1, 16)] = 4
    """Heads of slots whose variant does not choose its own."""
    dropout: Annotated[float, FloatRange(0.0, 0.5), Legal(0, 1)] = 0.0
    """Share of residual units dropped in training."""
    norm: Literal["pre", "post", "off"] = "pre"
    """Layer normalization before or after each sublayer; the 2017 paper has `post`."""
    norm_form: Literal["biased", "unbiased"] = "biased"
    """PyTorch's layer normalization, or that of the Annotated Transformer: unbiased deviation, to
    which epsilon is added. `norm=off` has neither."""
    residual: bool = True
    """Whether sublayers are added to their input."""
    feed_forward: int = 4
    """Hidden width of the feed-forward sublayer in model widths; 0 removes it."""
    feed_width: int = 0
    """Hidden width of the feed-forward sublayer in numbers; 0 takes `feed_forward` model widths."""
    activation: Literal["gelu", "relu"] = "gelu"
    """Between the two maps of the feed-forward sublayer; the 2017 paper has `relu`."""
    short_convolution: int = 0
    """Kernel of a causal depthwise convolution before self-attention; 0 removes it."""
    feed_convolution: int = 0
    """Kernel of such convolutions in front of the feed-forward sublayer and inside it, before its
    activation (Canon-C and Canon-D; `head=canon` has Canon-A and Canon-B); 0 removes them."""
    positions_each_layer: bool = False
    """Whether positions are added in front of every block, not of the first alone."""
    precision: Precision = "float32"
    """Of products with weights: projections of heads, feed-forward sublayers, the vocabulary."""

    def __post_init__(self) -> None:
        """Check that heads divide the width."""
        if self.heads < 1 or self.width % self.heads:
            raise InvalidConfig(f"heads must divide width {self.width}, got {self.heads}.")
        widths = (self.feed_forward, self.feed_width, self.short_convolution, self.feed_convolution)
        if self.layers < 1 or min(widths) < 0:
            raise InvalidConfig(
                "layers must be at least 1, feed_forward, feed_width, short_convolution and "
                f"feed_convolution at least 0, got {self.layers}, {', '.join(map(str, widths))}."
            )
        if (self.feed_width or self.feed_convolution) and not self.feed_forward:
            raise InvalidConfig(
                "feed_forward=0 removes the sublayer; leave feed_width and feed_convolution out."
            )

    @property
    def feed_hidden(self) -> int:
        """Hidden width of the feed-forward sublayer; 0 where there is none."""
        return self.feed_width or self.feed_forward * self.width


FEED_SIZE = {"feed_width": "feed_hidden"}
"""Where blocks say how wide their feed-forward sublayers are, for backbones that are resized."""


class ShortConvolution(nn.Module):
    """Causal depthwise convolution with a residual: each token sees the few before it.

    It takes no mask. Only encoders and taggers give their blocks padding: behind the tokens, which
    see nothing behind them, and all in one call, so that no later one goes on from padding.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.mix = nn.Conv1d(width, width, kernel, groups=width)

    def forward(
        self, x: Float[Tensor, "B L D"], past: Float[Tensor, "B P D"] | None
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B P D"]]:
        """Convolve; `past` holds the kernel-1 tokens before, and so does what is returned."""
        if past is None:
            past = x.new_zeros(x.shape[0], self.kernel - 1, x.shape[2])
        wide = torch.cat((past, x), 1)
        mixed = self.mix(wide.transpose(1, 2)).transpose(1, 2)
        return x + mixed, wide[:, wide.shape[1] - self.kernel + 1 :]


class FeedForward(nn.Sequential):
    """Two linear maps with an activation between them."""

    def __init__(self, config: BlockConfig) -> None:
        width, hidden = config.width, config.feed_hidden
        between = nn.GELU() if config.activation == "gelu" else nn.ReLU()
        super().__init__(nn.Linear(width, hidden), between, nn.Linear(hidden, width))

    def step(
        self, x: Float[Tensor, "B L D"], past: tuple[Tensor, Tensor] | None
    ) -> tuple[Float[Tensor, "B L D"], None]:
        """Map the next tokens; earlier ones are not needed."""
        return self(x), None


class ConvolvedFeedForward(nn.Module):
    """A feed-forward sublayer with a convolution in front and one before its activation.

    Canon-C and Canon-D of Allen-Zhu, 2025, https://arxiv.org/abs/2512.17351, section 3.
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.front = ShortConvolution(config.width, config.feed_convolution)
        self.inside = ShortConvolution(config.feed_hidden, config.feed_convolution)
        self.inward, self.activation, self.outward = FeedForward(config)

    def step(
        self, x: Float[Tensor, "B L D"], past: tuple[Tensor, Tensor] | None
    ) -> tuple[Float[Tensor, "B L D"], tuple[Tensor, Tensor]]:
        """Map the next tokens; `past` holds what both convolutions need of the tokens before."""
        x, front = self.front(x, None if past is None else past[0])
        hidden, inside = self.inside(self.inward(x), None if past is None else past[1])
        return self.outward(self.activation(hidden)), (front, inside)


class UnbiasedNorm(nn.Module):
    """gain * (x - mean) / (deviation + epsilon) + bias, with the deviation over D - 1.

    Rush, 2018, "The Annotated Transformer", https://aclanthology.org/W18-2509.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalize the last dimension."""
        centered = x - x.mean(-1, keepdim=True)
        # the square root has no gradient at zero, which equal units would ask for
        variance = centered.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)
        deviation = variance.clamp_min(torch.finfo(x.dtype).tiny).sqrt()
        return self.weight * centered / (deviation + self.eps) + self.bias


def layer_norm(config: BlockConfig) -> nn.Module:
    """Layer normalization of the chosen form."""
    return (
        nn.LayerNorm(config.width) if config.norm_form == "biased" else UnbiasedNorm(config.width)
    )


def last_norm(config: BlockConfig) -> nn.Module:
    """The norm after the last block: pre-norm leaves its sum unnormalized."""
    return layer_norm(config) if config.norm == "pre" else nn.Identity()


class Sublayer(nn.Module):
    """Norm, dropout and residual around a function."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.placement = config.norm
        self.residual = config.residual
        self.dropout = Dropout(config.dropout)
        self.norm = nn.Identity() if config.norm == "off" else layer_norm(config)

    def before(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """What the function reads."""
        return self.norm(x) if self.placement == "pre" else x

    def after(self, x: Float[Tensor, "B L D"], y: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """Add the function's output to its input."""
        y = self.dropout(y)
        joined = x + y if self.residual else y
        return self.norm(joined) if self.placement == "post" else joined


class LayerPath(NamedTuple):
    """What one block remembers between steps."""

    own: State | None = None
    cross: tuple[State, ...] | None = None
    """One state a slot of the cross attention."""
    convolution: Tensor | None = None
    feed: tuple[Tensor, Tensor] | None = None
    """What the convolutions of the feed-forward sublayer need."""

    def select(self, rows: Int[Tensor, " N"]) -> "LayerPath":
        """Pick batch rows, for beams."""
        convolution, feed = self.convolution, self.feed
        return LayerPath(
            None if self.own is None else self.own.select(rows),
            None if self.cross is None else tuple(state.select(rows) for state in self.cross),
            None if convolution is None else convolution.index_select(0, rows),
            None
            if feed is None
            else (feed[0].index_select(0, rows), feed[1].index_select(0, rows)),
        )


def free_unread_positions(slots: Sequence[Slot], config: BlockConfig) -> None:
    """Free what later layers have for positions of their input, where the first alone adds them."""
    if not config.positions_each_layer:
        for slot in slots[1:]:
            slot.variant.give_up_input()


class Block(nn.Module):
    """Self-attention, optional cross attention to one or several sources, feed-forward."""

    def __init__(
        self, config: BlockConfig, own: Slot, cross: Combiner | None = None, *, first: bool = True
    ) -> None:
        super().__init__()
        width = config.width
        if config.residual and own.output_width != width:
            raise Refused(
                f"blocks add what attention reads, and it must have width {width}, not "
                f"{own.output_width}; choose heads that map back, such as head=multi."
            )
        self.adds_positions = config.positions_each_layer and not first
        self.own, self.cross = own, cross
        self.own_around = Sublayer(config)
        sublayers = 0 if cross is None else cross.num_sublayers
        self.cross_around = nn.ModuleList(Sublayer(config) for _ in range(sublayers))
        self.convolution = (
            ShortConvolution(width, config.short_convolution) if config.short_convolution else None
        )
        self.around = Sublayer(config) if config.feed_forward else None
        self.feed: FeedForward | ConvolvedFeedForward | None = None
        if self.around is not None:
            convolved = config.feed_convolution > 0
            self.feed = ConvolvedFeedForward(config) if convolved else FeedForward(config)

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        mask: Tensor | None,
        memories: tuple[Memory, ...],
        path: LayerPath,
        modes: tuple[Mode, Mode],
        below: Memory | None = None,
        want_memory: bool = False,
    ) -> tuple[Tensor, LayerPath, Attended, Answers | None]:
        """Run some tokens; returns them, the next path, and the outputs of the slots.

        Args:
            x: The next tokens.
            mask: Which of them are real.
            memories: What cross attention reads.
            path: What the previous call returned.
            modes: How self-attention and cross attention read.
            below: What a layer below attended to, where self-attention reads it.
            want_memory: Whether a layer above reads what self-attention attended to.
        """
        convolved = path.convolution
        if self.adds_positions:
            x = self.own.variant.embed(x, 0 if path.own is None else path.own.offset)
        given = self.own_around.before(x)
        if self.convolution is not None:
            given, convolved = self.convolution(given, path.convolution)
        state = path.own if path.own is not None else self.own.start(None, given)
        call = modes[0].call()
        call["want_memory"] = want_memory
        context, attended = self.own.attend(
            given, None, state, own=(given, mask, None), below=below, **call
        )
        x = self.own_around.after(x, context)
        crossed = None
        if self.cross is not None:
            start = path.cross if path.cross is not None else self.cross.start(x[:, 0], memories)
            around = [one for one in self.cross_around if isinstance(one, Sublayer)]
            x, crossed = self.cross.pass_through(x, around, memories, start, modes[1].call())
        feed = None
        if self.around is not None and self.feed is not None:
            mapped, feed = self.feed.step(self.around.before(x), path.feed)
            x = self.around.after(x, mapped)
        states = tuple(answer.state for answer in crossed[1]) if crossed else None
        after = LayerPath(attended.state, states, convolved, feed)
        return x, after, attended, crossed


def embedding_table(vocab: int, width: int) -> nn.Embedding:
    """Embeddings of unit scale once multiplied by sqrt(D), as large as the positions."""
    table = nn.Embedding(vocab, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table
