"""No attention: the summary of the source is part of every decoder input.

Cho et al., 2014, "Learning phrase representations using RNN encoder-decoder",
https://arxiv.org/abs/1406.1078, section 2.2.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.decoder import DecoderSizes, DecoderState, Steps
from bench.api.registry import Citation, register
from bench.api.source import Memory, leaf
from bench.api.trace import Mode
from tasks.backbones.decoders.open_loop import OpenLoopDecoder
from tasks.backbones.recurrent_layers import RecurrentConfig, advance, begin, recurrent


@register(
    "decoder",
    "none_input",
    config=RecurrentConfig,
    citation=Citation(
        text="Cho et al., 2014", url="https://arxiv.org/abs/1406.1078", where="section 2.2"
    ),
)
class NoneInputDecoder(OpenLoopDecoder):
    """A recurrent decoder that reads the summary beside every word."""

    unsupported = {"unread_start": "without attention a decoder knows only the summary."}

    def __init__(self, config: RecurrentConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        width = sizes.embedding + sizes.summary
        self.rnn = recurrent(config.cell, width, sizes.hidden, layers=config.layers)
        self.out = nn.Linear(sizes.hidden + sizes.summary, sizes.hidden)
        self.output_layer_width = sizes.hidden
        self.context_width = sizes.summary

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Keep the summary on the path."""
        hidden = torch.tanh(self.start(summary))
        return DecoderState(hidden, (), {**begin(self.rnn, hidden), "summary": summary})

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """All words at once; the context is the same summary everywhere."""
        summary = leaf(path.extra, "summary").unsqueeze(1).expand(-1, x.shape[1], -1)
        given = torch.cat((x, summary), -1)
        states, last, kept = advance(self.rnn, given, path.hidden, path.extra)
        kept["summary"] = leaf(path.extra, "summary")
        return Steps(states, summary, (), DecoderState(last, (), kept))

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """One hidden layer over state and summary."""
        return torch.tanh(self.out(torch.cat((states, context), -1)))
