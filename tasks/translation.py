"""Translation of image captions: Multi30k, real sentences at a size that a laptop can train.

Elliott et al., 2016, "Multi30K: multilingual English-German image descriptions",
https://aclanthology.org/W16-3210. BLEU and chrF come from sacreBLEU with their signatures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch

from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import (
    Answer,
    Batch,
    Metric,
    Sample,
    Scored,
    Sizes,
    Split,
    Task,
    TaskPreset,
    Text,
)
from tasks._scores import ALIGNMENT_ENTROPY, alignment_scores, delay_scores
from tasks.sources.bucketing import bucketed_batches, pad_rows
from tasks.sources.corpus import ParallelCorpus
from tasks.sources.multi30k import load_multi30k
from tasks.sources.subwords import BOS, EOS, SubwordConfig, corpus_subwords

BLEU = Metric(name="bleu", title="BLEU", unit="sacreBLEU points", better="higher")
CHRF = Metric(name="chrf", title="chrF", unit="sacreBLEU points", better="higher")
NLL = Metric(
    name="nll_nats_per_token",
    title="Negative log likelihood",
    unit="nats per token",
    better="lower",
)
Language = Literal["de", "en", "fr", "cs"]


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(Config):
    """Options of caption translation."""

    source: Language = "de"
    """Language to translate from."""
    target: Language = "en"
    """Language to translate into."""
    vocab: Annotated[int, IntRange(500, 16000, log=True)] = 3000
    """Subwords of each language."""
    lowercase: bool = True
    """Lower-case everything, references too."""
    validate: int = 250
    """Sentences decoded at each validation."""
    test: int = 1000
    """Sentences of the test (all 1000 of test_2016_flickr)."""
    train: int = 0
    """Training pairs to use; 0 for all 29000."""

    def __post_init__(self) -> None:
        """Check that there is something to translate."""
        if self.source == self.target:
            raise InvalidConfig(f"translation: source and target are both {self.source!r}.")


@register(
    "task",
    "translation",
    config=TranslationConfig,
    citation=Citation(text="Elliott et al., 2016", url="https://aclanthology.org/W16-3210"),
)
class Translation(Task):
    """Multi30k captions, byte-pair encoded; greedy decoding, corpus BLEU."""

    metrics = (BLEU, CHRF, NLL, ALIGNMENT_ENTROPY)
    # source and target ids mean different words, so there is nothing to copy
    facts = frozenset({"reversible_pairs"})
    presets = {
        "smoke": TaskPreset(
            options="translation[train=400,validate=16,test=32,vocab=500]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=3.0,
        ),
        "quick": TaskPreset(
            options="translation",
            backbone="rnn_seq2seq[hidden=128,embedding=96,projection=bfloat16]",
            protocol="adam[lr=0.002,steps=600,batch=64,evaluate_every=200]",
            seconds=120.0,
        ),
        "standard": TaskPreset(
            options="translation",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.2,projection=bfloat16]",
            protocol=(
                "adam[lr=0.002,warmup=0,steps=100000,cpu_seconds=240,batch=128,evaluate_every=113]"
            ),
            seconds=280.0,
        ),
    }
    decodes = True
    needs_predictions = False
    needs_download = True
    data_sets = ("multi30k",)
    data_license = "no open license; research use (Multi30k)"
    chance = 0.0

    def __init__(self, config: TranslationConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        corpus = load_multi30k((config.source, config.target), data_dir)
        subwords = SubwordConfig(size=config.vocab, lowercase=config.lowercase)
        self.source_words = corpus_subwords(corpus, (config.source,), subwords)
        self.target_words = corpus_subwords(corpus, (config.target,), subwords)
        self.corpus = corpus
        count = config.train or len(corpus.train[config.source])
        self.pairs = list(
            zip(
                self.source_words.encode_lines(corpus.train[config.source][:count], eos=True),
                self.target_words.encode_lines(corpus.train[config.target][:count], eos=True),
                strict=True,
            )
        )
        longest = max(len(target) for _, target in self.pairs)
        self.sizes = Sizes((self.source_words.size,), self.target_words.size, min(80, longest + 10))
        self.notes["data"] = _data_note(corpus)
        self._evaluation: dict[str, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        lengths = [(len(target), len(source)) for source, target in self.pairs]
        while True:
            for chosen in bucketed_batches(lengths, batch_size, generator):
                yield _batch([self.pairs[index] for index in chosen])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Sentences of about equal length together; the order of the answers is kept with them."""
        if split not in self._evaluation:
            self._evaluation[split] = self._fixed(split)
        return self._evaluation[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Corpus BLEU and chrF of the greedy output, and the likelihood of the reference."""
        from sacrebleu.metrics import bleu, chrf  # noqa: PLC0415

        said = [self._text(row) for answer in answers for row in answer.generated or ()]
        references = [text for answer in answers for text in answer.batch.references]
        if len(said) != len(references):
            raise ValueError(f"{len(said)} translations for {len(references)} references")
        lower = self.config.lowercase
        scorers = {BLEU.name: bleu.BLEU(lowercase=lower), CHRF.name: chrf.CHRF(lowercase=lower)}
        found = []
        for name, scorer in scorers.items():
            value = scorer.corpus_score(said, [references]).score
            found.append(Scored(metric=name, value=value))
            self.notes[name] = str(scorer.get_signature())
        losses = [float(answer.nll.sum()) for answer in answers if answer.nll is not None]
        if len(losses) == len(answers):
            tokens = sum(int(answer.batch.mask.sum()) for answer in answers)
            found.append(Scored(metric=NLL.name, value=sum(losses) / tokens))
        found += alignment_scores(answers, self.sizes.max_length)
        return found + delay_scores(answers, self.sizes.max_length)

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th sentence, from short ones to long ones."""
        rows = [
            Sample(name, reference, self._text(said))
            for answer in answers
            for name, reference, said in zip(
                answer.batch.names, answer.batch.references, answer.generated or (), strict=True
            )
        ]
        return rows[:: max(1, len(rows) // count)][:count]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Subwords; the end of a sentence as such."""
        words = self.source_words if source else self.target_words
        return ["</s>" if number == EOS else words.decode([number]) or "▁" for number in ids]

    def _text(self, ids: Sequence[int]) -> str:
        return self.target_words.decode(list(ids))

    def _fixed(self, split: Split) -> list[Batch]:
        part = {"train": self.corpus.train, "validation": self.corpus.validation}.get(
            split, self.corpus.test
        )
        count = self.config.test if split == "test" else self.config.validate
        sources = part[self.config.source][:count]
        references = part[self.config.target][:count]
        pairs = list(
            zip(
                self.source_words.encode_lines(sources, eos=True),
                self.target_words.encode_lines(references, eos=True),
                strict=True,
            )
        )
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][0]))
        return [
            _batch(
                [pairs[index] for index in order[at : at + 128]],
                tuple(references[index] for index in order[at : at + 128]),
                tuple(sources[index] for index in order[at : at + 128]),
            )
            for at in range(0, len(order), 128)
        ]


def _batch(
    pairs: Sequence[tuple[list[int], list[int]]],
    references: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
) -> Batch:
    source, real = pad_rows([source for source, _ in pairs])
    targets, mask = pad_rows([target for _, target in pairs])
    inputs = torch.cat((torch.full((len(pairs), 1), BOS), targets[:, :-1]), 1)
    return Batch(
        sources=(Text(source, None if bool(real.all()) else real),),
        inputs=inputs,
        targets=targets,
        mask=mask,
        references=references,
        names=names,
    )


def _data_note(corpus: ParallelCorpus) -> str:
    """Where the data came from, with the start of every file's hash."""
    files = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(corpus.files.items()))
    revision = f" at {corpus.revision}" if corpus.revision else ""
    return f"{corpus.name} from the {corpus.origin}{revision}: {files}"
