"""Captions read by an online encoder, from two languages, and what is said again or left out."""

import gzip
import os
import random
import runpy
from pathlib import Path

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.data.multi30k import LANGUAGES
from tasks.metrics.translation_scores import LENGTHS, bleu_by_length, repeats_and_omissions
from tasks.translation.incremental_translation import (
    IncrementalTranslation,
    IncrementalTranslationConfig,
)
from tasks.translation.multi30k_task import SHOWN
from tasks.translation.multi_source_translation import (
    MultiSourceTranslation,
    MultiSourceTranslationConfig,
)
from tasks.translation.translation import Translation, TranslationConfig

REAL = os.environ.get("BENCH_DATA_DIR", "")
SMALL = Path(__file__).parents[1] / "small_data" / "multi30k.py"


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)


@pytest.fixture
def directory(tmp_path) -> Path:
    runpy.run_path(str(SMALL))["write"](tmp_path / "data", random.Random(2))
    return tmp_path / "data"


def multi(directory: Path, **options) -> MultiSourceTranslation:
    return MultiSourceTranslation(MultiSourceTranslationConfig(**options), 0, directory)


def perfect(batch, **more) -> Answer:
    said = tuple(
        tuple(row[mask][:-1].tolist()) for row, mask in zip(batch.targets, batch.mask, strict=True)
    )
    return Answer(batch, nll=torch.zeros(batch.mask.shape), generated=said, **more)


def test_each_pair_of_languages_loads_and_shows_captions_of_our_own(directory):
    for source in LANGUAGES:
        for target in set(LANGUAGES) - {source}:
            config = TranslationConfig(source=source, target=target, vocab=60)
            shown = Translation(config, 0, directory).examples()
            assert set(shown.names) == set(SHOWN[source])
            assert set(shown.references) == set(SHOWN[target])


def test_what_is_said_again_or_left_out_is_counted_against_the_reference():
    same = repeats_and_omissions(["a dog and a dog"], ["a dog and a dog"])
    assert [one.value for one in same] == [0, 0, 1]
    again, missing, length = repeats_and_omissions(["a b a b a b"], ["a b c"])
    assert again.value == pytest.approx(3 / 5), "two of a-b and one of b-a were said before"
    assert missing.value == pytest.approx(1 / 3)
    assert length.value == 2
    assert [one.value for one in repeats_and_omissions([""], ["a b"])] == [0, 1, 0]


def test_bleu_is_given_for_short_and_for_long_sources():
    sources = ["a b", "a b c d e f g h i", "x " * 20]
    found = bleu_by_length(sources, sources, sources, lowercase=True)
    assert [one.x for one in found] == [LENGTHS[0], LENGTHS[1], LENGTHS[3]]
    assert found[1].value == pytest.approx(100)
    said = [*sources[:2], "y " * 20]
    apart = bleu_by_length(said, sources, sources, lowercase=True)
    assert apart[1].value == pytest.approx(100)
    assert apart[2].value == 0


def test_bleu_stands_at_its_average_lagging_where_attention_tells_it(directory):
    task = IncrementalTranslation(IncrementalTranslationConfig(vocab=60), 0, directory)
    batches = task.evaluation("test")
    silent = task.score("test", [perfect(batch) for batch in batches])
    assert not [s for s in silent if s.axis == "average_lagging"]
    told = [
        perfect(
            batch, read_shares=tuple((1.0,) * int(count) for count in batch.mask.sum(1).tolist())
        )
        for batch in batches
    ]
    found = task.score("test", told)
    (point,) = [s for s in found if s.axis == "average_lagging"]
    (lagging,) = [s.value for s in found if s.metric == "average_lagging"]
    assert point.x == lagging > 5, "who reads all before the first word lags by the whole source"


def test_two_languages_are_read_beside_each_other(directory):
    task = multi(directory, vocab=60)
    batch = next(task.training(4, torch.Generator().manual_seed(0)))
    assert len(batch.sources) == len(task.sizes.source_vocabs) == 2
    # the invented captions are the same in every language
    assert torch.equal(batch.sources[0].tokens, batch.sources[1].tokens)
    for name in ("first", "second"):
        assert len(multi(directory, vocab=60, read=name).evaluation("test")[0].sources) == 1


def test_each_source_is_read_from_the_file_of_its_language(directory):
    config = MultiSourceTranslationConfig()
    for path in (directory / "multi30k").glob(f"*.{config.second}.gz"):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        turned = "".join(f"{line[::-1]}\n" for line in lines)
        path.write_bytes(gzip.compress(turned.encode()))
    both, first, second = (
        multi(directory, vocab=60, read=name) for name in ("both", "first", "second")
    )
    read = [task.vocabularies[0].decode(task.pairs[0][0]) for task in (both, first, second)]
    assert read[0] == read[1] == both.corpus.train[config.first][0].lower()
    assert both.vocabularies[1].decode(both.pairs[0][1]) == read[2] == read[0][::-1]


def test_a_shuffled_second_source_is_that_of_another_example(directory):
    plain, moved = multi(directory, vocab=60), multi(directory, vocab=60, shuffle=True)
    assert all(one[0] == two[0] for one, two in zip(plain.pairs, moved.pairs, strict=True))
    assert all(one[2] == two[2] for one, two in zip(plain.pairs, moved.pairs, strict=True))
    assert not any(one[1] == two[1] for one, two in zip(plain.pairs, moved.pairs, strict=True))
    assert sorted(row[1] for row in plain.pairs) == sorted(row[1] for row in moved.pairs)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"second": "en"}, "three languages"),
        ({"shuffle": True, "read": "first"}, "use read=both"),
    ],
)
def test_options_that_make_no_sense_raise(options, says):
    with pytest.raises(InvalidConfig, match=says):
        MultiSourceTranslationConfig(**options)
    with pytest.raises(InvalidConfig, match="both 'de'"):
        IncrementalTranslationConfig(target="de")


@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory with Multi30k")
@pytest.mark.slow
def test_a_small_network_comes_closer_to_the_references_than_their_sources(monkeypatch):
    from bench.api.registry import DefaultTask
    from bench.api.resolve import resolve
    from bench.running.quality_cells import quality_cell
    from bench.running.request import Request
    from bench.training.quality import train_cell

    request = Request(preset="quick", training="adam[steps=300,evaluate_every=300]")
    default_task = DefaultTask(task="incremental_translation[test=100]")
    cell = quality_cell(request, resolve("scaled_dot"), default_task, 0).cell
    rows = train_cell(cell, data_dir=Path(REAL)).rows
    (bleu,) = [
        r.value
        for r in rows
        if r.metric == "bleu" and r.split == "test" and not (r.axis or r.baseline)
    ]
    config = IncrementalTranslationConfig(test=100)
    baselines = IncrementalTranslation(config, 0, Path(REAL)).baselines()
    assert bleu > baselines["copy the source"] + 3
