"""Captions with links of a statistical aligner."""

import random
import runpy
from pathlib import Path

import pytest
import torch

from bench.api.errors import InvalidConfig
from tasks.translation.aligned_translation import AlignedTranslation, AlignedTranslationConfig

SMALL = {"train": 30, "validate": 8, "test": 8, "vocab": 500, "rounds": 2}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    writer = Path(__file__).parent.parent / "small_data" / "multi30k.py"
    runpy.run_path(str(writer))["write"](folder, random.Random(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return AlignedTranslation(AlignedTranslationConfig(**SMALL), 0, folder)


def test_every_target_has_one_link_or_none_inside_its_own_row(task):
    stream = task.training(6, torch.Generator().manual_seed(0))
    linked = 0
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        sums = batch.gold.sum(-1)
        assert batch.gold.shape == (*batch.targets.shape, batch.sources[0].tokens.shape[1])
        assert set(sums.unique().tolist()) <= {0.0, 1.0}
        assert not sums[~batch.mask].any()
        length = batch.mask.sum(1)
        assert not sums.gather(1, length[:, None] - 1).any(), "ends are not linked"
        mask = batch.sources[0].mask
        assert mask is None or not batch.gold.transpose(1, 2)[~mask].any()
        linked += int(sums.sum())
    assert linked > 0


def test_sentences_that_are_copies_are_linked_mostly_word_by_word(task):
    right = total = 0
    for batch in task.evaluation("test"):
        found = batch.gold.argmax(-1)
        same = batch.sources[0].tokens.gather(1, found) == batch.targets
        linked = batch.gold.sum(-1) > 0
        right, total = right + int((same & linked).sum()), total + int(linked.sum())
    assert right / total > 0.5


def test_links_come_with_a_note_of_where_they_are_from(task):
    assert task.notes["alignments"] == "IBM model 2 of NLTK, 2 rounds over 30 training pairs"


def test_no_rounds_are_refused():
    with pytest.raises(InvalidConfig, match="rounds must be at least 1, got 0"):
        AlignedTranslationConfig(rounds=0)
