"""Caption translation on a few invented sentences, and on the real ones where they are."""

import gzip
import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import DataUnavailable, InvalidConfig
from tasks.translation.translation import Translation, TranslationConfig

BOS, EOS = 1, 2
REAL = os.environ.get("BENCH_DATA_DIR", "")

WHO = [("Der Drache", "The dragon"), ("Die Hexe", "The witch"), ("Das Gespenst", "The ghost")]
WHO += [("Ein Zwerg", "A dwarf"), ("Eine Elfe", "An elf"), ("Ein Troll", "A troll")]
DOES = [("zählt", "counts"), ("poliert", "polishes"), ("versteckt", "hides")]
DOES += [("vergisst", "forgets"), ("sortiert heimlich", "secretly sorts")]
WHAT = [("sieben Monde", "seven moons"), ("den gläsernen Turm", "the glass tower")]
WHAT += [("alte Rätsel im Keller", "old riddles in the cellar")]
SENTENCES = [
    (f"{a} {b} {c}.", f"{x} {y} {z}.")
    for (a, x), (b, y), (c, z) in itertools.product(WHO, DOES, WHAT)
]
"""Ninety sentences that no caption of a photograph says."""


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)


@pytest.fixture
def directory(tmp_path) -> Path:
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    order = torch.randperm(90, generator=torch.Generator().manual_seed(0)).tolist()
    mixed = [SENTENCES[index] for index in order]
    parts = {"train": mixed[:60], "val": mixed[60:72], "test_2016_flickr": mixed[72:]}
    for stem, pairs in parts.items():
        for at, language in enumerate(("de", "en")):
            text = "".join(f"{pair[at]}\n" for pair in pairs)
            (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return folder.parent


def make(directory: Path, **options) -> Translation:
    return Translation(TranslationConfig(**{"vocab": 120, **options}), 0, directory)


def perfect(batch) -> Answer:
    """The reference itself, as greedy output."""
    said = tuple(
        tuple(row[mask][:-1].tolist()) for row, mask in zip(batch.targets, batch.mask, strict=True)
    )
    return Answer(batch, nll=torch.where(batch.mask, 0.5, 0.0), generated=said)


def plain(found) -> dict[str, float]:
    return {s.metric: s.value for s in found}


def test_it_loads_and_says_where_the_data_came_from(directory):
    task = make(directory)
    assert len(task.pairs) == 60
    assert task.source_words.size <= 120
    assert task.sizes.source_vocabs == (task.source_words.size,)
    assert "multi30k from the directory" in task.notes["data"]
    assert task.notes["data"].count(".gz ") == 6
    assert len(make(directory, train=7).pairs) == 7


def test_training_batches_are_whole_epochs_of_shifted_and_masked_pairs(directory):
    task = make(directory)
    stream = task.training(8, torch.Generator().manual_seed(0))
    seen = []
    for batch in itertools.islice(stream, 8):
        assert (batch.inputs[:, 0] == BOS).all()
        assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
        real = batch.sources[0].mask
        for row, source in enumerate(batch.sources[0].tokens):
            kept = source if real is None else source[real[row]]
            target = batch.targets[row][batch.mask[row]]
            assert kept[-1] == target[-1] == EOS
            assert not batch.targets[row][~batch.mask[row]].any()
            seen.append((kept.tolist(), target.tolist()))
    assert sorted(seen) == sorted((list(s), list(t)) for s, t in task.pairs), "an epoch is all"
    assert len(seen) == 60


def test_evaluation_keeps_references_beside_their_sentences(directory):
    task = make(directory, validate=9)
    for split, count in (("validation", 9), ("test", 18)):
        batches = task.evaluation(split)
        assert sum(len(batch.targets) for batch in batches) == count
        assert task.evaluation(split) is batches
        known = dict(SENTENCES)
        for batch in batches:
            lengths = [int(row.argmin()) or len(row) for row in batch.sources[0].tokens]
            assert lengths == sorted(lengths)
            for row, (name, reference) in enumerate(
                zip(batch.names, batch.references, strict=True)
            ):
                assert known[name] == reference
                source = batch.sources[0].tokens[row].tolist()
                assert task.source_words.decode(source) == name.lower()
                assert task.target_words.decode(batch.targets[row].tolist()) == reference.lower()


def test_a_perfect_output_has_bleu_and_chrf_of_100_and_signatures(directory):
    task = make(directory)
    found = plain(task.score("test", [perfect(batch) for batch in task.evaluation("test")]))
    assert found["bleu"] == pytest.approx(100)
    assert found["chrf"] == pytest.approx(100), "references are lower-cased for chrF too"
    assert found["nll_nats_per_token"] == pytest.approx(0.5)
    assert "tok:13a" in task.notes["bleu"]
    assert "case:lc" in task.notes["bleu"]
    assert "nc:6" in task.notes["chrf"]
    assert all("version:" in task.notes[name] for name in ("bleu", "chrf"))


def test_likelihood_is_of_a_token_whatever_the_length_of_its_sentence(directory):
    task = make(directory)
    batches = list(task.evaluation("test"))
    costs = [torch.arange(b.mask.numel()).view(b.mask.shape) * b.mask / 7.0 for b in batches]
    answers = [
        replace(perfect(batch), nll=cost) for batch, cost in zip(batches, costs, strict=True)
    ]
    tokens = [float(c) for b, cost in zip(batches, costs, strict=True) for c in cost[b.mask]]
    found = plain(task.score("test", answers))["nll_nats_per_token"]
    assert found == pytest.approx(sum(tokens) / len(tokens))
    sentences = [
        float(row.sum() / m.sum())
        for b, c in zip(batches, costs, strict=True)
        for row, m in zip(c, b.mask, strict=True)
    ]
    assert found != pytest.approx(sum(sentences) / len(sentences), rel=1e-3)


def test_swapped_sentences_score_lower(directory):
    task = make(directory)
    right = [perfect(batch) for batch in task.evaluation("test")]
    moved = [replace(answer, generated=answer.generated[::-1]) for answer in right]
    assert plain(task.score("test", moved))["bleu"] < 90


def test_a_wrong_number_of_translations_raises(directory):
    task = make(directory)
    answers = [perfect(batch) for batch in task.evaluation("test")]
    short = replace(answers[0], generated=answers[0].generated[:-1])
    with pytest.raises(ValueError, match="17 translations for 18 references"):
        task.score("test", [short, *answers[1:]])
    with pytest.raises(ValueError, match="0 translations for 18 references"):
        task.score("test", [replace(answer, generated=None) for answer in answers])


def test_samples_show_texts_from_short_to_long(directory):
    task = make(directory)
    shown = task.samples([perfect(batch) for batch in task.evaluation("test")], 4)
    assert len(shown) == 4
    assert all(sample.output == sample.reference.lower() for sample in shown)
    assert (shown[0].source, shown[0].reference) in SENTENCES
    assert len(shown[0].source) < len(shown[-1].source)


def test_tokens_are_subwords_in_the_language_of_their_side(directory):
    task = make(directory)
    ids = task.source_words.encode_lines(["sieben monde"], eos=True)[0]
    names = task.tokens(ids, source=True)
    assert names[-1] == "</s>"
    assert "".join(names[:-1]).replace(" ", "").replace("▁", "") == "siebenmonde"
    assert all(names)


def test_missing_data_names_the_command_that_fetches_them(tmp_path):
    with pytest.raises(DataUnavailable, match="python -m bench data fetch multi30k"):
        Translation(TranslationConfig(), 0)
    with pytest.raises(DataUnavailable, match="python -m bench data fetch multi30k"):
        Translation(TranslationConfig(), 0, tmp_path)


def test_one_language_is_no_translation():
    with pytest.raises(InvalidConfig, match="both 'en'"):
        TranslationConfig(source="en", target="en")


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR is not set: the real directory is not here")
def test_the_real_directory_has_29000_pairs_and_none_of_the_sentences_above():
    task = Translation(TranslationConfig(validate=20, test=30), 0, Path(REAL))
    assert len(task.pairs) == 29000
    assert (task.source_words.size, task.target_words.size) == (3000, 3000)
    assert sum(len(batch.targets) for batch in task.evaluation("test")) == 30
    for part in (task.corpus.train, task.corpus.validation, task.corpus.test):
        assert not set(part["de"]) & {de for de, _ in SENTENCES}
        assert not set(part["en"]) & {en for _, en in SENTENCES}
