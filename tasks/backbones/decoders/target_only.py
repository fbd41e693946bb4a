"""A decoder over the target alone: only the output reads the source.

Yu, Buys & Blunsom, 2016, "Online segment to segment neural transduction",
https://arxiv.org/abs/1609.08194, section 2: the decoder does not depend on the encoder, so that
alignments can be summed out and no word is read before its time.

Deviations: a GRU instead of an LSTM.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.batch import Batch
from bench.api.combiner import AttachSlot
from bench.api.config import NoOptions
from bench.api.decoder import DecoderSizes, DecoderState, Steps
from bench.api.encoder import Encoded
from bench.api.registry import Citation, register
from bench.api.source import Memory, Source
from bench.api.trace import Mode
from tasks.backbones.decoders.open_loop import OpenLoopDecoder


@register(
    "decoder",
    "target_only",
    citation=Citation(text="Yu et al., 2016", url="https://arxiv.org/abs/1609.08194"),
)
class TargetOnlyDecoder(OpenLoopDecoder):
    """g_t = GRU(y, g_{t-1}) from zeros; the output layer reads [c; g_t]; the output gives c."""

    needs = frozenset({"reads_source"})
    gives = frozenset({"open_loop", "source_states"})

    def __init__(self, config: NoOptions, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.hidden = sizes.hidden
        self.rnn = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.context_width = sizes.sources[0]
        self.output_layer_width = self.context_width + sizes.hidden

    def prepare(self, sources: tuple[Encoded, ...], batch: Batch) -> tuple[Memory, ...]:
        """Keep the states of the first source as they are, for the output."""
        states = sources[0].states.unsqueeze(1)
        return (Memory(Source(states, states, sources[0].mask, batch.extended)),)

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Zeros: even the first state knows nothing of the source."""
        return DecoderState(summary.new_zeros(summary.shape[0], self.hidden), (), {})

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """All words at once; the context is zero until the output reads the source."""
        states, last = self.rnn(x, path.hidden.unsqueeze(0).contiguous())
        context = states.new_zeros(1, 1, 1).expand(*states.shape[:2], self.context_width)
        return Steps(states, context, (), DecoderState(last[0], (), {}))

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Context and state side by side."""
        shape = torch.broadcast_shapes(context.shape[:-1], states.shape[:-1])
        return torch.cat((context.expand(*shape, -1), states.expand(*shape, -1)), -1)
