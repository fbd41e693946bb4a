"""No attention: the source initializes the decoder and is never read again.

Sutskever, Vinyals & Le, 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 2.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import AttachSlot, Mode, Path, Steps, Wiring, WiringSizes
from bench.api.config import NoOptions
from bench.api.registry import Citation, register
from bench.api.source import Memory


@register(
    "wiring",
    "none_state",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    revision=2,
)
class NoneStateWiring(Wiring):
    """A GRU decoder that starts from the summary of the source."""

    gives = frozenset({"open_loop"})
    attends = False

    def __init__(self, config: NoOptions, sizes: WiringSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        self.rnn = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.readout_width = sizes.hidden

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> Path:
        """Squash the summary into the first state."""
        return Path(torch.tanh(self.start(summary)), (), {})

    def step(
        self, x: Float[Tensor, "B 1 De"], memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> Steps:
        """One word."""
        return self.run(x, memories, path, mode)

    def run(
        self, x: Float[Tensor, "B T De"], memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> Steps:
        """All words at once; the context is empty."""
        states, last = self.rnn(x, path.hidden.unsqueeze(0).contiguous())
        context = states[..., :0]
        return Steps(states, context, (), Path(last[0], (), {}))

    def readout(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The state itself: the vocabulary is read off it, as in the paper."""
        return states
