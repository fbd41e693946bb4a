"""Recognition of spoken words: frames of sound, batches, spectrograms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.answer import Answer, Picture, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.samples import decoded_samples
from tasks.data.sound import LogMel, LogMelScale, fit_scale, to_frames
from tasks.metrics.accuracy import SEQUENCE_ACCURACY
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.delays import HEARD_BEFORE, delay_scores
from tasks.metrics.word_errors import WORD_ERROR_RATE, word_error_rate
from tasks.speech.spoken_strings import (
    GAP,
    Recording,
    Spoken,
    draw_strings,
    joined_wave,
    most_of_a_speaker,
    num_samples,
)

BOS, EOS, FIRST = 1, 2, 4
ROWS = 64
"""Strings of a batch that is evaluated."""


@dataclass(frozen=True, kw_only=True)
class SpeechConfig(Config):
    """Options that tasks of spoken words share."""

    min_words: Annotated[int, IntRange(1, 8)] = 2
    """Fewest words of a string; one word is a whole string where both are 1."""
    max_words: Annotated[int, IntRange(1, 8)] = 4
    """Most words of a string."""
    mels: Annotated[int, IntRange(8, 80, log=True)] = 24
    """Mel bands."""
    stack: Annotated[int, IntRange(1, 4)] = 3
    """Windows of 10 ms in a frame."""
    validate: int = 100
    """Strings decoded at each validation."""
    test: int = 300
    """Strings of the test."""

    def __post_init__(self) -> None:
        """Check the lengths."""
        if not 1 <= self.min_words <= self.max_words:
            raise InvalidConfig(
                "spoken words: 1 <= min_words <= max_words, "
                f"got {self.min_words} and {self.max_words}."
            )
        if min(self.mels, self.stack, self.validate, self.test) < 1:
            raise InvalidConfig(
                "spoken words: mels, stack, validate and test must be at least 1, "
                f"got {self.mels}, {self.stack}, {self.validate}, {self.test}."
            )


def recognizers(online: str) -> tuple[Entry, ...]:
    """Comparison of the tasks of spoken words.

    Args:
        online: Selector of a network with a left-to-right encoder.
    """
    # a decoder that gets no summary of the sound after its position
    streaming = f"{online[:-1]},summaries=none,search=streaming]"
    return (
        Entry(variant="location_aware"),
        Entry(variant="las"),
        # the cost of the left-to-right encoder, whatever the attention
        Entry(variant="scaled_dot", backbone=online),
        Entry(variant="uniform", backbone=online),
        Entry(variant="raffel_monotonic", backbone=online),
        Entry(variant="mocha", backbone=online),
        Entry(variant="milk", backbone=online),
        Entry(variant="mocha", backbone=streaming),
        Entry(variant="none_state"),
    )


class SpeechTask(Task):
    """Words from frames of sound; a subclass provides the recordings.

    Gold is spread evenly over the frames of a word; the end of a string has no frames.
    """

    metrics = (WORD_ERROR_RATE, SEQUENCE_ACCURACY, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    decodes = True
    needs_predictions = False
    family = "speech recognition"
    named: ClassVar[str]
    """The task, for sentences about its options."""
    words: ClassVar[tuple[str, ...]]

    config: SpeechConfig
    sound: LogMel
    scale: LogMelScale
    recordings: Mapping[str, Sequence[Recording]]

    def begin(self, recordings: Mapping[str, Sequence[Recording]], rate: int) -> None:
        """Take recordings by part, and measure the scale of the training part.

        Raises:
            InvalidConfig: No speaker of a part has recordings enough for one string.
        """
        low = self.config.min_words
        for part, found in recordings.items():
            if most_of_a_speaker(found) < low:
                raise InvalidConfig(
                    f"{self.named}: no speaker of {part} has {low} recordings for one string; "
                    "ask for fewer words."
                )
        self.sound = LogMel(rate=rate, mels=self.config.mels, stack=self.config.stack)
        self.recordings = recordings
        self.counts = (self.config.min_words, self.config.max_words)
        self.notes["caveat"] = HEARD_BEFORE
        self.scale = fit_scale([one.wave for one in recordings["train"]], self.sound)
        longest = max(len(one.wave) for part in recordings.values() for one in part)
        frames = self.sound.frames(self.config.max_words * (longest + GAP[1]))
        self.sizes = Sizes(
            (frames + 1,), FIRST + len(self.words), frames, source_frames=(self.sound.width,)
        )
        self._evaluation: dict[Split, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of recordings in strings that are never the same; each comes at most once."""
        part = self.recordings["train"]
        while True:
            strings = draw_strings(part, self.counts, generator)
            lengths = [num_samples(part, spoken) for spoken in strings]
            for chosen in bucketed_batches(lengths, batch_size, generator):
                yield self._batch(part, [strings[index] for index in chosen])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Strings of about equal length together."""
        if split not in self._evaluation:
            part = self.recordings[split]
            strings = sorted(self._fixed(split), key=lambda spoken: num_samples(part, spoken))
            self._evaluation[split] = [
                self._batch(part, strings[at : at + ROWS]) for at in range(0, len(strings), ROWS)
            ]
        return self._evaluation[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Word error rate by jiwer, over all strings and by their length, and exact match."""
        pairs = [
            (reference, self._text(said))
            for answer in answers
            for reference, said in zip(answer.batch.references, answer.generated or (), strict=True)
        ]
        exact = sum(reference == said for reference, said in pairs) / len(pairs)
        found = [
            Scored(metric=WORD_ERROR_RATE.name, value=word_error_rate(pairs)),
            Scored(metric=SEQUENCE_ACCURACY.name, value=exact),
        ]
        by_length: dict[int, list[tuple[str, str]]] = {}
        for pair in pairs:
            by_length.setdefault(len(pair[0].split()), []).append(pair)
        if split == "test" and len(by_length) > 1:
            found += [
                Scored(
                    metric=WORD_ERROR_RATE.name,
                    value=word_error_rate(by_length[count]),
                    axis="length",
                    x=float(count),
                )
                for count in sorted(by_length)
            ]
        found += alignment_scores(answers, self.sizes.max_length)
        return found + delay_scores(answers, self.sizes.max_length)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent word of the training part, once, for every string."""
        train = [one.word for one in self.recordings["train"]]
        most = self.words[max(sorted(set(train)), key=train.count)]
        references = [text for batch in self.evaluation("test") for text in batch.references]
        return {"most frequent word": word_error_rate([(text, most) for text in references])}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th string, from short ones to long ones."""
        return decoded_samples(answers, count, self._text)

    def examples(self) -> Batch:
        """Two of the strings of the test with the most words."""
        part = self.recordings["test"]
        strings = sorted(self._fixed("test"), key=lambda spoken: -len(spoken.parts))
        return self._batch(part, strings[:2])

    def picture(self, batch: Batch, row: int) -> Picture:
        """The spectrogram, high bands above; one position per encoder state."""
        text = batch.sources[0]
        assert text.frames is not None, "sound comes in frames"
        real = text.frames[row] if text.mask is None else text.frames[row][text.mask[row]]
        bands = real.unflatten(-1, (self.sound.stack, -1)).flatten(0, 1)
        places = -(-len(real) // batch.stride)
        missing = places * batch.stride * self.sound.stack - len(bands)
        bands = torch.nn.functional.pad(bands.T, (0, missing), value=float(bands.min())).flip(0)
        low, high = bands.min(), bands.max()
        gray = (bands - low) / (high - low).clamp(min=1e-6)
        return Picture(gray.tolist(), (1, places))

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Seconds at which a frame begins; words."""
        if source:
            seconds = self.sound.step / self.sound.rate
            return [f"{(number - 1) * seconds:.2f}" for number in ids]
        special = {0: "·", BOS: "<s>", EOS: "</s>", 3: "<unk>"}
        return [special.get(number) or self.words[number - FIRST] for number in ids]

    def _text(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokens([number for number in ids if number >= FIRST], source=False))

    def _fixed(self, split: Split) -> list[Spoken]:
        """The strings of a split, from whole readings of its recordings."""
        count = self.config.test if split == "test" else self.config.validate
        generator = self.seeded(split)
        found: list[Spoken] = []
        while len(found) < count:
            found += draw_strings(self.recordings[split], self.counts, generator)
        return found[:count]

    def _batch(self, part: Sequence[Recording], strings: Sequence[Spoken]) -> Batch:
        frames, mask = to_frames(
            [joined_wave(part, spoken) for spoken in strings], self.sound, self.scale
        )
        seconds_of = [num_samples(part, spoken) / self.sound.rate for spoken in strings]
        places = torch.arange(1, frames.shape[1] + 1) * mask
        spoken_words = [[part[index].word for index in spoken.parts] for spoken in strings]
        targets, scored = pad_rows([[FIRST + w for w in words] + [EOS] for words in spoken_words])
        return Batch(
            sources=(Text(places, None if bool(mask.all()) else mask, frames=frames),),
            inputs=torch.cat((torch.full((len(strings), 1), BOS), targets[:, :-1]), 1),
            targets=targets,
            mask=scored,
            gold=self._gold(part, strings, (*targets.shape, frames.shape[1])),
            references=tuple(" ".join(self.words[w] for w in words) for words in spoken_words),
            names=tuple(
                f"{part[spoken.parts[0]].speaker}, {seconds:.2f} s"
                for spoken, seconds in zip(strings, seconds_of, strict=True)
            ),
        )

    def _gold(
        self, part: Sequence[Recording], strings: Sequence[Spoken], shape: tuple[int, ...]
    ) -> Float[Tensor, "B T S"]:
        gold = torch.zeros(shape)
        for row, spoken in enumerate(strings):
            at = 0
            for step, (index, gap) in enumerate(zip(spoken.parts, spoken.gaps, strict=True)):
                start, at = at + gap, at + gap + len(part[index].wave)
                first, last = start // self.sound.step, self.sound.frames(at)
                gold[row, step, first:last] = 1 / (last - first)
        return gold
