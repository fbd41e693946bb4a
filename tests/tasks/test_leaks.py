"""Nothing of the test stands in training: sets whose own tests do not look across the parts."""

import itertools
import os
import random
import runpy
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.selector import parse
from tasks.data.multi30k import LANGUAGES, load_multi30k
from tasks.data.word_alignment import load_word_alignment

REAL = os.environ.get("BENCH_DATA_DIR", "")
SMALL = Path(__file__).parent / "small_data"
on_real_data = pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory of real data")
CAPTIONS = ("translation", "incremental_translation", "multi_source_translation")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))


def rows_of(part, languages) -> set[tuple[str, ...]]:
    """Sentences that say the same, whatever their case."""
    columns = ([line.lower() for line in part[language]] for language in languages)
    return set(zip(*columns, strict=True))


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions_are_trained_on_validated_and_tested_in_parts_of_their_own(name, tmp_path):
    runpy.run_path(str(SMALL / "multi30k.py"))["write"](tmp_path, random.Random(0))
    task = registry.make("task", parse(f"{name}[vocab=60]"), 0, tmp_path)
    asked = (task.languages[0], task.target)
    parts = {"validation": task.corpus.validation, "test": task.corpus.test}
    train = rows_of(task.corpus.train, asked)
    for split, part in parts.items():
        batches = task.evaluation(split)
        said = {
            (name.lower(), reference.lower())
            for batch in batches
            for name, reference in zip(batch.names, batch.references, strict=True)
        }
        assert said == rows_of(part, asked)
        assert not said & train
    assert task.pairs == task._encode(task.corpus.train, 0)


@on_real_data
@pytest.mark.slow
def test_parts_of_the_captions_share_no_sentence_pair_with_the_test():
    corpus = load_multi30k(LANGUAGES, Path(REAL))
    found = {}
    for languages in itertools.combinations(LANGUAGES, 2):
        parts = (corpus.train, corpus.validation, corpus.test)
        train, validation, test = (rows_of(part, languages) for part in parts)
        assert not train & test, languages
        assert not validation & test, languages
        found[languages] = len(train & validation)
    # one caption of validation says what one of training says; scores of the test do not know it
    assert sum(found.values()) == 2
    assert {pair for pair, count in found.items() if count} == {("cs", "de"), ("en", "fr")}
    # nor does a sentence of the test stand alone in training, whatever it is paired with
    for language in LANGUAGES:
        assert not rows_of(corpus.train, [language]) & rows_of(corpus.test, [language])


@on_real_data
@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en_cs", "en_fr", "ja_en", "de_en"])
def test_parts_of_aligned_sentences_share_no_pair(pair):
    parts = load_word_alignment(pair, Path(REAL)).parts
    pairs = {
        part: {(*row["source"], "|", *row["target"]) for row in parts[part]}
        for part in ("train", "validation", "test")
    }
    assert not pairs["test"] & pairs["train"]
    assert not pairs["test"] & pairs["validation"]
