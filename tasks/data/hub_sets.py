"""Data sets of the Hugging Face hub that can be fetched, and what must come back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.api.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """What may be fetched, and what must come back."""

    dataset: str
    revision: str
    splits: Mapping[str, int | None]
    """Split -> number of rows; None where it is not known, and any number but zero is good."""
    fields: Mapping[str, type]
    """Field -> type of its values. `bytes` is sound: the file as it was stored, never decoded."""
    license: str
    license_open: bool
    config: str = ""
    """Subset of the data set, where it has several."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Split -> file of the repository, where the splits are not those that its card names."""
    blank: tuple[str, ...] = ()
    """Fields that may be an empty text."""
    differs: str = ""
    """How rows differ from those of the data directory; part of the note of every task that uses
    them."""
    may_lack: str = ""
    """File that a folder of the data directory may lack; options that need it read this copy."""

    @property
    def pinned(self) -> bool:
        """Whether `revision` is one commit, not a branch that moves."""
        return len(self.revision) == 40 and set(self.revision) <= set("0123456789abcdef")

    @property
    def size(self) -> str:
        """Rows by split, in words; many splits together.

        >>> FETCHABLE["imdb"].size
        '25,000 train, 25,000 test'
        """
        counts = list(self.splits.values())
        if len(counts) > 4:
            return f"{sum(count or 0 for count in counts):,} in {len(counts)} files"
        told = ((split, "?" if n is None else f"{n:,}") for split, n in self.splits.items())
        return ", ".join(f"{count} {split}" for split, count in told)


BABI_NUMBERS = range(1, 21)
_BABI_STORIES = {15: 250, 17: 125, 18: 199, 20: 93} | dict.fromkeys((4, 16, 19), 1000)
_BABI_TRAIN = {18: 1978, 20: 933}

# Unpinned entries have no commit that was checked. Counts and fields were read on pages of the hub,
# in public code that uses the sets, or counted in the data directory where it has the same files.
FETCHABLE: dict[str, HubDataset] = {
    "aeslc": HubDataset(
        dataset="Yale-LILY/aeslc",
        revision="main",
        splits={"train": 14436, "validation": 1960, "test": 1906},
        fields={"email_body": str, "subject_line": str},
        license="CC BY-NC-SA 4.0",
        license_open=False,
        differs="one subject a mail; the local copy has three more in validation and test",
    ),
    "ag_news": HubDataset(
        dataset="fancyzhx/ag_news",
        revision="eb185aade064a813bc0b7f42de02595523103ca4",
        splits={"train": 120000, "test": 7600},
        fields={"text": str, "label": int},
        license="research and non-commercial use",
        license_open=False,
        differs="titles before the descriptions, and all 120000 training texts; the local copy has "
        "10001 of these, without titles",
    ),
    "babi": HubDataset(
        dataset="facebook/babi_qa",
        # The hub's own conversion of a set that is a script; no commit of it was checked.
        revision="refs/convert/parquet",
        # A row is a story with all its questions.
        splits={
            f"qa{number}_{part}": _BABI_TRAIN.get(number, 10 * _BABI_STORIES.get(number, 200))
            if part == "train"
            else _BABI_STORIES.get(number, 200)
            for number in BABI_NUMBERS
            for part in ("train", "test")
        },
        fields={"story": dict},
        files={
            f"qa{number}_{part}": f"en-10k-qa{number}/{part}/0000.parquet"
            for number in BABI_NUMBERS
            for part in ("train", "test")
        },
        license="CC BY 3.0",
        license_open=True,
        differs="the same questions, and those of task 3's training part",
    ),
    "django": HubDataset(
        dataset="AhmedSSoliman/DJANGO",
        # The last commit that changed data; later ones edit the README.
        revision="a4d45b5ba103ac4d3fd5ac40e7706200eb004372",
        splits={"train": 16000, "validation": 1000, "test": 1805},
        fields={"nl": str, "code": str},
        license="MIT (the lines; the copy states none)",
        license_open=True,
        differs="the same 18805 lines in parts that were drawn at random; locally the parts "
        "of the literature, which follow the order of the lines",
    ),
    "fsdd": HubDataset(
        dataset="mteb/free-spoken-digit-dataset",
        revision="c34455c99604d35cb8d27328c267be1478efc903",
        splits={"train": None, "test": None},
        fields={"audio": bytes, "label": int},
        license="CC BY-SA 4.0",
        license_open=True,
        differs="the same recordings, in the data directory's parts",
    ),
    "imdb": HubDataset(
        dataset="stanfordnlp/imdb",
        revision="e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
        splits={"train": 25000, "test": 25000},
        fields={"text": str, "label": int},
        license="no license stated",
        license_open=False,
        differs="all 25000 training and 25000 test reviews, shuffled; locally one third and a "
        "fifth of them",
    ),
    "multi30k": HubDataset(
        dataset="bentrevett/multi30k",
        # The last commit that changed data; later ones edit the README.
        revision="37e118600232bb5298ca011a8a7e7a44e863c36a",
        splits={"train": 29000, "validation": 1014, "test": 1000},
        fields={"de": str, "en": str},
        license="no license stated; images: Flickr terms, non-commercial research and education",
        license_open=False,
    ),
    "snli": HubDataset(
        dataset="stanfordnlp/snli",
        revision="cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
        config="plain_text",
        splits={"train": 550152, "validation": 10000, "test": 10000},
        fields={"premise": str, "hypothesis": str, "label": int},
        blank=("premise", "hypothesis"),
        license="CC BY-SA 4.0",
        license_open=True,
        differs="the whole training part and no revised pairs; locally 18000 training pairs "
        "and both sets of revised ones",
    ),
    "sst2_sentences": HubDataset(
        dataset="SetFit/sst2",
        revision="main",
        splits={"train": 6920, "validation": 872, "test": 1821},
        fields={"text": str, "label": int},
        license="no license stated",
        license_open=False,
    ),
    "stsb": HubDataset(
        dataset="sentence-transformers/stsb",
        revision="ab7a5ac0e35aa22088bdcf23e7fd99b220e53308",
        splits={"train": 5749, "validation": 1500, "test": 1379},
        fields={"sentence1": str, "sentence2": str, "score": float},
        license="no license stated on the card; sentences have the terms of their sources",
        license_open=False,
    ),
    "tinyshakespeare": HubDataset(
        dataset="Trelis/tiny-shakespeare",
        revision="2225a5674b252d623cfb151ef099d179629c2f49",
        splits={"train": 40000},
        fields={"text": str},
        # Its tables hold pieces that overlap; beside them lies the text itself.
        files={"train": "input.txt"},
        blank=("text",),
        license="public domain (the plays)",
        license_open=True,
        differs="the same text and parts",
    ),
    "wikitext2": HubDataset(
        dataset="Salesforce/wikitext",
        revision="b08601e04326c79dfdd32d625aee71d232d685c3",
        config="wikitext-2-v1",
        splits={"train": 36718, "validation": 3760, "test": 4358},
        fields={"text": str},
        blank=("text",),
        license="CC BY-SA 3.0",
        license_open=True,
        differs="the same validation and test, and the training part",
        may_lack="train.txt.gz",
    ),
}


def fetch_command(name: str) -> str:
    """Return the command that fetches `name`, for messages."""
    return f"python -m bench data fetch {name}"


def find_data_set(name: str) -> HubDataset:
    """Look up a data set that can be fetched.

    Raises:
        UnknownName: There is none of this name.
    """
    if name not in FETCHABLE:
        raise UnknownName.among("data set to fetch", name, FETCHABLE)
    return FETCHABLE[name]
