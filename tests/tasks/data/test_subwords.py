"""A vocabulary is a function of its training lines and settings, and text comes back exactly."""

import gc
import time

import pytest

from bench.api.errors import InvalidConfig
from tasks.data.corpus import ParallelCorpus
from tasks.data.multi30k import load_multi30k
from tasks.data.subwords import (
    BOS,
    EOS,
    PAD,
    UNK,
    SubwordConfig,
    Subwords,
    cached_subwords,
    corpus_subwords,
    train_subwords,
)

LINES = [
    f"{who} {what} near the {where}, slowly."
    for who in ("A dog", "Two men", "The Girl")
    for what in ("runs", "is walking", "waits  twice")
    for where in ("river", "große Straße", "station")
]
SMALL = SubwordConfig(size=120)


def corpus(test_line: str = "a zebra") -> ParallelCorpus:
    part = {"de": tuple(LINES), "en": tuple(reversed(LINES))}
    other = {"de": (test_line,), "en": (test_line,)}
    return ParallelCorpus(
        name="tiny",
        languages=("de", "en"),
        train=part,
        validation=other,
        test=other,
        license="",
        license_open=True,
        origin="directory",
        files={},
    )


def test_text_comes_back_lower_cased():
    subwords = train_subwords(LINES, SMALL)
    for line, ids in zip(LINES, subwords.encode_lines(LINES, bos=True, eos=True), strict=True):
        assert (ids[0], ids[-1]) == (BOS, EOS)
        assert subwords.decode([*ids, PAD, PAD, 50]) == line.lower()
    assert subwords.size <= SMALL.size


def test_case_is_kept_where_asked():
    subwords = train_subwords(LINES, SubwordConfig(size=120, lowercase=False))
    assert [subwords.decode(ids) for ids in subwords.encode_lines(LINES)] == LINES


def test_unknown_characters_are_marked_and_special_names_are_text():
    subwords = train_subwords(LINES, SMALL)
    (ids,) = subwords.encode_lines(["a 犬"])
    assert UNK in ids
    assert subwords.decode(ids) == "a <unk>"
    (ids,) = subwords.encode_lines(["<eos> <pad> <bos>"])
    assert not {PAD, BOS, EOS} & set(ids)
    assert subwords.encode_lines(["", "a"])[0] == []
    assert subwords.decode([]) == ""


def test_training_twice_gives_the_same_vocabulary():
    assert train_subwords(LINES, SMALL).to_json() == train_subwords(LINES, SMALL).to_json()


def test_the_cache_gives_the_same_ids_without_training(monkeypatch):
    first = cached_subwords(LINES, SMALL)
    monkeypatch.setattr("tokenizers.trainers.BpeTrainer", None)
    second = cached_subwords(LINES, SMALL)
    assert second.hash == first.hash
    assert second.encode_lines(["<eos>", *LINES]) == first.encode_lines(["<eos>", *LINES])


@pytest.mark.parametrize("content", [b"", b'{"identity"', b"[]", b'{"identity": "other"}'])
def test_a_damaged_cache_file_is_trained_anew(tmp_path, content):
    first = cached_subwords(LINES, SMALL, cache_dir=tmp_path)
    (path,) = (tmp_path / "subwords").iterdir()
    whole = path.read_bytes()
    path.write_bytes(content)
    assert cached_subwords(LINES, SMALL, cache_dir=tmp_path).hash == first.hash
    assert path.read_bytes() == whole
    assert [registered.name for registered in path.parent.iterdir()] == [path.name]


def test_the_vocabulary_depends_on_training_lines_and_settings_alone():
    reference = corpus_subwords(corpus(), ["de"], SMALL)
    assert corpus_subwords(corpus("an emu"), ["de"], SMALL).hash == reference.hash
    others = {
        corpus_subwords(corpus(), ["en"], SMALL).hash,
        corpus_subwords(corpus(), ["de", "en"], SMALL).hash,
        corpus_subwords(corpus(), ["de"], SubwordConfig(size=121)).hash,
        corpus_subwords(corpus(), ["de"], SubwordConfig(size=120, lowercase=False)).hash,
    }
    assert len(others | {reference.hash}) == 5


def test_a_size_without_room_for_subwords_is_refused():
    with pytest.raises(InvalidConfig, match="got 4"):
        SubwordConfig(size=4)


def test_multi30k_comes_back_and_loads_fast(real_directory, tmp_path):
    lines = load_multi30k(("en",), real_directory).train["en"]
    cached_subwords(lines, cache_dir=tmp_path)
    gc.collect()
    begun = time.process_time()
    subwords: Subwords = cached_subwords(lines, cache_dir=tmp_path)
    assert time.process_time() - begun < 0.5
    sample = list(lines[:1000])
    decoded = [subwords.decode(ids) for ids in subwords.encode_lines(sample)]
    assert decoded == [line.lower() for line in sample]
