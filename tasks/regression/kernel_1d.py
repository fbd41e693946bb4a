"""A noisy function of one number: regression by kernels as the simplest attention.

Nadaraya, 1964, "On estimating regression", https://doi.org/10.1137/1109020; the function
2 sin(x) + x on [0, 5] with noise of deviation 0.5 as in Zhang et al., 2023, "Dive into deep
learning", https://d2l.ai, section 11.2.

Deviations: answers are compared with the function itself, without noise, at random points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.regression.kernel_task import Points, RegressionTask

RANGE = 5.0
"""Inputs lie between zero and this."""
SHOWN = 51
"""Points of the curve that is shown."""


@dataclass(frozen=True, kw_only=True)
class Kernel1dConfig(Config):
    """Options of the noisy function."""

    points: Annotated[int, IntRange(10, 1000, log=True)] = 50
    """Training points."""
    noise: Annotated[float, FloatRange(0.0, 2.0)] = 0.5
    """Deviation of the noise of training points."""
    evaluate: int = 200
    """Points of validation and of the test."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.points < 2 or self.evaluate < 1 or self.noise < 0:
            raise InvalidConfig(
                "kernel_1d: points must be at least 2, evaluate at least 1, noise at least 0, "
                f"got {self.points}, {self.evaluate}, {self.noise}."
            )


@register(
    "task",
    "kernel_1d",
    config=Kernel1dConfig,
    citation=Citation(text="Nadaraya, 1964; Watson, 1964", url="https://doi.org/10.1137/1109020"),
)
class Kernel1d(RegressionTask):
    """Points of y = 2 sin(x) + x + noise, in the order of x.

    >>> task = Kernel1d(Kernel1dConfig(points=3, noise=0.0), seed=0)
    >>> batch = next(task.training(1, torch.Generator().manual_seed(0)))
    >>> batch.sources[0].frames.shape, int(batch.sources[0].mask.sum())
    (torch.Size([1, 3, 2]), 2)
    """

    presets = {
        "smoke": TaskPreset(
            options="kernel_1d[points=20,evaluate=20]",
            backbone="kernel_regression",
            protocol="adam[lr=0.03,steps=20,batch=16,evaluate_every=10]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="kernel_1d",
            backbone="kernel_regression",
            protocol="adam[lr=0.03,steps=1000,batch=50,evaluate_every=250]",
            seconds=2.5,
        ),
        "standard": TaskPreset(
            options="kernel_1d[points=200]",
            backbone="kernel_regression",
            protocol="adam[lr=0.01,steps=6000,batch=64,evaluate_every=1000]",
            seconds=40.0,
        ),
    }
    margin = 0.04
    """A twentieth of the variance of the function over its range."""
    comparison = (
        Entry(variant="nadaraya_watson"),
        Entry(variant="nadaraya_watson[beta=1,learn=false]"),
        Entry(variant="nadaraya_watson[beta=10,learn=false]"),
        Entry(variant="nadaraya_watson[beta=100,learn=false]"),
        Entry(variant="nadaraya_watson[beta=1000,learn=false]"),
        Entry(variant="nadaraya_watson[kernel=epanechnikov,beta=4]"),
        Entry(variant="nadaraya_watson[kernel=boxcar,beta=10]"),
        Entry(variant="additive"),
        Entry(variant="scaled_dot", backbone="kernel_regression[features=16]"),
    )

    def __init__(self, config: Kernel1dConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        generator = self.seeded(5)
        found = self._draw(config.points, generator)
        noise = torch.randn(config.points, generator=generator) * config.noise
        self.begin(Points(found.x, found.y + noise))

    def held_out(self, split: Split) -> Points:
        """Other points, without noise."""
        generator = self.seeded(split)
        return self._draw(self.config.evaluate, generator)

    def examples(self) -> Batch:
        """The whole curve, as one example with a point every tenth of a unit."""
        x = torch.linspace(0, RANGE, SHOWN)
        batch = self._asked(Points(x.unsqueeze(-1), function(x)))
        truth = " ".join(f"{y:.2f}" for y in function(x).tolist())
        # outputs are numbers, so that targets are free to name the points
        targets = torch.arange(1, SHOWN + 1).unsqueeze(0)
        title = f"2 sin(x) + x at {SHOWN} points"
        return replace(batch, targets=targets, names=(title,), references=(truth,))

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """The input of training points, and of the points of the examples."""
        if source or not any(ids):
            return super().tokens(ids, source=source)
        return [f"{RANGE * (number - 1) / (SHOWN - 1):.2f}" for number in ids]

    @staticmethod
    def _draw(count: int, generator: torch.Generator) -> Points:
        """Random points in the order of x."""
        x = (torch.rand(count, generator=generator) * RANGE).sort().values
        return Points(x.unsqueeze(-1), function(x))


def function(x: torch.Tensor) -> torch.Tensor:
    """2 sin(x) + x."""
    return 2 * x.sin() + x
