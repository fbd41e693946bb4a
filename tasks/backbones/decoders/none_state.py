"""No attention: the source initializes the decoder and is never read again.

Sutskever, Vinyals & Le, 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 2.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.decoder import DecoderSizes, DecoderState, Steps
from bench.api.registry import Citation, register
from bench.api.source import Memory
from bench.api.trace import Mode
from tasks.backbones.decoders.open_loop import OpenLoopDecoder
from tasks.backbones.recurrent_layers import RecurrentConfig, advance, begin, recurrent


@register(
    "decoder",
    "none_state",
    config=RecurrentConfig,
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    revision=2,
)
class NoneStateDecoder(OpenLoopDecoder):
    """A recurrent decoder that starts from the summary of the source."""

    unsupported = {"unread_start": "without attention a decoder knows only the summary."}

    def __init__(self, config: RecurrentConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        self.rnn = recurrent(config.cell, sizes.embedding, sizes.hidden, layers=config.layers)
        self.output_layer_width = sizes.hidden

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into the first state."""
        hidden = torch.tanh(self.start(summary))
        return DecoderState(hidden, (), begin(self.rnn, hidden))

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """All words at once; the context is empty."""
        states, last, kept = advance(self.rnn, x, path.hidden, path.extra)
        return Steps(states, states[..., :0], (), DecoderState(last, (), kept))

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The state itself: the vocabulary is read off it, as in the paper."""
        return states
