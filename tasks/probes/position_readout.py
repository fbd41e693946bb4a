"""Position readout: how well a linear map reads the place of a token from the states of each layer.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5,
add positions below the first layer alone; what is left of them above is measured by a linear
readout, as in Alain & Bengio, 2017, "Understanding intermediate layers using linear classifier
probes", https://arxiv.org/abs/1610.01644, section 3.

Deviations: the readout is ridge regression on one-hot places in closed form, where theirs is a
softmax trained by descent; it is fitted on half of the examples and scored on the other.
"""

from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.backbone import Backbone
from bench.api.batch import Batch
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.backbones.transformer_blocks import Block
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.linear_readout import half_of, read_linearly


@register(
    "probe",
    "position_readout",
    citation=Citation(
        text="Alain & Bengio, 2017", url="https://arxiv.org/abs/1610.01644", where="section 3"
    ),
)
class PositionReadout(Probe):
    """Share of tokens whose place is read right; layer 0 is what the first block is given."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("position_accuracy", "Places read from a layer", "tokens"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Fit and score a readout for each layer, all of them on the same halves."""
        seen = [_layers(subject.backbone, batch) for batch in subject.batches]
        places = torch.cat([_places(one.real) for one in seen])
        fit = half_of(torch.cat([one.real.sum(1) for one in seen]), subject.seed).to(places.device)
        if min(int(fit.sum()), int((~fit).sum())) < 2:
            raise Refused("there are too few examples to fit a readout and to score it.")
        found = []
        for layer in range(len(seen[0].states)):
            states = torch.cat([one.states[layer][one.real] for one in seen]).double()
            right = read_linearly(states[fit], places[fit], states[~fit]) == places[~fit]
            found.append(
                Scored(
                    metric="position_accuracy",
                    value=float(right.double().mean()),
                    axis="layer",
                    x=float(layer),
                )
            )
        return found


class _Layers(NamedTuple):
    """One batch as the blocks of a stack saw it."""

    states: list[Float[Tensor, "B L D"]]
    """What the first block is given, then what each block hands on."""
    real: Bool[Tensor, "B L"]


@torch.no_grad()
def _layers(backbone: Backbone, batch: Batch) -> _Layers:
    """Run a batch and keep what goes in and out of the blocks.

    Raises:
        Refused: The network has no blocks, or they are not one stack.
    """
    states: list[Tensor] = []
    masks: list[Tensor | None] = []

    def keep(module: nn.Module, given: tuple[Any, ...], out: tuple[Any, ...]) -> None:
        if not states:
            states.append(given[0])
        elif states[-1] is not given[0]:
            raise Refused("the blocks of this network are not one stack, each above the other.")
        states.append(out[0])
        masks.append(given[1])

    hooks = [m.register_forward_hook(keep) for m in backbone.modules() if isinstance(m, Block)]
    try:
        backbone(batch, Mode(noise=DRAWS, want_weights=False))
    finally:
        for hook in hooks:
            hook.remove()
    if not states:
        raise Refused("this network has no transformer blocks, whose states could be read.")
    mask = masks[0]
    real = torch.ones_like(states[0][..., 0], dtype=torch.bool) if mask is None else mask
    return _Layers(states, real)


def _places(real: Bool[Tensor, "B L"]) -> Int[Tensor, " N"]:
    """The place of every real token, example by example."""
    return torch.arange(real.shape[1], device=real.device).expand_as(real)[real]
