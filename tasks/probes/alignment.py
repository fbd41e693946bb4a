"""Alignment: how often the largest weights are on the gold links.

Koehn & Knowles, 2017, "Six challenges for neural machine translation",
https://arxiv.org/abs/1706.03872, section 3.6: match and probability of links, and attention that is
off by one. Och & Ney, 2003, https://aclanthology.org/J03-1002, for the alignment error rate.

Deviations: a match counts the n largest weights of a target with n links, as in the paper, and a
weight that is among them only by how ties are broken is no match. The error rate is that of tasks
over word-aligned sentences: an EOS has no link, and all links are sure where a task does not
distinguish them.
"""

from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from bench.api.answer import Answer
from bench.api.config import NoOptions
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.alignment.aligned_text import known_links
from tasks.metrics.attention_scores import points_into
from tasks.metrics.links import error_rate, hard_links
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.observations import Observation, observations

OFFSETS = range(-3, 4)
CPU = torch.device("cpu")


@register(
    "probe",
    "alignment",
    revision=2,
    citation=Citation(
        text="Koehn & Knowles, 2017", url="https://arxiv.org/abs/1706.03872", where="section 3.6"
    ),
)
class AlignmentProbe(Probe):
    """Links found among the largest weights, weight on links, error rate, and shifted matches."""

    needs = frozenset({"gold_alignment"})
    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("align_match_share", "Links among the largest weights", "links", "higher"),
        diagnostic("align_prob_share", "Weight on gold links", "weight", "higher"),
        diagnostic("alignment_error_share", "Alignment error rate", "links", "lower"),
        diagnostic("align_match_at_share", "Largest weight on the link of t + offset", "targets"),
        diagnostic(
            "best_offset_count", "Offset that matches best", "", unit="targets", low=None, high=None
        ),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Count links over all examples."""
        found = links = 0.0
        mass: list[Tensor] = []
        answers: list[Answer] = []
        hits = dict.fromkeys(OFFSETS, 0.0)
        tries = dict.fromkeys(OFFSETS, 0.0)
        for seen in observations(subject):
            gold = (seen.gold > 0) & seen.batch.mask[..., None]
            linked = gold.any(-1)
            found += float((_largest(seen, gold) & gold).sum())
            links += float(gold.sum())
            mass.append((seen.weights * gold).sum(-1)[linked])
            answers.append(Answer(seen.batch.to(CPU), weights=seen.weights.cpu()))
            for offset in OFFSETS:
                there, known = _shifted(gold, seen.batch.mask, offset)
                hits[offset] += float((points_into(seen.weights, there) & known).sum())
                tries[offset] += float(known.sum())
        told = [row for answer in answers for row in hard_links(answer, 0)]
        error, *_ = error_rate(told, known_links(subject.task, answers))
        curve = {o: hits[o] / tries[o] for o in OFFSETS if tries[o]}
        best_offset = max(curve, key=lambda offset: (curve[offset], -abs(offset)))
        return [
            Scored(metric="align_match_share", value=found / links),
            Scored(metric="align_prob_share", value=float(torch.cat(mass).mean())),
            Scored(metric="alignment_error_share", value=error),
            Scored(metric="best_offset_count", value=float(best_offset)),
            *(
                Scored(metric="align_match_at_share", value=value, axis="offset", x=float(offset))
                for offset, value in curve.items()
            ),
        ]


def _largest(seen: Observation, gold: Bool[Tensor, "B T S"]) -> Bool[Tensor, "B T S"]:
    """The n largest weights of each target, n its number of links, however ties are broken."""
    ranked = seen.weights.sort(-1).values
    smaller = torch.searchsorted(ranked, seen.weights.contiguous())
    as_large = seen.weights.shape[-1] - smaller
    return (as_large <= gold.sum(-1, keepdim=True)) & (seen.weights != 0)


def _shifted(
    gold: Bool[Tensor, "B T S"], mask: Bool[Tensor, "B T"], offset: int
) -> tuple[Bool[Tensor, "B T S"], Bool[Tensor, "B T"]]:
    """Links of target t + offset at position t, and whether both targets exist."""
    there = torch.zeros_like(gold)
    length = gold.shape[1]
    low, high = max(0, -offset), min(length, length - offset)
    if low < high:
        there[:, low:high] = gold[:, low + offset : high + offset]
    return there, mask & there.any(-1)
