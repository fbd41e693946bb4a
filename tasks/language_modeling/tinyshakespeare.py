"""Tiny Shakespeare: the next character of a play.

Karpathy, 2015, https://github.com/karpathy/char-rnn. The first 90 % are for training, 5 % for
validation, 5 % for the test. Windows begin with an empty memory and only the first ones of a part
are scored, so that numbers are slightly higher than on whole parts.
"""

from pathlib import Path

from bench.api.comparison import PublishedResult, entries
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.data.tinyshakespeare import load_tinyshakespeare
from tasks.language_modeling.characters import CharacterModeling
from tasks.language_modeling.language_model import BITS, LanguageConfig
from tasks.modern import SINKS


@register(
    "task",
    "tinyshakespeare",
    config=LanguageConfig,
    citation=Citation(text="Karpathy, 2015", url="https://github.com/karpathy/char-rnn"),
)
class TinyShakespeare(CharacterModeling):
    """Characters of plays, bits per character."""

    published_results = (
        PublishedResult(
            what="transformer of 4 layers and width 128, windows of 64, 2000 updates (1.88 nats)",
            metric=BITS.name,
            value=2.712,
            text="Karpathy, 2022, nanoGPT",
            url="https://github.com/karpathy/nanoGPT",
            where="README, quick start, on a CPU",
            differs=(
                "Loss on random windows of the last tenth, whose second half is our test; nats "
                "over ln 2."
            ),
        ),
        PublishedResult(
            what="transformer of 6 layers and width 384, windows of 256 (1.4697 nats)",
            metric=BITS.name,
            value=2.120,
            text="Karpathy, 2022, nanoGPT",
            url="https://github.com/karpathy/nanoGPT",
            where="README, quick start, on a GPU",
            differs=(
                "Best loss in training on random windows of the last tenth, whose second half is "
                "our test; nats over ln 2."
            ),
        ),
    )
    pipeline_check = (
        "At the quick size interpolated trigrams are better than every network in every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="tinyshakespeare[window=32,validate=8,test=16,common=4]",
            backbone="transformer_decoder[width=32,layers=1,heads=2]",
            protocol="adam[steps=20,batch=8,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="tinyshakespeare",
            backbone="transformer_decoder[width=64,layers=2,heads=2]",
            protocol="adam[lr=0.005,steps=500,batch=4,evaluate_every=250]",
            seconds=5.2,
        ),
        "standard": TaskPreset(
            options="tinyshakespeare[window=128,validate=200,test=400]",
            backbone="transformer_decoder[width=128,layers=3]",
            protocol="adam[lr=0.002,steps=4000,batch=32,evaluate_every=400]",
            seconds=1200.0,
        ),
        "modern": TaskPreset(
            options="tinyshakespeare",
            backbone="transformer_decoder[width=64,layers=2,heads=4]",
            protocol="adam[lr=0.003,steps=1000,batch=8,evaluate_every=250]",
            seconds=20.0,
            comparison=entries(*SINKS),
        ),
    }
    needs_download = True
    data_sets = ("tinyshakespeare",)
    data_license = License("public domain (the plays)", redistributable=True)
    writes = (
        "VELMORA:\nWho knocks? Is it Velmora's groom?\n\nGROOM:\nVelmora",
        "The fair Ostrenne doth weep; weep not, Ostrenne.",
    )

    def __init__(self, config: LanguageConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        table = load_tinyshakespeare(data_dir)
        self.notes["data"] = table.note
        self.read(
            {
                "train": table.parts["train"][0]["text"],
                "validation": table.parts["validation"][0]["text"],
                "test": table.parts["test"][0]["text"],
            }
        )
