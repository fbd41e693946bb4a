"""Hard attention by sampling: each head reads one key; the score learns from its log probability.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.1.

Deviations: whether an example is read by its sample or by its expectation is drawn once per example
and layer, and once for each of several sources. The paper has one layer and one source and draws
once per example; the authors' code draws once per batch. Every head draws its own key, and log
probabilities add. The scores have no temperature (the authors' default leaves it off).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, Read
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Tree
from variants.normalizers.best_key import one_hot_best, oracle_best
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax

KEY, EXAMPLE = "hard_reinforce.key", "hard_reinforce.example"
"""Streams of noise: the key of a query, and whether an example samples at all in this layer."""

READS: dict[str, Read] = {"argmax": "hard", "sample": "sample", "expected": "expected"}
"""Read mode of each value of the option `inference`."""


@dataclass(frozen=True, kw_only=True)
class HardReinforceConfig(Config):
    """Options of sampled hard attention."""

    sampling: Annotated[float, FloatRange(0.1, 1.0)] = 0.5
    """Probability that an example samples in a layer in training; others read the expectation."""
    inference: Literal["argmax", "sample", "expected"] = "argmax"
    """How a trained model reads: the best key, a drawn key, or the expectation."""

    def __post_init__(self) -> None:
        """Check the probability."""
        if not 0 < self.sampling <= 1:
            raise InvalidConfig(
                f"hard_reinforce: sampling must be a probability above 0, got {self.sampling}."
            )


@register(
    "normalizer",
    "hard_reinforce",
    config=HardReinforceConfig,
    citation=Citation(
        text="Xu et al., 2015",
        url="https://arxiv.org/abs/1502.03044",
        where="section 4.1",
    ),
)
class HardReinforceNormalizer(Normalizer):
    """z ~ softmax(e), weights = onehot(z); no gradient but through `log_prob` and `entropy`."""

    needs = frozenset({"loss:reinforce"})
    gives = frozenset({"simplex", "draws"})
    reads = ("train", "expected", "hard", "sample")

    def __init__(self, config: HardReinforceConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.sampling = config.sampling
        self.default_read = READS[config.inference]

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Sample, average or take the best; the terms are zero where nothing was sampled."""
        soft = masked_softmax(energy, allowed)
        log_soft = _masked_log_softmax(energy, allowed)
        terms = {
            "entropy": -(soft * log_soft).sum((1, 3)),
            "log_prob": soft.new_zeros(soft[:, 0, :, 0].shape),
        }
        if call.read == "expected":
            return Normalized(soft, terms=terms)
        if call.read == "hard":
            return Normalized(one_hot_best(energy, allowed), terms=terms)
        rows, heads, _, num_keys = energy.shape
        gumbel = call.drawing.gumbel(KEY, rows, heads, call.position, num_keys)
        # masked after the noise, so that a masked key is never drawn
        drawn = one_hot_best(energy + gumbel, allowed).to(soft.dtype)
        if call.read == "train":
            first = torch.zeros(1, dtype=torch.int64, device=energy.device)
            samples = call.drawing.uniform(EXAMPLE, rows, 1, first, 1) < self.sampling
            log_soft = torch.where(samples, log_soft, 0.0)
            soft = torch.where(samples, drawn, soft)
        else:
            soft = drawn
        terms["log_prob"] = (drawn * log_soft).sum((1, 3))
        return Normalized(soft, terms=terms)

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """One row by loops."""
        soft = oracle_softmax(energy, allowed)
        one.said["entropy"] = sum(
            (-p * torch.log(p) for p, open_ in zip(soft, allowed, strict=True) if open_),
            torch.zeros_like(energy[0]),
        )
        one.said["log_prob"] = torch.zeros_like(energy[0])
        if one.read == "hard":
            return oracle_best(energy, allowed)
        if one.read == "expected" or (one.read == "train" and not self._oracle_samples(one)):
            return soft
        assert one.noise is not None, "reading by draws needs noise"
        place = torch.tensor([one.position])
        gumbel = one.noise.gumbel(KEY, one.row + 1, one.head + 1, place, one.num_keys)
        drawn = oracle_best(energy + gumbel[one.row, one.head, 0], allowed)
        for s, taken in enumerate(drawn.tolist()):
            if taken:
                one.said["log_prob"] = torch.log(soft[s])
        return drawn

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """Heads draw on their own, so both are sums."""
        return {
            name: sum((head[name] for head in said[1:]), said[0][name])
            for name in ("entropy", "log_prob")
        }

    def _oracle_samples(self, one: OneQuery) -> bool:
        assert one.noise is not None, "read='train' needs noise"
        drawn = one.noise.uniform(EXAMPLE, one.row + 1, 1, torch.tensor([0]), 1)
        return float(drawn[one.row]) < self.sampling


def _masked_log_softmax(energy: Energy, allowed: Allowed | None) -> Weights:
    """Log of `masked_softmax`, and 0 where the weight is 0, so that products with it vanish."""
    if allowed is None:
        return torch.log_softmax(energy, -1)
    fill = torch.finfo(energy.dtype).min
    return torch.where(allowed, torch.log_softmax(torch.where(allowed, energy, fill), -1), 0.0)


register_recipe(
    "hard_reinforce",
    Recipe(
        axes={"score": "additive", "normalizer": "hard_reinforce", "loss": "reinforce"},
        main="normalizer",
    ),
    module=__name__,
    title="Hard attention trained by REINFORCE",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.1"
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Xu et al. report hard attention a little ahead of soft attention on image captions "
        "(BLEU-1 71.8 and 70.7), after training on the 82,783 pictures of MS COCO. Its gradients "
        "are estimated by sampling, for which the few hundred updates of a cell here are few."
    ),
    deviations=(
        "those of the normalizer `hard_reinforce`, the loss `reinforce` and the additive score."
    ),
)
