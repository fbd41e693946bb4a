"""Word alignment by attention: which source word is attended to while a word is translated.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 5.2, saw alignments in the weights;
Luong et al., 2015, https://arxiv.org/abs/1508.04025, section 5.4, measured their error rate; Koehn
& Knowles, 2017, https://arxiv.org/abs/1706.03872, section 3.6, found weights that are off by one
word. A network learns to translate, its weights under teacher forcing become hard links, and these
are compared with gold ones. Words are whole words, seen twice or else UNK, so that positions are
those of the gold. On generated strings, `transduction` has exact gold (`alignment_match`).

Pairs: `en_cs` is trained and tested on CzEnAli, `ja_en` on KFTT; `de_en` and `en_fr` are trained on
captions of Multi30k and tested on proceedings of parliaments, another domain with many unknown
words, so their numbers also measure the distance of the two. The gold French of `en_fr` undoes
contractions and has hardly an apostrophe (`de le`, `le ordre`) where captions have `du` and `l ' `,
and 28% of its test words are unknown under the default options. The sizes of the presets use
`de_en`: two thousand pairs of `en_cs` are too few for unsupervised attention
(`supervised_alignment` supervises it there). Every pair of the test is scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Config, IntRange, Legal
from bench.api.license import License
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.alignment.aligned_text import ALIGNERS, AlignedText
from tasks.data.word_alignment import LICENSES, LanguagePair
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, alignment_scores
from tasks.metrics.links import AER, LINK_METRICS
from tasks.metrics.translation_scores import NLL, likelihood

SHOWN: dict[str, tuple[tuple[str, str], ...]] = {
    "en_cs": (
        ("the company sold two banks last year .", "společnost loni prodala dvě banky ."),
        ("prices rose , but the market was calm .", "ceny vzrostly , ale trh byl klidný ."),
    ),
    "en_fr": (("two men are sitting at a table .", "deux hommes sont assis à une table ."),),
    "de_en": (("zwei männer sitzen an einem tisch .", "two men are sitting at a table ."),),
    "ja_en": (("寺 は 京都 に あ る 。", "the temple is in kyoto ."),),
}
"""Sentences written by us."""


@dataclass(frozen=True, kw_only=True)
class WordAlignmentConfig(Config):
    """Options of word alignment."""

    pair: LanguagePair = "en_cs"
    """Languages, and with them the data set."""
    vocab: Annotated[int, IntRange(500, 16000, log=True), Legal(5)] = 5000
    """Words of each language at most; each occurs twice in training."""
    longest: Annotated[int, IntRange(5, 200)] = 40
    """Longest training sentence (words)."""
    train: Annotated[int, Legal(0)] = 0
    """Training pairs to use; 0 for all."""


@register(
    "task",
    "word_alignment",
    config=WordAlignmentConfig,
    citation=Citation(text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025"),
)
class WordAlignment(AlignedText):
    """Gold links against the weights of a network that translates."""

    metrics = (*LINK_METRICS, NLL, ALIGNMENT_ENTROPY)
    data_sets = ("word_alignment", "multi30k")
    family = "alignment"
    comparison = (
        *ALIGNERS,
        Entry(variant="scaled_dot", backbone="transformer_seq2seq[width=96,layers=1,heads=1]"),
    )
    published_results = (
        PublishedResult(
            what="local attention (local-m, general), English to German",
            metric=AER.name,
            value=0.34,
            text="Luong et al., 2015",
            url="https://arxiv.org/abs/1508.04025",
            where="table 6",
            differs=(
                "The other direction, on 508 other sentences of Europarl; 4.5 million training "
                "pairs of WMT and four layers of LSTM, ours captions and one layer."
            ),
            about="word_alignment[pair=de_en]",
        ),
        PublishedResult(
            what="Berkeley aligner, English and German",
            metric=AER.name,
            value=0.32,
            text="Luong et al., 2015",
            url="https://arxiv.org/abs/1508.04025",
            where="table 6",
            differs=(
                "Non-neural; 508 other sentences of Europarl, and training text of parliaments "
                "and news, ours captions."
            ),
            about="word_alignment[pair=de_en]",
        ),
        PublishedResult(
            what="fast_align, German to English alone",
            metric=AER.name,
            value=0.284,
            text="Zenkel et al., 2019, alignment-scripts",
            url="https://github.com/lilt/alignment-scripts",
            where="README, German to English, DeEn",
            differs=(
                "Non-neural; 508 other sentences of Europarl; trained on Europarl, ours on "
                "captions."
            ),
            about="word_alignment[pair=de_en]",
        ),
        PublishedResult(
            what="fast_align, French and English",
            metric=AER.name,
            value=0.105,
            text="Dou & Neubig, 2021",
            url="https://github.com/neulab/awesome-align",
            where="README, model performance",
            differs=(
                "Non-neural. All 447 sentences, ours the last 400 of them; both directions "
                "joined; trained on parallel text of parliaments, ours on captions."
            ),
            about="word_alignment[pair=en_fr]",
        ),
        PublishedResult(
            what="multilingual BERT, fine-tuned on alignments, French and English",
            metric=AER.name,
            value=0.041,
            text="Dou & Neubig, 2021",
            url="https://github.com/neulab/awesome-align",
            where="README, model performance",
            differs=(
                "Pretrained on many languages. All 447 sentences, ours the last 400 of them; "
                "both directions joined; trained on parallel text of parliaments, ours on "
                "captions."
            ),
            about="word_alignment[pair=en_fr]",
        ),
        PublishedResult(
            what="fast_align, Japanese and English",
            metric=AER.name,
            value=0.511,
            text="Dou & Neubig, 2021",
            url="https://github.com/neulab/awesome-align",
            where="README, model performance",
            differs=(
                "Non-neural. All 582 sentences, ours 100 of them; both directions joined; "
                "trained on parallel text of the same source, ours on 400 pairs."
            ),
            about="word_alignment[pair=ja_en]",
        ),
        PublishedResult(
            what="multilingual BERT, fine-tuned on alignments, Japanese and English",
            metric=AER.name,
            value=0.374,
            text="Dou & Neubig, 2021",
            url="https://github.com/neulab/awesome-align",
            where="README, model performance",
            differs=(
                "Pretrained on many languages. All 582 sentences, ours 100 of them; both "
                "directions joined; trained on parallel text of the same source, ours on 400 "
                "pairs."
            ),
            about="word_alignment[pair=ja_en]",
        ),
    )
    data_license = License(
        "differs by pair; no open license for all of them", redistributable=False
    )
    needs_predictions = False
    pipeline_check = "At the quick size IBM model 1 aligns better than every network in every seed."
    presets = {
        "smoke": TaskPreset(
            options="word_alignment[train=200,vocab=500,longest=20]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=6,batch=16,evaluate_every=6]",
            seconds=3.0,
        ),
        "quick": TaskPreset(
            options="word_alignment[pair=de_en,vocab=2500,longest=20]",
            backbone=(
                "rnn_seq2seq[hidden=96,embedding=96,dropout=0.1,encoder=embed[positions=learned]]"
            ),
            protocol="adam[lr=0.004,steps=600,batch=32,evaluate_every=300]",
            seconds=19.0,
        ),
        "standard": TaskPreset(
            options="word_alignment[pair=de_en]",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.3]",
            protocol="adam[lr=0.002,steps=2000,batch=64,evaluate_every=200]",
            seconds=900.0,
        ),
    }

    def __init__(
        self, config: WordAlignmentConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir, pair=config.pair)
        self.config = config
        self.notes["license"] = LICENSES[config.pair].name

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Error rate of hard links, likelihood and entropy."""
        entropy = alignment_scores(answers, self.sizes.max_length)
        found = self.link_scores(split, answers) + likelihood(answers)
        return found + [scored for scored in entropy if scored.metric == ALIGNMENT_ENTROPY.name]

    def examples(self) -> Batch:
        """Sentences written by us."""
        return self.own(SHOWN[self.config.pair])
