"""Blur: how concentrated the weights of a trained model are.

Koehn & Knowles, 2017, "Six challenges for neural machine translation",
https://arxiv.org/abs/1706.03872, section 3.6 (attention that is spread over several words).

Deviations: entropy is taken over the weights as they are used, which may sum to less than one.
"""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.config import NoOptions
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations, refuse_other_than_shares


@register(
    "probe",
    "blur",
    citation=Citation(
        text="Koehn & Knowles, 2017", url="https://arxiv.org/abs/1706.03872", where="section 3.6"
    ),
)
class Blur(Probe):
    """Means over scored targets of H = -sum w log w, exp(H), max w, sum |w_s - w_(s-1)|, peaks."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("weight_entropy_nats", "Entropy of the weights", "", unit="nats", high=None),
        diagnostic("effective_keys_count", "Effective number of keys", "", unit="keys", high=None),
        diagnostic("no_majority_share", "Largest weight below one half", "targets"),
        diagnostic("largest_weight_share", "Largest weight", "weight"),
        diagnostic("total_variation_share", "Total variation along the source", "weight"),
        diagnostic("peaks_count", "Local maxima of the weights", "", unit="keys", high=None),
        diagnostic("weight_off_gold_share", "Weight beyond one place of gold", "weight", "lower"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Average over every scored target of the examples.

        Raises:
            Refused: Weights are below zero or above one.
        """
        found: dict[str, list[Tensor]] = {}
        for seen in observations(subject):
            for name, values in _of_batch(seen).items():
                found.setdefault(name, []).append(values)
        means = {name: float(torch.cat(parts).mean()) for name, parts in found.items()}
        return [Scored(metric=name, value=value) for name, value in means.items()]


def _of_batch(seen: Observation) -> dict[str, Float[Tensor, " N"]]:
    scored = seen.batch.mask
    weights, real = seen.weights[scored].double(), seen.real[scored]
    refuse_other_than_shares(weights)
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    found = {
        "weight_entropy_nats": entropy,
        "effective_keys_count": entropy.exp(),
        "no_majority_share": (weights.amax(-1) < 0.5).double(),
        "largest_weight_share": weights.amax(-1),
        "total_variation_share": _variation(weights, real),
        "peaks_count": _peaks(weights, real),
    }
    if seen.batch.gold is not None:
        gold = seen.gold[scored] > 0
        linked = gold.any(-1)
        found["weight_off_gold_share"] = (weights * ~_widened(gold)).sum(-1)[linked]
    return found


def _variation(weights: Float[Tensor, "N S"], real: Bool[Tensor, "N S"]) -> Float[Tensor, " N"]:
    steps = weights.diff(dim=-1).abs()
    return (steps * (real[:, 1:] & real[:, :-1])).sum(-1)


def _peaks(weights: Float[Tensor, "N S"], real: Bool[Tensor, "N S"]) -> Float[Tensor, " N"]:
    """Keys above both neighbors; beyond the ends there are none."""
    low = torch.full_like(weights[:, :1], -1.0)
    inside = torch.where(real, weights, -1.0)
    left = torch.cat((low, inside[:, :-1]), -1)
    right = torch.cat((inside[:, 1:], low), -1)
    return (real & (inside > left) & (inside > right)).double().sum(-1)


def _widened(gold: Bool[Tensor, "N S"]) -> Bool[Tensor, "N S"]:
    wide = gold.clone()
    wide[:, 1:] |= gold[:, :-1]
    wide[:, :-1] |= gold[:, 1:]
    return wide
