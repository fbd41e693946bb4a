"""What a study is asked: checked without Optuna, so that a wrong request is refused at once."""

import math
from dataclasses import dataclass, fields

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.selector import Selector
from bench.running.request import MOST_SEEDS, Request

SAMPLERS = ("random", "qmc", "tpe")
"""Random and quasi-random trials are exchangeable, which best-of-n curves assume; TPE's are not."""
BESIDE_THE_QUESTION = (
    "variants",
    "baseline",
    "seeds",
    "jobs",
    "shape",
    "speed",
    "quality",
    "minutes",
)
"""Parts of a request that decide no trial of one variant."""
FRESH_SEED = 1000
"""First seed of the winner's reruns; no trial ever uses it."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How much each variant may spend, and how it is searched."""

    trials: int = 8
    """Trials of every variant."""
    trial_seconds: float = 0.0
    """Training CPU seconds of one trial at most, on a GPU wall seconds; 0 for no limit. The steps
    of the task stay, for a score along training (`area_under_curve`) is a mean over them."""
    sampler: str = "random"
    storage: str = ""
    """Optuna storage; empty for a database in the run folder."""
    final_seeds: int = 3
    """Fresh seeds on which the winner is rerun."""


@dataclass(frozen=True, kw_only=True)
class StudyRequest(Tuning):
    """What is tuned, and how."""

    request: Request

    def __post_init__(self) -> None:
        """Check the choices."""
        if self.sampler not in SAMPLERS:
            raise UnknownName.among("sampler", self.sampler, SAMPLERS)
        for what, count in (("trials", self.trials), ("final seeds", self.final_seeds)):
            if count < 1:
                raise InvalidConfig(f"study: {what} must be at least 1, got {count}.")
            if count > MOST_SEEDS:
                raise InvalidConfig(f"study: {what} must be at most {MOST_SEEDS}, got {count}.")
        if not (math.isfinite(self.trial_seconds) and self.trial_seconds >= 0):
            raise InvalidConfig(
                "study: trial seconds must be a number >= 0, and 0 is no limit; "
                f"got {self.trial_seconds:g}."
            )
        if len(self.request.task_selectors) != 1:
            raise InvalidConfig("study: name exactly one task with --tasks.")
        if self.request.first_seed >= FRESH_SEED:
            raise InvalidConfig(
                f"study: seeds from {FRESH_SEED} on are kept for the winners; "
                "give a smaller --first-seed."
            )

    @property
    def question(self) -> dict[str, object]:
        """What decides the trials of every variant, by the names of options."""
        names = [one.name for one in fields(Request) if one.repr]
        asked = {n: getattr(self.request, n) for n in names if n not in BESIDE_THE_QUESTION}
        return {**asked, "trial_seconds": self.trial_seconds, "sampler": self.sampler}

    @property
    def task(self) -> Selector:
        """The one task on which all variants are tuned."""
        return self.request.task_selectors[0]
