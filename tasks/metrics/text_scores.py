"""Scores of generated texts, by libraries where there is one.

ROUGE is that of Google's `rouge-score`, without stemming: Lin, 2004, "ROUGE: a package for
automatic evaluation of summaries", https://aclanthology.org/W04-1013. Edit distance is that of
RapidFuzz, BLEU that of sacreBLEU on words as they are, F1 of parts of names that of Allamanis et
al., 2016, https://arxiv.org/abs/1602.03001, section 4.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from bench.api.metric import Metric, Scored

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

EDITS = Metric(
    name="edit_distance_count",
    title="Edit distance",
    unit="count of edits a form",
    low=0.0,
    high=None,
    better="lower",
)
BLEU = Metric(
    name="bleu",
    title="BLEU",
    unit="sacreBLEU points",
    low=0.0,
    high=100.0,
    better="higher",
    margin=1.0,
)
SUBTOKEN_F1 = Metric(
    name="subtoken_f1",
    title="F1 of sub-tokens",
    unit="F1, mean over names",
    low=0.0,
    high=1.0,
    better="higher",
)
UNKNOWN_SAID = Metric(
    name="unknown_said_proportion",
    title="Unknown words that are said",
    unit="fraction of unknown words",
    low=0.0,
    high=1.0,
    better="higher",
)
ROUGE_1 = Metric(
    name="rouge_1_f1",
    title="ROUGE-1",
    unit="F1, mean over summaries",
    low=0.0,
    high=1.0,
    better="higher",
)
ROUGE_2 = Metric(
    name="rouge_2_f1",
    title="ROUGE-2",
    unit="F1, mean over summaries",
    low=0.0,
    high=1.0,
    better="higher",
)
ROUGE_L = Metric(
    name="rouge_l_f1",
    title="ROUGE-L",
    unit="F1, mean over summaries",
    low=0.0,
    high=1.0,
    better="higher",
)
ROUGES = {"rouge1": ROUGE_1, "rouge2": ROUGE_2, "rougeL": ROUGE_L}
REPEATED = Metric(
    name="repeated_bigram_proportion",
    title="Repeated bigrams",
    unit="fraction of bigrams said",
    low=0.0,
    high=1.0,
    better="lower",
)
NOVEL = Metric(
    name="novel_proportion",
    title="Bigrams that the source has not",
    unit="fraction of bigrams said",
    low=0.0,
    high=1.0,
    better="none",
    group="diagnostic",
)

Words = Sequence[str]


def exact_match(said: Sequence[Words], references: Sequence[Words]) -> float:
    """Share of rows that are exactly right."""
    pairs = zip(said, references, strict=True)
    return sum(list(one) == list(other) for one, other in pairs) / len(references)


def edit_distance(said: Sequence[Words], references: Sequence[Words]) -> float:
    """Insertions, deletions and substitutions a row, on average.

    >>> edit_distance([list("gehte")], [list("ging")])
    4.0
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - not all need it

    pairs = zip(said, references, strict=True)
    return sum(Levenshtein.distance(one, other) for one, other in pairs) / len(references)


def bleu(said: Sequence[Words], references: Sequence[Words]) -> tuple[float, str]:
    """Corpus BLEU of words as they are, and its signature."""
    from sacrebleu.metrics.bleu import BLEU as Scorer  # noqa: PLC0415, N811 - slow to import

    scorer = Scorer(tokenize="none", force=True)
    texts = [" ".join(words) for words in said]
    value = scorer.corpus_score(texts, [[" ".join(words) for words in references]]).score
    return value, str(scorer.get_signature())


def correct_prefix(said: Sequence[Words], references: Sequence[Words]) -> float:
    """Words before the first error, as a share of all words; the end of a text counts as a word.

    >>> correct_prefix([["a", "b"], ["a", "c"]], [["a", "b"], ["a", "b"]])
    0.6666666666666666
    """
    good = total = 0
    for one, other in zip(said, references, strict=True):
        wanted = [*other, None]
        both = zip([*one, None], wanted, strict=False)
        good += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
        total += len(wanted)
    return good / total


