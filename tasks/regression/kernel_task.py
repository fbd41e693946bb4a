"""Regression from training points: queries, errors, width of the kernel.

Every answer is computed from the training points, which are the source of every example. In
training the queries are training points too, each with its own key masked (leave one out), so that
nothing is answered by itself; that mask works for every mechanism, in cross attention.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.metrics.numbers import MEAN_SQUARED_ERROR, mean_squared_error, numbers

TRAIN_ERROR = Metric(
    name="train_mse",
    title="Squared error at training points",
    unit="squared units of the target",
    low=0.0,
    high=None,
    better="lower",
    group="diagnostic",
)
LEFT_OUT_ERROR = Metric(
    name="leave_one_out_mse",
    title="Squared error at training points left out",
    unit="squared units of the target",
    low=0.0,
    high=None,
    better="lower",
    group="diagnostic",
)
BAND_WIDTH = Metric(
    name="band_width",
    title="Width of the kernel at half its height",
    unit="deviations of the inputs",
    low=0.0,
    high=None,
    better="none",
    group="diagnostic",
)


class Points(NamedTuple):
    """Inputs and outputs, in the units of the data."""

    x: Float[Tensor, "N D"]
    y: Float[Tensor, " N"]


class RegressionTask(Task):
    """A number for each point; a subclass provides the points.

    Inputs and outputs are standardized by the training points; errors are in units of the data.
    """

    metrics = (MEAN_SQUARED_ERROR, TRAIN_ERROR, LEFT_OUT_ERROR, BAND_WIDTH)
    family = "kernel regression"
    regresses = True
    points: Points
    """Of the training part."""

    def begin(self, points: Points) -> None:
        """Take the training points."""
        self.points = points
        self.center, self.spread = points.x.mean(0), points.x.std(0, correction=0).clamp(min=1e-9)
        self.mean, self.deviation = points.y.mean(), points.y.std(correction=0).clamp(min=1e-9)
        count, width = points.x.shape
        self.sizes = Sizes((count + 1,), 1, count, source_frames=(width + 1,), input_frames=width)

    def held_out(self, split: Split) -> Points:
        """Query points of validation and test."""
        raise NotImplementedError

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Random training points, each masked in its own source."""
        count = len(self.points.y)
        while True:
            yield self._left_out(torch.randint(count, (batch_size,), generator=generator))

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Points of the split, then the training points, then those again, each left out."""
        return [
            self._asked(self.held_out(split)),
            self._asked(self.points),
            self._left_out(torch.arange(len(self.points.y))),
        ]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Squared errors, and how wide the kernel is around points of the split."""
        names = (MEAN_SQUARED_ERROR.name, TRAIN_ERROR.name, LEFT_OUT_ERROR.name)
        unit = float(self.deviation) ** 2
        found = [
            Scored(metric=name, value=unit * mean_squared_error(*numbers([answer])))
            for name, answer in zip(names, answers, strict=True)
        ]
        weights, asked = answers[0].weights, answers[0].batch.frames
        if weights is not None and asked is not None:
            width = band_width(weights[0], asked[0], self._x(self.points.x))
            found.append(Scored(metric=BAND_WIDTH.name, value=width))
        return found

    def baselines(self) -> Mapping[str, float]:
        """The mean of the training points, and scikit-learn's linear regression on them."""
        from sklearn.linear_model import LinearRegression  # noqa: PLC0415 - a second to import

        test, mean = self.held_out("test"), float(self.mean)
        linear = LinearRegression().fit(self.points.x.numpy(), self.points.y.numpy())
        said = linear.predict(test.x.numpy()).tolist()
        true = test.y.tolist()
        return {
            "training mean": mean_squared_error(true, [mean] * len(true)),
            "linear regression": mean_squared_error(true, said),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First points of the split, in units of the data."""
        batch, said = answers[0].batch, answers[0].values
        assert batch.values is not None, "targets are numbers"
        assert batch.frames is not None, "queries are points"
        assert said is not None, "numbers are predicted"
        return [
            Sample(
                ", ".join(f"{number:.2f}" for number in x.tolist()),
                *(f"{float(y):.3f}" for y in (true, answer)),
            )
            for x, true, answer in zip(
                batch.frames[0] * self.spread + self.center,
                self.in_units(batch.values[0]),
                self.in_units(said[0]),
                strict=True,
            )
        ][:count]

    def in_units(self, values: Float[Tensor, "T K"]) -> Float[Tensor, "T K"]:
        """Answers in the units of the data."""
        return values * self.deviation.to(values) + self.mean.to(values)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """The first input of training points; an answer has no name."""
        if not source:
            return ["y"] * len(ids)
        return [f"{float(self.points.x[number - 1, 0]):.2f}" if number else "·" for number in ids]

    def _x(self, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        return (x - self.center) / self.spread

    def _y(self, y: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
        return (y - self.mean) / self.deviation

    def _asked(self, points: Points) -> Batch:
        """One example that queries all points and reads all training points."""
        every = torch.ones(1, len(self.points.y), dtype=torch.bool)
        return self._batch(every, self._x(points.x)[None], self._y(points.y)[None])

    def _left_out(self, chosen: Tensor) -> Batch:
        """One example a training point, which is masked in its source."""
        others = torch.arange(len(self.points.y)) != chosen[:, None]
        x, y = self._x(self.points.x)[chosen], self._y(self.points.y)[chosen]
        return self._batch(others, x[:, None], y[:, None])

    def _batch(
        self,
        mask: Bool[Tensor, "B S"],
        x: Float[Tensor, "B T D"],
        y: Float[Tensor, "B T"],
    ) -> Batch:
        keys = torch.cat((self._x(self.points.x), self._y(self.points.y)[:, None]), 1)
        places = torch.arange(1, mask.shape[1] + 1).expand(mask.shape)
        return Batch(
            sources=(Text(places, mask, frames=keys.expand(len(mask), -1, -1)),),
            inputs=torch.ones(y.shape, dtype=torch.int64),
            targets=torch.zeros(y.shape, dtype=torch.int64),
            mask=torch.ones(y.shape, dtype=torch.bool),
            values=y.unsqueeze(-1),
            frames=x,
        )


def band_width(
    weights: Float[Tensor, "T S"], queries: Float[Tensor, "T D"], keys: Float[Tensor, "S D"]
) -> float:
    """Twice the distance of the farthest key with half the largest weight or more, on average.

    In one dimension that is the full width of the kernel at half its height: 2.355 bandwidths of a
    Gaussian, as long as keys are dense; queries without any weight are left out.
    """
    distance = torch.cdist(queries, keys)
    top = weights.amax(-1, keepdim=True)
    heavy = (weights >= top / 2) & (top > 0)
    widths = 2 * torch.where(heavy, distance, 0.0).amax(-1)
    reached = top.squeeze(-1) > 0
    return float(widths[reached].mean()) if bool(reached.any()) else 0.0
