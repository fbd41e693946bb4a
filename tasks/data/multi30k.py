"""Multi30k: image captions in English, German, French and Czech (Elliott et al., 2016).

https://aclanthology.org/W16-3210; task 1, test set 2016. The texts carry no open license:
sentences may be used for research and are never committed with a report.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.api.data_folder import DATA_VARIABLE
from bench.api.errors import DataUnavailable, InvalidConfig, UnknownName
from tasks.data.corpus import Lines, Origin, ParallelCorpus, Part
from tasks.data.files import read_parallel
from tasks.data.hub_copies import HubCopy, read_copy
from tasks.data.hub_sets import FETCHABLE
from tasks.data.paths import not_here, place_of

LANGUAGES = ("cs", "de", "en", "fr")
_LOCAL_FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}


def load_multi30k(
    languages: Sequence[str] = ("de", "en"),
    data_dir: Path | None = None,
    *,
    cache_dir: Path | None = None,
) -> ParallelCorpus:
    """Load Multi30k from the directory, or else from the fetched hub copy; nothing is downloaded.

    Args:
        languages: Which of `LANGUAGES`; the hub copy has German and English alone.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: Neither is on this machine; the message has the command that fetches it.
        DataDamaged: A file is there and is not whole.
    """
    asked = _checked(languages)
    place = place_of("multi30k", data_dir, cache_dir=cache_dir)
    if place is not None and place.origin == "directory":
        return _from_directory(place.path, asked)
    copy = read_copy("multi30k", cache_dir) if place is not None else None
    if copy is None:
        raise not_here("multi30k", data_dir, cache_dir=cache_dir)
    return _from_hub_copy(asked, copy)


def _checked(languages: Sequence[str]) -> tuple[str, ...]:
    for language in languages:
        if language not in LANGUAGES:
            raise UnknownName.among("language of Multi30k", language, LANGUAGES)
    if not languages or len(set(languages)) < len(languages):
        raise InvalidConfig(
            f"multi30k: languages must be different and at least one, got {list(languages)}"
        )
    return tuple(languages)


def _from_directory(folder: Path, languages: tuple[str, ...]) -> ParallelCorpus:
    parts: dict[str, Part] = {}
    hashes: dict[str, str] = {}
    for part, stem in _LOCAL_FILES.items():
        files = read_parallel({name: folder / f"{stem}.{name}.gz" for name in languages})
        parts[part] = {name: file.lines for name, file in files.items()}
        hashes |= {file.path.name: file.sha256 for file in files.values()}
    return _corpus(languages, parts, origin="directory", files=hashes)


def _from_hub_copy(languages: tuple[str, ...], copy: HubCopy) -> ParallelCorpus:
    entry = FETCHABLE["multi30k"]
    absent = [language for language in languages if language not in entry.fields]
    if absent:
        raise DataUnavailable(
            f"{entry.dataset} has no {absent[0]!r}, only {', '.join(entry.fields)}; name a "
            f"directory with --data-dir or {DATA_VARIABLE}."
        )

    def lines(part: str, language: str) -> Lines:
        return tuple(row[language] for row in copy.splits[part])

    parts = {part: {name: lines(part, name) for name in languages} for part in _LOCAL_FILES}
    return _corpus(languages, parts, origin="hub", files=copy.files, revision=copy.revision)


def _corpus(
    languages: tuple[str, ...],
    parts: Mapping[str, Part],
    *,
    origin: Origin,
    files: Mapping[str, str],
    revision: str = "",
) -> ParallelCorpus:
    entry = FETCHABLE["multi30k"]
    return ParallelCorpus(
        name="multi30k",
        languages=languages,
        train=parts["train"],
        validation=parts["validation"],
        test=parts["test"],
        license=entry.license,
        license_open=entry.license_open,
        origin=origin,
        files=files,
        revision=revision,
    )
