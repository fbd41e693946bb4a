"""The next character of a program: source code of Python's standard library.

No download is needed, for the code is that of the running Python; it differs between versions of
Python, and the report prints version and hash. Parts are split by module.
"""

from pathlib import Path

from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.data.stdlib_code import load_stdlib_code
from tasks.language_modeling.characters import CharacterModeling
from tasks.language_modeling.language_model import LanguageConfig
from tasks.modern import texts


@register(
    "task",
    "stdlib_code",
    config=LanguageConfig,
    citation=Citation(
        text="Allamanis & Sutton, 2013",
        url="https://homepages.inf.ed.ac.uk/csutton/publications/msr2013.pdf",
        where="motivation: likelihood of source code, projects apart",
    ),
)
class StdlibCode(CharacterModeling):
    """Characters of programs, bits per character.

    >>> task = StdlibCode(LanguageConfig(window=32, validate=1, test=1), seed=0)
    >>> batch = task.evaluation("test")[0]
    >>> bool((batch.inputs[:, 1:] == batch.targets[:, :-1]).all())
    True
    """

    pipeline_check = (
        "At the quick size interpolated trigrams are better than every network in every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="stdlib_code[window=64,validate=16,test=16,common=4]",
            backbone="transformer_decoder[width=32,layers=1,heads=2]",
            protocol="adam[steps=20,batch=8,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="stdlib_code",
            backbone="transformer_decoder[width=64,layers=2,heads=2]",
            protocol="adam[lr=0.005,steps=500,batch=4,evaluate_every=250]",
            seconds=5.5,
        ),
        "standard": TaskPreset(
            options="stdlib_code[window=128,validate=200,test=400]",
            backbone="transformer_decoder[width=128,layers=3]",
            protocol="adam[lr=0.002,steps=4000,batch=32,evaluate_every=400]",
            seconds=1200.0,
        ),
        "modern": TaskPreset(
            options="stdlib_code",
            backbone="transformer_decoder[width=64,layers=2,heads=4]",
            protocol="adam[lr=0.003,steps=500,batch=4,evaluate_every=250]",
            seconds=8.0,
            comparison=texts("width=64,layers=2,heads=4"),
        ),
    }
    data_license = License("PSF License 2.0, Python's standard library", redistributable=True)
    writes = (
        "def brindle(mossrow):\n    for fern in mossrow:\n        brindle(fern)",
        "self.quarrow = quarrow\nreturn self.quarrow",
    )

    def __init__(self, config: LanguageConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        code = load_stdlib_code()
        self.notes["data"] = code.note
        self.read(
            {
                "train": code.parts["train"],
                "validation": code.parts["validation"],
                "test": code.parts["test"],
            }
        )
