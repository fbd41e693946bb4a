"""Hard attention by Gumbel noise: one key forward, the gradient of a tempered softmax backward.

Jang, Gu & Poole, 2017, "Categorical reparameterization with Gumbel-softmax",
https://arxiv.org/abs/1611.01144, sections 2.1 and 2.2; Maddison, Mnih & Teh, 2017, "The concrete
distribution", https://arxiv.org/abs/1611.00712.

Deviations: the temperature falls geometrically with the share of training done, not with the
number of steps. Noise is added to the energies, which are log weights up to a constant.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.best_key import one_hot_best, oracle_best
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax

KEY = "hard_gumbel_st.key"
"""Stream of noise: the key of a query."""


@dataclass(frozen=True, kw_only=True)
class HardGumbelConfig(Config):
    """Options of straight-through Gumbel attention."""

    tau_start: Annotated[float, FloatRange(0.1, 5.0, log=True)] = 1.0
    """Temperature when training begins; dimensionless."""
    tau_end: Annotated[float, FloatRange(0.05, 5.0, log=True)] = 0.5
    """Temperature when training ends; dimensionless."""

    def __post_init__(self) -> None:
        """Check the temperatures."""
        if min(self.tau_start, self.tau_end) <= 0:
            raise InvalidConfig(
                "hard_gumbel_st: tau_start and tau_end must be above 0, "
                f"got {self.tau_start} and {self.tau_end}."
            )

    def tau(self, progress: float) -> float:
        """Temperature after a share of training."""
        return self.tau_start * (self.tau_end / self.tau_start) ** progress


@register(
    "normalizer",
    "hard_gumbel_st",
    config=HardGumbelConfig,
    citation=Citation(
        text="Jang et al., 2017",
        url="https://arxiv.org/abs/1611.01144",
        where="sections 2.1 and 2.2",
    ),
)
class HardGumbelNormalizer(Normalizer):
    """onehot(argmax y) + y - stop(y), y = softmax((e + g) / tau)."""

    gives = frozenset({"simplex", "draws"})
    default_read = "hard"
    reads = ("train", "expected", "hard")

    def __init__(self, config: HardGumbelConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Draw a key and let the tempered softmax carry the gradient."""
        if call.read == "expected":
            return Normalized(masked_softmax(energy, allowed))
        if call.read == "hard":
            return Normalized(one_hot_best(energy, allowed))
        rows, heads, _, num_keys = energy.shape
        gumbel = call.drawing.gumbel(KEY, rows, heads, call.position, num_keys)
        noisy = energy + gumbel
        soft = masked_softmax(noisy / self.config.tau(call.progress), allowed)
        # the difference is exactly zero, hence the sum exactly one-hot
        weights = one_hot_best(noisy, allowed) + (soft - soft.detach())
        return Normalized(weights.to(energy.dtype))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """One row by loops."""
        if one.read == "expected":
            return oracle_softmax(energy, allowed)
        if one.read == "hard":
            return oracle_best(energy, allowed)
        assert one.noise is not None, "read='train' needs noise"
        place = torch.tensor([one.position])
        gumbel = one.noise.gumbel(KEY, one.row + 1, one.head + 1, place, one.num_keys)
        noisy = energy + gumbel[one.row, one.head, 0]
        first, last = self.config.tau_start, self.config.tau_end
        # log tau moves from that of the first to that of the last along a line
        tau = math.exp((1 - one.progress) * math.log(first) + one.progress * math.log(last))
        soft = oracle_softmax(noisy / tau, allowed)
        return oracle_best(noisy, allowed) + (soft - soft.detach())


register_recipe(
    "hard_gumbel_st",
    Recipe(
        axes={"score": "additive", "normalizer": "hard_gumbel_st[tau_end=1.0]"}, main="normalizer"
    ),
    module=__name__,
    title="Hard attention, straight-through Gumbel",
    citation=Citation(
        text="Jang et al., 2017",
        url="https://arxiv.org/abs/1611.01144",
        where="sections 2.1 and 2.2",
    ),
    revision=2,
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Jang et al. write about discrete variables and report nothing about attention. The paper "
        "claims no advantage that a task could show."
    ),
    deviations=(
        "those of the normalizer `hard_gumbel_st` and of the additive score; the temperature "
        "stays at 1, because training was steadier than when it fell to 0.5; the paper is not "
        "about attention."
    ),
)
