"""What a comparison is ranked by where the plain test score would be saturated.

A task declares it on its class, before anything is run, so that nobody chooses it by looking at
scores. Training stores its value as one plain row a cell, and reports rank by it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Literal

from bench.api.metric import Metric, Scored

Kind = Literal["beyond_training", "area_under_curve"]
TITLES: dict[Kind, str] = {
    "beyond_training": "{title} beyond training",
    "area_under_curve": "{title} along training",
}
NAMES: dict[Kind, str] = {
    "beyond_training": "beyond_training_{name}",
    "area_under_curve": "along_training_{name}",
}


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A metric that is made of another one.

    `beyond_training` is the mean over the places of an axis, usually lengths, that no training
    example reaches. `area_under_curve` is the area under the validation curve over training steps,
    divided by the steps of the protocol: the mean score along training. It has no bound that
    everything reaches in the end, because what learns sooner scores better.
    """

    kind: Kind
    of: Metric
    """The plain metric; the headline has its unit, its range and its better side."""
    axis: str = "length"
    """Axis of the test along which `beyond_training` looks further than training."""

    @cached_property
    def metric(self) -> Metric:
        """The metric that ranks."""
        title = TITLES[self.kind].format(title=self.of.title)
        return replace(self.of, name=NAMES[self.kind].format(name=self.of.name), title=title)

    def beyond(self, scores: Sequence[Scored], trained_to: float) -> list[Scored]:
        """The value beyond training, of the scores of one split; none where nothing lies beyond.

        >>> accuracy = Metric(
        ...     name="accuracy", title="", unit="", low=0.0, high=1.0, better="higher"
        ... )
        >>> headline = Headline(kind="beyond_training", of=accuracy)
        >>> curve = [(8, 1.0), (9, 0.5), (10, 0.0)]
        >>> scores = [Scored(metric="accuracy", value=v, axis="length", x=x) for x, v in curve]
        >>> headline.beyond(scores, trained_to=8)[0].value
        0.25

        Args:
            scores: Of one split, with values along the axis.
            trained_to: Largest place on the axis that training reaches.
        """
        if self.kind != "beyond_training":
            return []
        found = [value for x, value in self._places(scores) if x > trained_to]
        return [Scored(metric=self.metric.name, value=fmean(found))] if found else []

    @cached_property
    def choosing(self) -> Metric:
        """The metric that chooses weights and learning rates where training has patience."""
        if self.kind != "beyond_training":
            return self.of
        name = f"choosing_{self.of.name}"
        return replace(self.of, name=name, title=f"{self.of.title} within and beyond training")

    def choosing_value(self, scores: Sequence[Scored], trained_to: float) -> float | None:
        """The mean of the mean within training and the mean beyond it; None where one is missing.

        Beyond training alone, a score near its least value would choose weights by noise, and what
        stands there would be tested before it has learned what training shows.

        >>> accuracy = Metric(
        ...     name="accuracy", title="", unit="", low=0.0, high=1.0, better="higher"
        ... )
        >>> curve = [(4, 1.0), (8, 0.5), (9, 0.25)]
        >>> scores = [Scored(metric="accuracy", value=v, axis="length", x=x) for x, v in curve]
        >>> beyond_training(accuracy).choosing_value(scores, trained_to=8)
        0.5

        Args:
            scores: Of one split, with values along the axis.
            trained_to: Largest place on the axis that training reaches.
        """
        places = self._places(scores)
        within = [value for x, value in places if x <= trained_to]
        beyond = [value for x, value in places if x > trained_to]
        return fmean((fmean(within), fmean(beyond))) if within and beyond else None

    def _places(self, scores: Sequence[Scored]) -> list[tuple[float, float]]:
        """Places on the axis and the plain metric there."""
        return [
            (one.x, one.value)
            for one in scores
            if (one.metric, one.axis) == (self.of.name, self.axis) and one.x is not None
        ]

    def area(self, curve: Sequence[tuple[int, float]], steps: int) -> float:
        """The mean score along training; each validation stands for the steps since the last one.

        Training that stopped early keeps its last score for the steps that it did not take: it
        stopped because the score was good enough.

        >>> accuracy = Metric(
        ...     name="accuracy", title="", unit="", low=0.0, high=1.0, better="higher"
        ... )
        >>> headline = Headline(kind="area_under_curve", of=accuracy)
        >>> headline.area([(100, 0.5), (200, 1.0)], steps=400)
        0.875

        Args:
            curve: Steps and validation scores, in order of steps.
            steps: Steps that stand for the whole of training.
        """
        begins = [0, *(step for step, _ in curve)]
        ends = [*begins[1:-1], max(steps, begins[-1])]
        parts = zip(begins, ends, curve, strict=False)
        return math.fsum((end - begin) * score for begin, end, (_, score) in parts) / ends[-1]


def learned_in_the_end(metric: str) -> str:
    """The metric whose area is ranked, by name; any other metric is its own.

    An area tells how soon something was learned, the plain metric what was learned in the end.

    >>> learned_in_the_end("along_training_token_accuracy"), learned_in_the_end("bleu")
    ('token_accuracy', 'bleu')
    """
    return metric.removeprefix(NAMES["area_under_curve"].format(name=""))


def made_of(metric: str) -> str:
    """The plain metric that a headline is made of, by name; any other metric is its own.

    >>> made_of("beyond_training_bleu"), made_of("along_training_bleu"), made_of("bleu")
    ('bleu', 'bleu', 'bleu')
    """
    return learned_in_the_end(metric).removeprefix(NAMES["beyond_training"].format(name=""))


def choosing_name(metric: str) -> str:
    """The metric that chooses where training has patience, by the name of the one that ranks.

    >>> choosing_name("beyond_training_bleu"), choosing_name("along_training_bleu")
    ('choosing_bleu', 'along_training_bleu')
    """
    return f"choosing_{made_of(metric)}" if is_made(metric, "beyond_training") else metric


def beyond_training(of: Metric, axis: str = "length") -> Headline:
    """Rank by the mean over what is longer than all of training."""
    return Headline(kind="beyond_training", of=of, axis=axis)


def area_under_curve(of: Metric) -> Headline:
    """Rank by the mean validation score along training."""
    return Headline(kind="area_under_curve", of=of)


def is_made(metric: str, kind: Kind) -> bool:
    """Whether a metric is another one, made in some way.

    >>> [is_made(name, "beyond_training") for name in ("beyond_training_bleu", "bleu")]
    [True, False]
    """
    of = made_of(metric)
    return of != metric and NAMES[kind].format(name=of) == metric
