"""Scores of tasks with one label an example, by scikit-learn."""

import math
from collections.abc import Sequence

import torch

from bench.api.answer import Answer
from bench.api.metric import Metric, Scored

LABEL_ACCURACY = Metric(
    name="label_accuracy",
    title="Accuracy",
    unit="fraction of examples",
    low=0.0,
    high=1.0,
    better="higher",
)
MACRO_F1 = Metric(
    name="macro_f1",
    title="Macro F1",
    unit="F1, mean over labels",
    low=0.0,
    high=1.0,
    better="higher",
)
AUROC = Metric(
    name="auroc",
    title="Area under the ROC curve",
    unit="area from 0 to 1",
    low=0.0,
    high=1.0,
    better="higher",
)
AUPRC = Metric(
    name="auprc",
    title="Average precision",
    unit="area from 0 to 1",
    low=0.0,
    high=1.0,
    better="higher",
)

CERTAIN = 24 * math.log(2)
"""Log-odds at which the likelihood of a label is 1 in single precision (nats)."""


def labels(answers: Sequence[Answer]) -> tuple[list[int], list[int]]:
    """True and predicted label of every example that is scored."""
    true, said = [], []
    for answer in answers:
        assert answer.predicted is not None, "labels are predicted under teacher forcing"
        mask = answer.batch.mask
        true += answer.batch.targets[mask].tolist()
        said += answer.predicted[mask].tolist()
    return true, said


def label_scores(answers: Sequence[Answer]) -> list[Scored]:
    """Accuracy and macro F1."""
    from sklearn.metrics import accuracy_score, f1_score  # noqa: PLC0415 - a second to import

    true, said = labels(answers)
    macro = f1_score(true, said, average="macro", labels=sorted(set(true)), zero_division=0.0)
    return [
        Scored(metric=LABEL_ACCURACY.name, value=float(accuracy_score(true, said))),
        Scored(metric=MACRO_F1.name, value=float(macro)),
    ]


def log_odds(answers: Sequence[Answer], positive: int) -> tuple[list[bool], list[float]]:
    """Whether each example has the positive label, and the log-odds that it was given (nats).

    They are read off the likelihood of the true label, which is exact only where the two labels are
    the whole vocabulary. A single-precision likelihood of a right label cannot express more than
    `CERTAIN`, so wrong labels are clipped there too.
    """
    true, odds = [], []
    for answer in answers:
        assert answer.nll is not None, "labels have likelihoods"
        found = answer.batch.targets[answer.batch.mask] == positive
        nll = answer.nll[answer.batch.mask].double().clamp(min=0.0)
        right = (-nll - (-torch.expm1(-nll)).log()).clamp(-CERTAIN, CERTAIN)
        true += found.tolist()
        odds += torch.where(found, right, -right).tolist()
    return true, odds


def ranking_scores(answers: Sequence[Answer], positive: int) -> list[Scored]:
    """Areas under the ROC and the precision-recall curve; nothing if a label is absent."""
    from sklearn.metrics import average_precision_score, roc_auc_score  # noqa: PLC0415

    true, odds = log_odds(answers, positive)
    if len(set(true)) < 2:
        return []
    return [
        Scored(metric=AUROC.name, value=float(roc_auc_score(true, odds))),
        Scored(metric=AUPRC.name, value=float(average_precision_score(true, odds))),
    ]


def majority(train: Sequence[int], test: Sequence[int]) -> float:
    """Accuracy on the test of the label that is most frequent in training."""
    most = max(sorted(set(train)), key=list(train).count)
    return sum(label == most for label in test) / len(test)
