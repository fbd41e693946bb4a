"""Supervised attention: gold links as a second training signal; alignment and translation scores.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186; Mi, Wang & Ittycheriah, 2016, https://arxiv.org/abs/1608.00112.
CzEnAli has gold links for its training part too, so that attention can be supervised there and its
links measured on the test. The task shows whether better links make better translations. `noise`
moves a share of the training links to random words. On generated strings, the rule `swap` of
`transduction` asks the same with any number of pairs.

Deviations: gold links by hand on two thousand pairs instead of GIZA++ links on millions, so
translations are poor. BLEU is given with the error rate because the question is about both, and at
the quick size it is not informative: published means lie between 0.09 and 0.23 of 100 points, in
another order than the error rates, with uniform attention between them. Hardly any 4-gram is right,
so the order of BLEU is chance. The likelihood of the reference is more informative (3.66 nats per
token supervised, 3.79 unsupervised with the same score). On `taught_strings` exact match is 0.97
with either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.alignment.aligned_text import AlignedText, teachers
from tasks.data.word_alignment import LICENSES
from tasks.data.words import EOS
from tasks.metrics.links import LINK_METRICS
from tasks.metrics.text_scores import BLEU
from tasks.metrics.translation_scores import CHRF, NLL, likelihood

SHOWN = (
    ("the company sold two banks last year .", "společnost loni prodala dvě banky ."),
    ("prices rose , but the market was calm .", "ceny vzrostly , ale trh byl klidný ."),
)
"""Sentences written by us."""


@dataclass(frozen=True, kw_only=True)
class SupervisedAlignmentConfig(Config):
    """Options of supervised attention on CzEnAli."""

    vocab: Annotated[int, IntRange(500, 16000, log=True), Legal(5)] = 5000
    """Words of each language at most; each occurs twice in training."""
    longest: Annotated[int, IntRange(5, 200)] = 40
    """Longest training sentence (words)."""
    train: Annotated[int, Legal(0)] = 0
    """Training pairs to use; 0 for all."""
    noise: Annotated[float, FloatRange(0.0, 1.0)] = 0.0
    """Share of training links that point at a random source word."""

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0 <= self.noise <= 1:
            raise InvalidConfig(
                f"supervised_alignment: noise is a share from 0 to 1, got {self.noise}."
            )


@register(
    "task",
    "supervised_alignment",
    config=SupervisedAlignmentConfig,
    citation=Citation(text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186"),
)
class SupervisedAlignment(AlignedText):
    """English to Czech with gold links in training; error rate first, then translation."""

    metrics = (*LINK_METRICS, BLEU, CHRF, NLL)
    family = "supervised attention"
    comparison = teachers("supervised_alignment")
    decodes = True
    data_license = LICENSES["en_cs"]
    needs_predictions = False
    pipeline_check = "At the quick size IBM model 1 aligns better than every network in every seed."
    presets = {
        "smoke": TaskPreset(
            options="supervised_alignment[train=200,vocab=500,longest=20]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=6,batch=16,evaluate_every=6]",
            seconds=4.0,
        ),
        "quick": TaskPreset(
            options="supervised_alignment[longest=25]",
            backbone=(
                "rnn_seq2seq[hidden=96,embedding=96,dropout=0.2,encoder=embed[positions=learned]]"
            ),
            protocol="adam[lr=0.004,steps=400,batch=32,evaluate_every=400]",
            seconds=15.4,
        ),
        "standard": TaskPreset(
            options="supervised_alignment[longest=100]",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.3]",
            protocol="adam[lr=0.002,steps=2000,batch=64,evaluate_every=200]",
            seconds=900.0,
        ),
    }

    def __init__(
        self, config: SupervisedAlignmentConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir, pair="en_cs")
        self.config = config
        if config.noise:
            self._mislead(self.seeded(4))

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Error rate of hard links; BLEU and chrF of words as they are; likelihood."""
        from sacrebleu.metrics import bleu, chrf  # noqa: PLC0415

        said = [
            " ".join(self.tokens(row, source=False))
            for answer in answers
            for row in answer.generated or ()
        ]
        references = [text for answer in answers for text in answer.batch.references]
        # words are tokens already, so sacreBLEU must not warn that full stops stand alone
        scorers = {BLEU.name: bleu.BLEU(tokenize="none", force=True), CHRF.name: chrf.CHRF()}
        found = self.link_scores(split, answers)
        for name, scorer in scorers.items():
            value = scorer.corpus_score(said, [references]).score
            found.append(Scored(metric=name, value=value))
            self.notes[name] = str(scorer.get_signature())
        return found + likelihood(answers)

    def examples(self) -> Batch:
        """Sentences written by us."""
        return self.own(SHOWN)

    def _mislead(self, generator: torch.Generator) -> None:
        """Point a share of the training links at random words of their source."""
        for source, _, links in self.coded:
            drawn = torch.rand(len(links), generator=generator).tolist()
            words = len(source) - 1
            other = torch.randint(0, words, (len(links),), generator=generator).tolist()
            assert source[-1] == EOS, "the end is no word"
            for place, (_, j) in enumerate(list(links)):
                if drawn[place] < self.config.noise:
                    links[place] = (other[place], j)
