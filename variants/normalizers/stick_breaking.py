"""Stick-breaking: the nearest key takes a share of a stick, each key before it one of the rest.

Tan et al., 2025, "Scaling stick-breaking attention: an efficient implementation and in-depth
study", https://arxiv.org/abs/2410.17980, section 2.

Deviations: what is left of the stick after the first key is read by nobody. The name
`stick_breaking` reads keys before the query, as the paper does; `stick_breaking[mask=full]` reads
the query's own key too.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call
from bench.api.capabilities import Capability
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.precision import at_least_single


@register(
    "normalizer",
    "stick_breaking",
    citation=Citation(
        text="Tan et al., 2025", url="https://arxiv.org/abs/2410.17980", where="section 2"
    ),
)
class StickBreakingNormalizer(Normalizer):
    """sigmoid(e_j) times the product of 1 - sigmoid(e_l) over the allowed keys l after j.

    Time O(L S) per head. Later keys come first, so that weights say which key is recent, without
    any positions. A row sums to at most one.
    """

    gives = frozenset({"ordered"})
    visible_alone = True
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "a stick is broken back from the query, and cross attention has two sequences",
        "pool": "a stick is broken back from the query, and that of pooling is not in the sequence",
        "self": "a stick is broken back from the query, and here keys lie on both of its sides",
    }

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Sum logarithms from the last key to the first."""
        wide = at_least_single(energy)
        left = functional.logsigmoid(-wide)
        if allowed is not None:
            left = torch.where(allowed, left, 0.0)
        # what all later keys leave: shifted, not subtracted, which would lose what is small
        later = functional.pad(left[..., 1:], (0, 1)).flip(-1).cumsum(-1).flip(-1)
        weights = (functional.logsigmoid(wide) + later).exp().to(energy.dtype)
        return Normalized(weights if allowed is None else torch.where(allowed, weights, 0.0))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Break the stick, from the last key to the first."""
        stick = torch.ones_like(energy[0])
        weights = [torch.zeros_like(energy[0])] * one.num_keys
        for s in reversed(range(one.num_keys)):
            if allowed[s]:
                share = 1 / (1 + torch.exp(-energy[s]))
                weights[s] = share * stick
                stick = stick * (1 - share)
        return torch.stack(weights)


register_recipe(
    "stick_breaking",
    Recipe(axes={"normalizer": "stick_breaking", "mask": "strictly_past"}, main="normalizer"),
    module=__name__,
    title="Stick-breaking attention",
    citation=Citation(
        text="Tan et al., 2025", url="https://arxiv.org/abs/2410.17980", where="section 2"
    ),
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
)
