"""Effective attention: the part of the weights that affects the output.

Brunner et al., 2020, "On identifiability in transformers", https://arxiv.org/abs/1908.04211,
sections 3 and 4: what lies in the left null space of the projected values changes nothing.

Deviations: none; ranks are taken with a relative tolerance of 1e-6 in float64. The condition that
weights sum to one, which lowers the dimension of the null space by at most one, is left out as in
the paper.
"""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.heads import expand_heads
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.source import Source
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations, refuse_other_keys

TOLERANCE = 1e-6


@register(
    "probe",
    "effective_attention",
    citation=Citation(
        text="Brunner et al., 2020", url="https://arxiv.org/abs/1908.04211", where="sections 3, 4"
    ),
)
class EffectiveAttention(Probe):
    """A' = A - A N N^T, N an orthonormal basis of the left null space of T = values W_o."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("null_norm_share", "Weights in the null space, |A - A'| / |A|", "norm"),
        diagnostic(
            "effective_correlation_share", "Correlation of A and A'", "", unit="r", low=-1.0
        ),
        diagnostic("identifiable_share", "Weights that can be identified", "examples and heads"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Project the weights of every example and head."""
        slots = subject.backbone.variant_slots()
        found: list[tuple[float, float, bool]] = []
        for seen in observations(subject):
            values = _projected(slots[0], _source(seen))
            for row in range(len(values)):
                scored = seen.batch.mask[row]
                if not bool(scored.any()):
                    continue
                real = seen.real[row][scored].any(0)
                weights = seen.trace.attended[0].weights
                assert weights is not None, "observations refuses networks without weights"
                for head in range(values.shape[1]):
                    shown = weights[row, head][scored][:, real].double()
                    found.append(_compare(shown, values[row, head][real].double()))
        norms, correlations, whole = zip(*found, strict=True)
        known = [r for r in correlations if not math.isnan(r)]
        return [
            Scored(metric="null_norm_share", value=sum(norms) / len(norms)),
            Scored(metric="effective_correlation_share", value=sum(known) / max(1, len(known))),
            Scored(metric="identifiable_share", value=sum(whole) / len(whole)),
        ]


def _source(seen: Observation) -> Source:
    """The values that were mixed: of the memory, or of the cache under causal self-attention."""
    memory, state = seen.trace.memories[0], seen.trace.attended[0].state
    found = memory if memory is not None else state.cache
    if found is None or found.forgotten:
        raise Refused("this network does not keep the values that it mixed.")
    source = found.source.written()
    refuse_other_keys(seen, source.value)
    return source


def _projected(slot: Slot, source: Source) -> Float[Tensor, "B H S D"]:
    """What each head's value adds to the output of the slot."""
    slot.heads.refuse_gates()
    value = expand_heads(source.value, slot.heads.dims.heads)
    nothing = slot.heads.merge(torch.zeros_like(value))
    parts = []
    for head in range(value.shape[1]):
        alone = torch.zeros_like(value)
        alone[:, head] = value[:, head]
        parts.append(slot.heads.merge(alone) - nothing)
    return torch.stack(parts, 1)


def effective(
    weights: Float[Tensor, "T S"], values: Float[Tensor, "S D"]
) -> tuple[Float[Tensor, "T S"], bool]:
    """Weights without their part in the left null space of the values, and whether it is empty."""
    left, singular, _ = torch.linalg.svd(values, full_matrices=True)
    rank = int((singular > TOLERANCE * singular.max()).sum())
    null = left[:, rank:]
    return weights - weights @ null @ null.T, null.shape[1] == 0


def _compare(
    weights: Float[Tensor, "T S"], values: Float[Tensor, "S D"]
) -> tuple[float, float, bool]:
    """Share of the norm that is lost, correlation with what stays, and whether all stays."""
    kept, whole = effective(weights, values)
    lost = float((weights - kept).norm() / weights.norm().clamp(min=1e-30))
    both = torch.stack((weights.flatten(), kept.flatten()))
    constant = bool((both.std(-1, correction=0) < 1e-12).any())
    correlation = float("nan") if constant else float(torch.corrcoef(both)[0, 1])
    return lost, correlation, whole
