"""The outcome of a patient, decided by one event among many: generated codes and short notes.

Choi et al., 2016, "RETAIN: an interpretable predictive model for healthcare using reverse time
attention mechanism", https://arxiv.org/abs/1608.05745, motivates it: few events of a long record
matter, and a reader wants to see which. An event is a code and a note of one to three words. Notes
say `worse` or `better` of many codes, but only one event has a grave code, and its note is the
label. The deciding event is known, so the event with the most weight can be compared with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer
from bench.api.batch import Sizes
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.classification.bags_of_words import area_baselines
from tasks.classification.drawn_texts import DrawnTextTask
from tasks.classification.labeled_texts import POOLS_OF_EVENTS, Labeled, heaviest_segment
from tasks.data.drawing import drawing
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.labels import AUPRC, AUROC, LABEL_ACCURACY, label_scores, ranking_scores

TOP_EVENT_MATCH = Metric(
    name="top_event_match",
    title="Heaviest event is the planted cause",
    unit="fraction of records",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)
COURSES = (("better", "improved"), ("worse", "declined"))
GRAVE = ("g0", "g1", "g2", "g3", "g4", "g5")
FIRST, LONGEST_EVENT = 4, 4
SURELY_BOTH = 64
"""Records that are not all of one label under any seed that anybody will draw."""


@dataclass(frozen=True, kw_only=True)
class VisitsConfig(Config):
    """Options of the records."""

    events: Annotated[int, IntRange(2, 200, log=True)] = 40
    """Events of the longest record; the shortest has half as many."""
    codes: Annotated[int, IntRange(2, 5000, log=True)] = 2000
    """Codes that decide nothing."""
    noise: Annotated[int, IntRange(2, 5000, log=True)] = 500
    """Noise words of notes."""
    evaluate: int = 512
    """Records of validation, and of the test."""

    def __post_init__(self) -> None:
        """Check that everything fits."""
        if min(self.events, self.evaluate) < 2 or min(self.codes, self.noise) < 1:
            raise InvalidConfig(
                "visits: events and evaluate must be at least 2, codes and noise 1, got "
                f"{self.events}, {self.evaluate}, {self.codes} and {self.noise}."
            )


@register(
    "task",
    "visits",
    config=VisitsConfig,
    citation=Citation(text="Choi et al., 2016", url="https://arxiv.org/abs/1608.05745"),
)
class Visits(DrawnTextTask):
    """Records of events; the note of the one grave code decides.

    >>> task = Visits(VisitsConfig(evaluate=8, events=4), seed=0)
    >>> (batch,) = task.evaluation("validation")
    >>> words = task.tokens(batch.sources[0].tokens[0].tolist(), source=True)
    >>> (position,) = [at for at, word in enumerate(words) if word in GRAVE]
    >>> words[position + 1] in COURSES[task.labels.index(batch.references[0])]
    True
    """

    family = "event sequences"
    metrics = (AUROC, AUPRC, LABEL_ACCURACY, TOP_EVENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    comparison = POOLS_OF_EVENTS
    presets = {
        "smoke": TaskPreset(
            options="visits[events=4,codes=20,noise=10,evaluate=64]",
            backbone="pooling[embedding=16,encoder=uni_rnn,query=last]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="visits",
            backbone="pooling[embedding=32,encoder=uni_rnn,query=last]",
            protocol="adam[lr=0.005,steps=150,batch=32,evaluate_every=75]",
            seconds=6.0,
        ),
        "standard": TaskPreset(
            options="visits[events=80]",
            backbone="pooling[embedding=64,encoder=uni_rnn,query=last]",
            protocol="adam[steps=2000,batch=32,evaluate_every=200,stop_at=0.995]",
            seconds=200.0,
        ),
    }
    chance = 0.5
    ceiling = 1.0
    labels = ("recovers", "declines")

    def __init__(self, config: VisitsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.evaluate = config.evaluate
        courses = [word for words in COURSES for word in words]
        codes = [f"c{number}" for number in range(config.codes)]
        noise = [f"w{number}" for number in range(config.noise)]
        self.names = ["<pad>", "<s>", "</s>", "<unk>", *courses, *GRAVE, *codes, *noise]
        self.sizes = Sizes((len(self.names),), len(self.labels), LONGEST_EVENT * config.events)
        if config.evaluate < SURELY_BOTH:
            self._refuse_one_label("validation")
            self._refuse_one_label("test")

    def words(self, ids: Sequence[int]) -> list[str]:
        """Codes and words as they are."""
        return [self.names[number] for number in ids]

    def draw(self, count: int, generator: torch.Generator) -> list[Labeled]:
        """New records."""
        random, config = drawing(generator), self.config
        per, grave = len(COURSES[0]), FIRST + sum(map(len, COURSES))
        codes = grave + len(GRAVE)
        noise = codes + config.codes
        rows = []
        for _ in range(count):
            events = random.randint(config.events // 2, config.events)
            cause, label = random.randrange(events), 0
            ids: list[int] = []
            segments: list[int] = []
            for number in range(events):
                course = random.randrange(len(COURSES))
                code = codes + random.randrange(config.codes)
                if number == cause:
                    label, code = course, grave + random.randrange(len(GRAVE))
                said = FIRST + course * per + random.randrange(per)
                rest = random.choices(range(noise, len(self.names)), k=random.randint(0, 2))
                ids += [code, said, *rest]
                segments += [number] * (2 + len(rest))
            gold = tuple(place for place, number in enumerate(segments) if number == cause)
            rows.append(Labeled(ids, label, segments, gold, " ".join(self.words(ids))))
        return rows

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Areas, accuracy, and whether the heaviest event is the cause."""
        found = [*ranking_scores(answers, 1), *label_scores(answers)]
        match = heaviest_segment(answers)
        if match is not None:
            found.append(Scored(metric=TOP_EVENT_MATCH.name, value=match))
        return found

    def baselines(self) -> Mapping[str, float]:
        """One answer for all, and naive Bayes over bags of words."""
        return area_baselines(*self.counted())

    def _refuse_one_label(self, split: Split) -> None:
        """Raise before anything is trained: records of one label have no area, which ranks."""
        found = {self.labels[row.label] for row in self._fixed(split)}
        if len(found) < 2:
            raise InvalidConfig(
                f"visits: under seed {self.seed} each of the evaluate={self.evaluate} records of "
                f"{split} {found.pop()}, and an area needs both outcomes; ask for more records."
            )
