"""Token identifiability: whether a linear map recovers the input word of a value.

Brunner et al., 2020, "On identifiability in transformers", https://arxiv.org/abs/1908.04211,
section 5.1: map states to embeddings, and take the nearest embedding.

Deviations: the map is ridge regression, fitted on half of the examples and scored on the other;
distance is the cosine, as for the paper's linear map; the values of all heads are concatenated.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations

RIDGE = 1e-3
"""Penalty, as a share of the mean variance of a value's coordinates."""


@register(
    "probe",
    "token_identifiability",
    revision=2,
    citation=Citation(
        text="Brunner et al., 2020", url="https://arxiv.org/abs/1908.04211", where="section 5.1"
    ),
)
class TokenIdentifiability(Probe):
    """Share of values whose nearest embedding, after a linear map, is that of their own word."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("token_identified_share", "Input words found again", "words"),
        diagnostic("token_chance_share", "The most frequent word", "words"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Fit on the words of half of the examples and score on those of the others."""
        parts = [_words(seen) for seen in observations(subject)]
        states = torch.cat([part[0] for part in parts]).double()
        words = torch.cat([part[1] for part in parts])
        chosen = _half([part[2] for part in parts], subject.seed).to(words.device)
        fit, test = chosen.nonzero().squeeze(1), (~chosen).nonzero().squeeze(1)
        if min(len(fit), len(test)) < 2:
            raise Refused("there are too few examples to fit a map and to score it.")
        table = _embedding(subject).double()
        found = _nearest(_fit(states[fit], table[words[fit]]), states[test], table)
        common = words[fit].mode().values
        return [
            Scored(metric="token_identified_share", value=_share(found == words[test])),
            Scored(metric="token_chance_share", value=_share(words[test] == common)),
        ]


def _half(counts: Sequence[Int[Tensor, " _"]], seed: int) -> Bool[Tensor, " N"]:
    """Which words belong to a random half of the examples.

    Whole examples, because states of one sentence depend on one another.

    Args:
        counts: Words of each example, batch by batch.
        seed: Of the draw.
    """
    each = torch.cat(list(counts)).cpu()
    order = torch.randperm(len(each), generator=torch.Generator().manual_seed(seed))
    first = torch.zeros(len(each), dtype=torch.bool)
    first[order[: len(each) // 2]] = True
    return first.repeat_interleave(each)


def _words(seen: Observation) -> tuple[Float[Tensor, "N D"], Int[Tensor, " N"], Int[Tensor, " B"]]:
    """States and ids of the words of a batch, and how many each example has."""
    memory = seen.trace.memories[0]
    if memory is None or not seen.batch.sources:
        raise Refused("token identifiability needs attention over a source.")
    text = seen.batch.sources[0]
    if memory.source.value.shape[2] != text.tokens.shape[1]:
        raise Refused("the encoder's states are not its words, one for one.")
    states = memory.source.value.transpose(1, 2).flatten(2)
    real = torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask
    return states[real], text.tokens[real], real.sum(1)


def _embedding(subject: Subject) -> Float[Tensor, "V D"]:
    """The table of the source: the first one with as many words."""
    vocab = subject.task.sizes.source_vocabs[0]
    for module in subject.backbone.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == vocab:
            return module.weight.detach()
    raise Refused("this network does not embed the words of the source.")


def _fit(states: Float[Tensor, "N D"], wanted: Float[Tensor, "N E"]) -> Float[Tensor, "D1 E"]:
    """Ridge regression with an intercept."""
    padded = _padded(states)
    gram = padded.T @ padded
    penalty = RIDGE * states.var(0).mean().clamp(min=1e-6) * len(states)
    return torch.linalg.solve(gram + penalty * torch.eye(len(gram)).to(gram), padded.T @ wanted)


def _padded(states: Float[Tensor, "N D"]) -> Float[Tensor, "N D1"]:
    return torch.cat((states, torch.ones_like(states[:, :1])), 1)


def _nearest(
    fitted: Float[Tensor, "D1 E"], states: Float[Tensor, "N D"], table: Float[Tensor, "V E"]
) -> Int[Tensor, " N"]:
    guess = nn.functional.normalize(_padded(states) @ fitted, dim=-1)
    return (guess @ nn.functional.normalize(table, dim=-1).T).argmax(-1)


def _share(hits: Tensor) -> float:
    return float(hits.double().mean())
