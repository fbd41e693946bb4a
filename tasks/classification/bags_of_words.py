"""Naive Bayes over bags of words: non-neural baselines of text classification."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.classification.labeled_texts import Labeled
from tasks.metrics.labels import majority


def naive_bayes(
    train: Sequence[Labeled], test: Sequence[Labeled], vocab: int
) -> npt.NDArray[np.float64]:
    """Probability of each label for the texts of the test, by bags of words (`N C`)."""
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - a second
    from sklearn.naive_bayes import MultinomialNB  # noqa: PLC0415

    counter = CountVectorizer(analyzer=list, vocabulary={number: number for number in range(vocab)})
    model = MultinomialNB().fit(
        counter.transform([row.ids for row in train]), [row.label for row in train]
    )
    found: npt.NDArray[np.float64] = model.predict_proba(
        counter.transform([row.ids for row in test])
    )
    return found


def accuracy_baselines(
    train: Sequence[Labeled], test: Sequence[Labeled], vocab: int
) -> dict[str, float]:
    """Accuracy of the most frequent label, and of naive Bayes over bags of words."""
    true = np.asarray([row.label for row in test])
    kinds = np.unique([row.label for row in train])
    said = kinds[naive_bayes(train, test, vocab).argmax(1)]
    return {
        "majority": majority([row.label for row in train], true.tolist()),
        "naive Bayes": float((said == true).mean()),
    }


def area_baselines(
    train: Sequence[Labeled], test: Sequence[Labeled], vocab: int
) -> dict[str, float]:
    """Area under the ROC curve of one answer for all, and of naive Bayes over bags of words.

    Nothing if a label is absent from the test, which then has no area.
    """
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - a second to import

    true = [row.label for row in test]
    if len(set(true)) < 2:
        return {}
    area = roc_auc_score(true, naive_bayes(train, test, vocab)[:, 1])
    return {"majority": 0.5, "naive Bayes": float(area)}
