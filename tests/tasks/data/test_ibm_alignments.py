"""Word links by IBM models of NLTK."""

import importlib.metadata
import os
import subprocess
import sys

import pytest

from bench.api.errors import DataUnavailable
from tasks.data import ibm_alignments
from tasks.data.ibm_alignments import best_links, ibm_links

HOUSE, BIG, RED, THE = 10, 11, 12, 13
DAS, HAUS, GROSS, ROT = 20, 21, 22, 23
PAIRS = [
    ([DAS, HAUS], [THE, HOUSE]),
    ([DAS, GROSS, HAUS], [THE, BIG, HOUSE]),
    ([DAS, ROT, HAUS], [THE, RED, HOUSE]),
    ([GROSS], [BIG]),
    ([ROT], [RED]),
    ([HAUS], [HOUSE]),
]


@pytest.mark.parametrize("model", ["ibm1", "ibm2"])
def test_words_that_come_together_are_linked_also_in_other_pairs(model, tmp_path):
    asked = [*PAIRS, ([DAS, HAUS, ROT], [HOUSE, RED])]
    found = ibm_links(PAIRS, asked, model=model, rounds=8, cache_dir=tmp_path)
    assert found[1] == [0, 1, 2]
    assert found[2] == [0, 1, 2]
    assert found[-1] == [1, 2], "a pair of lengths that training has not seen"


class Table:
    translation_table = {5: {None: 0.1, 7: 0.4, 8: 0.4}, 6: {None: 0.9, 7: 0.1, 8: 0.2}}
    alignment_table = {
        0: {1: {2: {2: 0.1}}, 2: {2: {2: 0.5}}},
        1: {1: {2: {2: 0.3}}, 2: {2: {2: 0.3}}},
        2: {1: {2: {2: 0.6}}, 2: {2: {2: 0.2}}},
    }


def test_a_link_is_the_largest_product_of_translation_and_place():
    assert best_links(Table(), [7, 8], [5, 6], positions=True) == [1, -1]
    # without places the two translations of the first word tie
    assert best_links(Table(), [7, 8], [5, 6], positions=False) == [0, -1]


def test_links_are_kept_and_read_again(tmp_path, monkeypatch):
    first = ibm_links(PAIRS, PAIRS, model="ibm2", rounds=2, cache_dir=tmp_path)
    (kept,) = (tmp_path / "alignments").iterdir()
    monkeypatch.setattr(ibm_alignments, "_linked", lambda *_: pytest.fail("estimated again"))
    assert ibm_links(PAIRS, PAIRS, model="ibm2", rounds=2, cache_dir=tmp_path) == first
    monkeypatch.undo()
    ibm_links(PAIRS, PAIRS, model="ibm2", rounds=3, cache_dir=tmp_path)
    assert len(list((tmp_path / "alignments").iterdir())) == 2, "other rounds, another file"
    assert kept.exists()


@pytest.mark.slow
def test_every_process_finds_the_same_links():
    code = (
        "import sys; from tasks.data.ibm_alignments import _linked\n"
        "pairs = [([(7 * n + k) % 11 for k in range(4)], [(5 * n + k) % 13 for k in range(5)])"
        " for n in range(40)]\n"
        "print(_linked(pairs, pairs, 'ibm2', 3))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_without_nltk_a_sentence_says_what_to_install(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(ibm_alignments, "version", missing)
    with pytest.raises(DataUnavailable, match=r"install 'attention-bench\[alignments\]'"):
        ibm_links(PAIRS, PAIRS, model="ibm2", rounds=1)
