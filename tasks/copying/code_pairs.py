"""Code tasks: mechanisms that copy identifiers, and non-neural baselines."""

from collections.abc import Callable, Sequence

from bench.api.comparison import Entry
from tasks.data.word_pairs import WordPair
from tasks.metrics.text_scores import Words, most_frequent, nearest

FAMILY = "copying and method naming"
COPYING = (
    Entry(variant="additive"),
    Entry(variant="none_state"),
    Entry(variant="conv_attention"),
    Entry(variant="conv_copy"),
    Entry(variant="pointer_generator"),
    Entry(variant="copynet"),
)
Score = Callable[[Sequence[Words], Sequence[Words]], float]


def baseline_scores(
    train: Sequence[WordPair], test: Sequence[WordPair], copied: Sequence[Words], score: Score
) -> dict[str, float]:
    """Score the most frequent target, what was copied, and the target of the nearest source."""
    frequent = most_frequent([pair.target for pair in train])
    chosen = nearest([pair.source for pair in train], [pair.source for pair in test])
    wanted = [pair.target for pair in test]
    return {
        "most frequent target": score([frequent] * len(test), wanted),
        "copy the source": score(copied, wanted),
        "nearest source": score([train[n].target for n in chosen], wanted),
    }
