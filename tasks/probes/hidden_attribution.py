"""Hidden token attribution: how much of a state is due to the word at its own position.

Brunner et al., 2020, "On identifiability in transformers", https://arxiv.org/abs/1908.04211,
section 5.2: the norm of the gradient of a state by each input word, as a share of their sum.

Deviations: the norm is that of the whole Jacobian, all units of the state by all units of the
word's embedding. One position of each example is drawn, not all of them. Recurrent and
convolutional encoders count as one layer.
"""

from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch
from bench.api.config import NoOptions
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.backbones.transformer_blocks import Block
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.embedded_words import embedded_words


@register(
    "probe",
    "hidden_attribution",
    citation=Citation(
        text="Brunner et al., 2020", url="https://arxiv.org/abs/1908.04211", where="section 5.2"
    ),
)
class HiddenAttribution(Probe):
    """c_ij = |de_j / dx_i| / sum_k |de_j / dx_k|; c_jj is the share of a state's own word."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("own_word_share", "Attribution of the last layer to the own word", "norm"),
        diagnostic("own_word_at_share", "Attribution to the own word by layer", "norm"),
        diagnostic("own_word_largest_share", "Own word contributes most, last layer", "states"),
        diagnostic("own_word_largest_at_share", "Own word contributes most, by layer", "states"),
        diagnostic("own_word_even_share", "If all words contributed alike", "norm"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Differentiate one state of each example, layer by layer."""
        generator = torch.Generator().manual_seed(subject.seed)
        parts = [_of_batch(subject, batch, generator) for batch in subject.batches]
        own = _means([part.own for part in parts])
        largest = _means([part.largest for part in parts])
        even = torch.cat([part.even for part in parts]).mean().item()
        found = [
            Scored(metric="own_word_share", value=own[-1]),
            Scored(metric="own_word_largest_share", value=largest[-1]),
            Scored(metric="own_word_even_share", value=even),
        ]
        for name, curve in (("own_word", own), ("own_word_largest", largest)):
            found += [
                Scored(metric=f"{name}_at_share", value=value, axis="layer", x=float(layer))
                for layer, value in enumerate(curve, 1)
            ]
        return found


class Shares(NamedTuple):
    """Of one batch; the lists have an entry for each layer."""

    own: list[Float[Tensor, " B"]]
    largest: list[Float[Tensor, " B"]]
    even: Float[Tensor, " B"]


def _means(parts: list[list[Float[Tensor, " B"]]]) -> list[float]:
    """Mean over all batches, for each layer."""
    return [torch.cat(layer).mean().item() for layer in zip(*parts, strict=True)]


def _of_batch(subject: Subject, batch: Batch, generator: torch.Generator) -> Shares:
    words, layers = _run(subject, batch)
    real = _real(batch)
    places = torch.multinomial(real.double().cpu(), 1, generator=generator).to(real.device)
    seen = _seen(batch, real, places)
    own, largest = [], []
    for states in layers:
        norms = _norms(states, places.squeeze(1), words).masked_fill(~seen, 0.0)
        shares = norms / norms.sum(-1, keepdim=True).clamp(min=1e-30)
        own.append(shares.gather(1, places).squeeze(1))
        largest.append((shares.argmax(-1, keepdim=True) == places).squeeze(1).double())
    return Shares(own, largest, 1 / seen.double().sum(-1))


def _real(batch: Batch) -> Bool[Tensor, "B S"]:
    """Words that are not padding."""
    if not batch.sources:
        return torch.ones_like(batch.inputs, dtype=torch.bool)
    text = batch.sources[0]
    return torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask


def _seen(
    batch: Batch, real: Bool[Tensor, "B S"], places: Int[Tensor, "B 1"]
) -> Bool[Tensor, "B S"]:
    """Words that a state may depend on: a decoder alone has read no later ones."""
    if batch.sources:
        return real
    return real & (torch.arange(real.shape[1], device=real.device) <= places)


def _norms(
    states: Float[Tensor, "B S D"], places: Int[Tensor, " B"], words: Float[Tensor, "B S E"]
) -> Float[Tensor, "B S"]:
    """Frobenius norm of the Jacobian of each example's drawn state by each word."""
    chosen = states[torch.arange(len(places), device=places.device), places]
    total = torch.zeros(words.shape[:2], dtype=words.dtype, device=words.device)
    for unit in range(chosen.shape[1]):
        # examples do not see each other, so that one gradient serves the whole batch
        (slope,) = torch.autograd.grad(chosen[:, unit].sum(), words, retain_graph=True)
        total = total + slope.square().sum(-1)
    return total.sqrt()


def _layers(network: nn.Module) -> list[nn.Module]:
    """Blocks that read the words one above the other, or else the encoder as a whole."""
    encoders = [module for module in network.modules() if isinstance(module, Encoder)]
    root = encoders[0] if encoders else network
    stacks = [m for m in root.modules() if isinstance(m, nn.ModuleList) and _reads_words(m)]
    # of several sources, the first one is measured
    return list(stacks[0]) if stacks else list(encoders[:1])


def _reads_words(stack: nn.ModuleList) -> bool:
    """Whether these are blocks without a source."""
    return len(stack) > 0 and all(isinstance(m, Block) and m.cross is None for m in stack)


def _run(subject: Subject, batch: Batch) -> tuple[Tensor, list[Tensor]]:
    """Embedded words, and the states of every layer that depend on them."""
    layers: list[Tensor] = []

    def keep_states(module: nn.Module, given: object, found: Any) -> None:
        layers.append(found.states if isinstance(found, Encoded) else found[0])

    hooks = [m.register_forward_hook(keep_states) for m in _layers(subject.backbone)]
    try:
        with embedded_words(subject, batch) as words, torch.enable_grad():
            subject.backbone(batch, Mode(noise=DRAWS, want_weights=False))
    finally:
        for hook in hooks:
            hook.remove()
    embedded = words.leaf
    if not layers or any(states.shape[:2] != embedded.shape[:2] for states in layers):
        raise Refused("this network's states are not its words, one for one.")
    return embedded, layers
