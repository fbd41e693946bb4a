"""Sufficiency and comprehensiveness: the tokens of the largest weights alone, and all others.

DeYoung et al., 2020, "ERASER: a benchmark to evaluate rationalized NLP models",
https://arxiv.org/abs/1911.03429, section 4.2 (the two measures of faithfulness).

Deviations: tokens are cut out of the source, so that those left are neighbors. A fixed number of
tokens, not a share of the text. A token without weight is never kept, and ties are broken by draw.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from bench.api.batch import Batch, Text
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations, observe, probabilities


@dataclass(frozen=True, kw_only=True)
class SufficiencyConfig(Config):
    """Options of sufficiency and comprehensiveness."""

    tokens: Annotated[int, IntRange(1, 64, log=True)] = 1
    """Number of tokens that are kept, and removed."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.tokens < 1:
            raise InvalidConfig(f"sufficiency: tokens must be at least 1, got {self.tokens}.")


@register(
    "probe",
    "sufficiency",
    config=SufficiencyConfig,
    citation=Citation(
        text="DeYoung et al., 2020", url="https://arxiv.org/abs/1911.03429", where="section 4.2"
    ),
)
class Sufficiency(Probe):
    """Accuracy, and probability of the decision, with the strongest tokens alone and without them.

    For networks that give one answer for a text. The whole network reads what is left, the part
    that selects tokens too.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("kept_accuracy", "Accuracy on the strongest tokens alone", "texts", "higher"),
        diagnostic("removed_accuracy", "Accuracy without the strongest tokens", "texts", "lower"),
        diagnostic("kept_random_accuracy", "Accuracy on as many random tokens", "texts"),
        diagnostic(
            "sufficiency_share", "Probability lost with them alone", "mass", "lower", low=-1.0
        ),
        diagnostic(
            "comprehensiveness_share", "Probability lost without them", "mass", "higher", low=-1.0
        ),
    )

    def __init__(self, config: SufficiencyConfig) -> None:
        super().__init__(config)
        self.tokens = config.tokens

    def measure(self, subject: Subject) -> list[Scored]:
        """Cut every text, and ask again."""
        generator = torch.Generator().manual_seed(subject.seed)
        found: dict[str, list[Tensor]] = {}
        for seen in observations(subject):
            for name, values in self._of_batch(subject, seen, generator).items():
                found.setdefault(name, []).append(values[seen.batch.mask[:, 0]].double())
        means = {name: torch.cat(parts).mean() for name, parts in found.items()}
        return [Scored(metric=name, value=float(value)) for name, value in means.items()]

    def _of_batch(
        self, subject: Subject, seen: Observation, generator: torch.Generator
    ) -> dict[str, Shaped[Tensor, " B"]]:
        batch = _readable(seen)
        weights, real = seen.weights[:, 0], seen.real[:, 0]
        draws = torch.rand(weights.shape, generator=generator).to(weights)
        strongest = _largest(weights, draws, real, self.tokens) & (weights > 0)
        random = _largest(torch.zeros_like(weights), draws, real, self.tokens)
        whole = probabilities(subject, seen)[:, 0]
        kept, removed, by_chance = (
            _ask(subject, cut(batch, tokens)) for tokens in (strongest, real & ~strongest, random)
        )
        target, decision = batch.targets[:, 0], whole.argmax(-1)
        chances = [p.gather(-1, decision[:, None]).squeeze(-1) for p in (whole, kept, removed)]
        return {
            "kept_accuracy": kept.argmax(-1) == target,
            "removed_accuracy": removed.argmax(-1) == target,
            "kept_random_accuracy": by_chance.argmax(-1) == target,
            "sufficiency_share": chances[0] - chances[1],
            "comprehensiveness_share": chances[0] - chances[2],
        }


def cut(batch: Batch, tokens: Bool[Tensor, "B S"]) -> Batch:
    """The batch with these tokens of its source alone, in their order; a text may become empty."""
    counts = tokens.sum(-1)
    width = max(1, int(counts.max()))
    order = (~tokens).long().argsort(dim=-1, stable=True)[:, :width]
    mask = torch.arange(width, device=tokens.device) < counts[:, None]

    def shortened(x: Shaped[Tensor, "B S"]) -> Shaped[Tensor, "B S2"]:
        return torch.where(mask, x.gather(1, order), 0)

    def maybe(x: Tensor | None) -> Tensor | None:
        return None if x is None else shortened(x)

    (text,) = batch.sources
    left = Text(shortened(text.tokens), mask, segments=maybe(text.segments))
    # what is removed takes its links with it
    return replace(batch, sources=(left,), extended=maybe(batch.extended), gold=None)


def _readable(seen: Observation) -> Batch:
    """The batch, if its one source can be cut token by token.

    Raises:
        Refused: There are several answers or sources, or states that are not tokens.
    """
    batch = seen.batch
    if len(batch.sources) != 1 or batch.targets.shape[1] != 1 or batch.features is not None:
        raise Refused("tokens are cut where a network gives one answer for one text.")
    text = batch.sources[0]
    if text.frames is not None:
        raise Refused("tokens are cut out of texts, and this source has frames.")
    if seen.weights.shape[2] != text.tokens.shape[1]:
        raise Refused("the encoder's states are not its words, one for one.")
    return batch


def _largest(
    score: Float[Tensor, "B S"], draws: Float[Tensor, "B S"], real: Bool[Tensor, "B S"], count: int
) -> Bool[Tensor, "B S"]:
    """The real tokens of the largest scores; of equal ones those of the largest draws."""
    by_draw = draws.argsort(dim=-1, descending=True)
    low = torch.finfo(score.dtype).min
    ranked = torch.where(real, score, low).gather(1, by_draw)
    best = by_draw.gather(1, ranked.argsort(dim=-1, descending=True, stable=True)[:, :count])
    return torch.zeros_like(real).scatter(1, best, value=True) & real


def _ask(subject: Subject, batch: Batch) -> Float[Tensor, "B V"]:
    """What the network predicts of what is left."""
    with torch.no_grad():
        return probabilities(subject, observe(subject, batch))[:, 0]
