import re

import pytest

from reports.handbook import handbook, write_handbook
from results.store import NotARunFolder


@pytest.fixture(scope="module")
def text(demo, tmp_path_factory):
    out = tmp_path_factory.mktemp("docs")
    return write_handbook(demo, out).read_text(encoding="utf-8"), out


def _entry(text, name):
    return text.partition(f"### `{name}`")[2].partition("\n###")[0]


def test_every_variant_has_an_entry_with_formula_paper_and_deviations(text):
    names = re.findall(r"^### `(.+)`$", text[0], flags=re.MULTILINE)
    assert len(names) == len(set(names)) == 8
    assert set(names) >= {"bahdanau", "linear_attention", "mocha", "no_attention"}
    entry = _entry(text[0], "bahdanau")
    assert "v . tanh(W q + U k)" in entry
    assert "[Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473), section 3.1" in entry
    assert "**Deviations.** none" in entry


def test_scores_stand_beside_the_baseline_with_intervals_and_costs_are_ratios(text):
    entry = _entry(text[0], "linear_attention")
    assert re.search(r"`reversal`: 0\.\d+ ± 0\.\d+ .*`bahdanau` has 0\.\d+ ± ", entry)
    assert re.search(r"at length \d+: forward ×\d", entry)
    assert "no task of this bench yet" in _entry(text[0], "lstmn")


def test_pictures_are_drawn_from_artifacts_and_linked(text):
    written, out = text
    links = re.findall(r"\((weights/[^)]+)\)", written)
    assert "weights/bahdanau.svg" in links
    for link in links:
        assert (out / link).read_text(encoding="utf-8").startswith("<svg")


def test_a_picture_that_was_drawn_before_stays_when_artifacts_are_gone(text, demo):
    from reports.folder import read_folder

    assert "weights/old" not in text[0]
    assert "![Weights of lstmn" in handbook(read_folder(demo), {"lstmn"})


def test_a_folder_without_rows_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(NotARunFolder, match="ledger"):
        write_handbook(tmp_path, tmp_path / "docs")
