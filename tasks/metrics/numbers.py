"""Scores of tasks that predict numbers, by scikit-learn."""

from collections.abc import Sequence

from bench.api.answer import Answer
from bench.api.metric import Metric

MEAN_SQUARED_ERROR = Metric(
    name="mse",
    title="Mean squared error",
    unit="squared units of the target",
    low=0.0,
    high=None,
    better="lower",
)


def numbers(answers: Sequence[Answer]) -> tuple[list[float], list[float]]:
    """True and predicted number of everything that is scored."""
    true: list[float] = []
    said: list[float] = []
    for answer in answers:
        assert answer.values is not None, "numbers are predicted"
        assert answer.batch.values is not None, "targets are numbers"
        mask = answer.batch.mask
        true += answer.batch.values[mask].flatten().tolist()
        said += answer.values[mask].flatten().tolist()
    return true, said


def mean_squared_error(true: Sequence[float], said: Sequence[float]) -> float:
    """Mean over examples."""
    from sklearn import metrics  # noqa: PLC0415 - a second to import

    return float(metrics.mean_squared_error(true, said))
