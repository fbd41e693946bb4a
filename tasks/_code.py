"""What tasks about code share: mechanisms that copy identifiers, and the baseline scores."""

from collections.abc import Callable, Sequence

from bench.api.task import Entrant
from tasks._text_scores import Words, most_frequent, nearest
from tasks._word_pairs import Pair

FAMILY = "copying and method naming"
COPYING = (
    Entrant(variant="additive"),
    Entrant(variant="none_state"),
    Entrant(variant="conv_attention"),
    Entrant(variant="conv_copy"),
    Entrant(variant="pointer_generator"),
    Entrant(variant="copynet"),
)
Score = Callable[[Sequence[Words], Sequence[Words]], float]


def baseline_scores(
    train: Sequence[Pair], test: Sequence[Pair], copied: Sequence[Words], score: Score
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
