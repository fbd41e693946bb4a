"""Spoken digits: recordings of FSDD, alone or in short strings of one speaker.

Jackson et al., 2018, "Jakobovski/free-spoken-digit-dataset: v1.0.8",
https://doi.org/10.5281/zenodo.1342401; attention over sound as in Chan et al., 2016, "Listen,
attend and spell", https://arxiv.org/abs/1508.01211, and Chorowski et al., 2015, "Attention-based
models for speech recognition", https://arxiv.org/abs/1506.07503.

Deviations: strings are composed of single recordings, with 30 to 120 ms of silence between them:
test strings consist of test recordings only, so that none of them is in training. At the quick size
hard monotonic walks run past the digits: in training many small stop probabilities, one at every
frame of a digit, add up to a sure stop, and a walk that stops where one of them exceeds 0.5 does
not stop there. The preset `flagship` trains longer, with the loss `quantity`, and its decoder
starts without a summary of the sound, so that no word is written before it is heard. `none_state`
and `location_aware` have a bidirectional encoder, so they are not comparable with the monotonic
variants.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from bench.api.comparison import entries
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.data.corpus import parts_note
from tasks.data.fsdd import DIGITS, RATE, load_fsdd
from tasks.speech.speech_task import SpeechConfig, SpeechTask, recognizers
from tasks.speech.spoken_strings import Recording

ONLINE = "rnn_seq2seq[encoder=uni_rnn,hidden=96,embedding=48]"
"""A left-to-right encoder, so that a state depends only on the sound before it."""
UNREAD = "rnn_seq2seq[encoder=uni_rnn,hidden=96,embedding=48,summaries=none]"
"""The same, with a decoder that knows nothing of the sound before it attends. Its last state would
tell it all words of a short string, and attention would not be needed."""
STOPPING = (
    "raffel_monotonic",
    "mocha",
    "milk",
    "raffel_monotonic[noise=1,offset=-1,loss=quantity]",
    "mocha[noise=1,loss=quantity]",
    "milk[end=nothing,noise=1,loss=quantity]",
)
"""Walks as their papers have them, and with less noise and a loss that asks for one stop a word."""


@dataclass(frozen=True, kw_only=True)
class SpokenDigitsConfig(SpeechConfig):
    """Options of spoken digits."""


@register(
    "task",
    "spoken_digits",
    config=SpokenDigitsConfig,
    citation=Citation(text="Jackson et al., 2018", url="https://doi.org/10.5281/zenodo.1342401"),
)
class SpokenDigits(SpeechTask):
    """Strings of 2 to 4 digits; with `min_words=1,max_words=1`, the 300 recordings of the test.

    Greedy decoding of all strings of the test; they are the same for every seed.
    """

    presets = {
        "smoke": TaskPreset(
            options="spoken_digits[validate=8,test=16]",
            backbone="rnn_seq2seq[hidden=16,embedding=16]",
            protocol="adam[steps=4,batch=8,evaluate_every=4]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="spoken_digits",
            backbone="rnn_seq2seq[hidden=96,embedding=48]",
            protocol="adam[lr=0.004,steps=500,batch=32,evaluate_every=250]",
            seconds=22.6,
        ),
        "standard": TaskPreset(
            options="spoken_digits",
            backbone="rnn_seq2seq[hidden=192,embedding=96,dropout=0.2]",
            protocol="adam[steps=4000,batch=32,evaluate_every=400]",
            seconds=400.0,
        ),
        "flagship": TaskPreset(
            options="spoken_digits",
            backbone=UNREAD,
            protocol=(
                "adam[lr=0.004,steps=12000,batch=32,evaluate_every=100,patience=4,halvings=2]"
            ),
            seconds=90.0,
            comparison=entries("scaled_dot", *STOPPING),
        ),
    }
    comparison = recognizers(ONLINE)
    margin = 0.02
    """A word in fifty. Trained networks err on one in a hundred, and uniform attention on three."""
    data_license = License("CC BY-SA 4.0 (FSDD)", redistributable=True)
    needs_download = True
    data_sets = ("fsdd",)
    named = "spoken_digits"
    words = DIGITS

    def __init__(self, config: SpokenDigitsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, 0, data_dir)  # every seed of a cell has the same strings
        self.config = config
        table = load_fsdd(data_dir)
        self.notes["data"] = table.note
        self.notes["parts"] = parts_note(
            {
                part: [(row["label"], row["speaker"], row["take"]) for row in rows]
                for part, rows in table.parts.items()
            }
        )
        parts = {
            part: [
                Recording(torch.from_numpy(row["audio"]["array"]), row["label"], row["speaker"])
                for row in rows
            ]
            for part, rows in table.parts.items()
        }
        self.begin(parts, RATE)