def subtoken_f1(said: Sequence[Words], references: Sequence[Words]) -> float:
    """F1 of the parts of each name, order aside, averaged over names.

    >>> subtoken_f1([["get", "name"]], [["get", "full", "name"]])
    0.8
    """
    total = 0.0
    for one, other in zip(said, references, strict=True):
        both = sum((Counter(one) & Counter(other)).values())
        total += 2 * both / (len(one) + len(other)) if both else 0.0
    return total / len(references)


def unknown_said(
    said: Sequence[Words], references: Sequence[Words], known: Callable[[str], bool]
) -> list[Scored]:
    """Share of the references' unknown words that the output has; nothing if there are none."""
    good = total = 0
    for one, other in zip(said, references, strict=True):
        unknown = Counter(word for word in other if not known(word))
        good += sum((unknown & Counter(one)).values())
        total += sum(unknown.values())
    return [Scored(metric=UNKNOWN_SAID.name, value=good / total)] if total else []


def rouge(said: Sequence[Words], references: Sequence[Sequence[Words]]) -> dict[str, float]:
    """ROUGE-1, -2 and -L as F1; the best of several references counts.

    >>> rouge([["the", "new", "plan"]], [[["a", "new", "plan"], ["plans"]]])["rouge2"]
    0.5
    """
    scorer = _rouge_scorer()
    totals = dict.fromkeys(ROUGES, 0.0)
    for one, others in zip(said, references, strict=True):
        found = scorer.score_multi([" ".join(words) for words in others], " ".join(one))
        for name in totals:
            totals[name] += found[name].fmeasure
    return {name: total / len(references) for name, total in totals.items()}


def repeated(said: Sequence[Hashable], wanted: Sequence[Hashable] = ()) -> tuple[int, int]:
    """Bigrams generated more often than once and than in the reference, and all bigrams generated.

    >>> repeated([1, 2, 1, 2], [1, 2, 3])
    (1, 3)
    >>> repeated([3, 3, 3, 1, 2, 1, 2], [3, 3, 3, 3, 3])
    (1, 6)
    """
    spoken, asked = (Counter(pairwise(one)) for one in (said, wanted))
    return sum(max(0, n - max(1, asked[pair])) for pair, n in spoken.items()), spoken.total()


def dropped(said: Sequence[Hashable], wanted: Sequence[Hashable]) -> tuple[int, int]:
    """Reference words that were generated too few times, and all reference words.

    >>> dropped([1, 1, 2], [1, 2, 2, 3])
    (2, 4)
    """
    return (Counter(wanted) - Counter(said)).total(), len(wanted)


def bigram_scores(said: Sequence[Words], sources: Sequence[Words]) -> list[Scored]:
    """Share of bigrams that were generated before, and of those that are not in the source."""
    again = novel = total = 0
    for one, source in zip(said, sources, strict=True):
        more, count = repeated(one)
        there = set(pairwise(source))
        again += more
        total += count
        novel += sum(pair not in there for pair in pairwise(one))
    share = max(1, total)
    return [
        Scored(metric=REPEATED.name, value=again / share),
        Scored(metric=NOVEL.name, value=novel / share),
    ]


def nearest(train: Sequence[Words], test: Sequence[Words]) -> list[int]:
    """Number of the training source that is most like each test source, by tf-idf and cosine."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow to import

    counter = TfidfVectorizer(analyzer=list)
    seen = counter.fit_transform(train)
    likeness = counter.transform(test) @ seen.T
    return [int(row.argmax()) for row in likeness.toarray()]


def most_frequent(targets: Sequence[Words]) -> tuple[str, ...]:
    """The target that occurs most often; ties by alphabet."""
    counted = Counter(tuple(words) for words in targets)
    return min(counted, key=lambda words: (-counted[words], words))


@cache
def _rouge_scorer() -> "RougeScorer":
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415 - a second to import

    return RougeScorer(list(ROUGES), use_stemmer=False)
