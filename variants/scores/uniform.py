"""Uniform score (control): every energy is zero, so that softmax averages the allowed keys.

No paper: the control of attention without selection. A variant that does not beat it learned
nothing from where it looked.

Deviations: none.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.one_query import OneQuery
from bench.api.registry import DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features


@register(
    "score",
    "uniform",
    title="Uniform weights (control)",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("quick", "standard"),
    control="uniform_baseline",
)
class UniformScore(Score):
    """0 for every query and key; no parameters; time O(L S) per head."""

    gives = frozenset({"key_local"})

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Zeros."""
        return call.query.new_zeros(*call.query.shape[:3], call.memory.num_keys)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Zeros, key by key."""
        return torch.stack([one.query.new_zeros(()) for _ in range(one.num_keys)])
