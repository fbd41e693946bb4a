"""Tone words: synthetic words of tones and chirps, in strings like spoken ones; no download.

Morse code and whistled languages are of this kind; the task replaces speech where no recordings are
available: Chan et al., 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211.

Deviations: everything is synthesized; voices differ in pitch and pace alone.
"""

import math
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.speech.speech_task import SpeechConfig, SpeechTask, recognizers
from tasks.speech.spoken_strings import Recording

RATE = 8000
"""Samples a second."""
TONES = ((400.0, 400.0), (800.0, 800.0), (1600.0, 1600.0), (400.0, 1200.0), (1600.0, 600.0))
"""Hertz at which a segment begins and ends; the last two are chirps."""
SEGMENT = (400, 800)
"""Shortest and longest segment (samples): 50 to 100 ms."""
WORDS = ("dah", "dit", "dot", "fah", "lah", "mih", "rei", "soh", "tee", "ush")
SPELLING = tuple(permutations(range(len(TONES)), 2))[: len(WORDS)]
"""Segments of each word: two different ones, whose order matters."""
VOICES = ("alto", "bass", "tenor")
PITCH = {"alto": 1.15, "bass": 0.85, "tenor": 1.0}
ONLINE = "rnn_seq2seq[encoder=uni_rnn,hidden=64,embedding=32]"
"""A left-to-right encoder, so that a state depends only on the sound before it."""


@dataclass(frozen=True, kw_only=True)
class ToneWordsConfig(SpeechConfig):
    """Options of tone words."""

    noise: Annotated[float, FloatRange(0.0, 1.0)] = 0.1
    """Deviation of white noise, where tones have an amplitude of 0.5."""
    takes: Annotated[int, IntRange(1, 100)] = 12
    """Recordings of each word and voice, of training; a third as many of the other parts."""

    def __post_init__(self) -> None:
        """Check the noise and the number of recordings."""
        super().__post_init__()
        if self.noise < 0 or self.takes < 1:
            raise InvalidConfig(
                "tone_words: noise must be at least 0 and takes at least 1, "
                f"got {self.noise} and {self.takes}."
            )


@register(
    "task",
    "tone_words",
    config=ToneWordsConfig,
    citation=Citation(text="after Chan et al., 2016", url="https://arxiv.org/abs/1508.01211"),
)
class ToneWords(SpeechTask):
    """Ten words of two segments each, spoken by three voices, in strings of 2 to 4.

    >>> task = ToneWords(ToneWordsConfig(validate=1, takes=3), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> batch.references[0].split() == task.tokens(batch.targets[0, :-1].tolist(), source=False)
    True
    """

    presets = {
        "smoke": TaskPreset(
            options="tone_words[validate=8,test=16,takes=3]",
            backbone="rnn_seq2seq[hidden=16,embedding=16]",
            protocol="adam[steps=4,batch=8,evaluate_every=4]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="tone_words",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[lr=0.005,steps=300,batch=32,evaluate_every=150]",
            seconds=12.0,
        ),
        "standard": TaskPreset(
            options="tone_words[noise=0.3]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[steps=3000,batch=32,evaluate_every=300]",
            seconds=200.0,
        ),
    }
    comparison = recognizers(ONLINE)
    named = "tone_words"
    words = WORDS

    def __init__(self, config: ToneWordsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        few = -(-config.takes // 3)
        counts = {"train": config.takes, "validation": few, "test": few}
        parts = {}
        for number, (part, takes) in enumerate(counts.items()):
            generator = self.seeded(5 + number)
            parts[part] = [
                Recording(synthesize(word, voice, config.noise, generator), word, voice)
                for word in range(len(WORDS))
                for voice in VOICES
                for _ in range(takes)
            ]
        self.begin(parts, RATE)


def synthesize(
    word: int, voice: str, noise: float, generator: torch.Generator
) -> Float[Tensor, " N"]:
    """One recording of a word: its segments in the pitch of a voice, a little off, with noise."""
    pieces = []
    for tone in SPELLING[word]:
        samples = int(torch.randint(SEGMENT[0], SEGMENT[1] + 1, (1,), generator=generator))
        off = 0.95 + 0.1 * float(torch.rand(1, generator=generator))
        start, end = (hertz * PITCH[voice] * off for hertz in TONES[tone])
        hertz = torch.linspace(start, end, samples)
        swell = torch.hann_window(samples).sqrt()
        pieces.append(0.5 * swell * (2 * math.pi * hertz.cumsum(0) / RATE).sin())
    clean = torch.cat(pieces)
    return clean + noise * torch.randn(len(clean), generator=generator)
