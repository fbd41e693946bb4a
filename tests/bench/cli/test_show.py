"""What is shown of one name: title, paper, options and their values."""

import json
import re
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name", ["bahdanau", "additive", "linear_attention", "translation", "luong"]
)
def test_a_name_is_shown_with_paper_options_and_file(call, name):
    code, out, _ = call("show", name)
    assert code == 0
    for capability in json.loads(call("show", name, "--json")[1]):
        assert capability["name"] == name
        assert Path(capability["file"]).is_file()
        assert all(
            address in out for address in re.findall(r"https?://[^, ]+", capability["paper"])
        )
        for option in capability["options"]:
            assert f"{option['option']} = {option['default']}" in out


def test_a_search_range_is_shown(call):
    shown = call("show", "additive")[1]
    assert "a study tries 8 to 1024 on a log scale" in shown
    assert "Range(" not in shown
    assert "a study tries one of gru, subtract" in call("show", "mi_coverage")[1]


def test_title_and_citation_are_shown_once(call):
    shown = call("show", "additive")[1]
    assert shown.count("https://arxiv.org/abs/1409.0473") == 1
    assert shown.count("Additive score") == 1
    # a title that says more than the page stays
    assert "exp(e / t) / sum exp(e / t)" in call("show", "softmax")[1]


def test_a_name_that_is_like_no_other_gets_no_hint(call):
    assert "did you mean" not in call("show", "nothing")[2]
    assert "did you mean 'additive'?" in call("show", "adittive")[2]


def test_a_preset_and_a_metric_lead_to_their_lists(call):
    for name, kind in (("quick", "preset"), ("sequence_accuracy", "metric")):
        code, out, err = call("show", name)
        assert (code, out) == (2, "")
        assert err == f"{name!r} is a {kind}; `bench list {kind}s` describes it.\n"


def test_no_source_ends_in_the_middle_of_a_phrase(call):
    assert "in whose spirit the rules are" in call("show", "transduction")[1]


def test_an_option_is_shown_with_what_it_means_and_what_it_may_be(call):
    shown = call("show", "transduction")[1]
    assert "rule = reverse (copy | reverse | swap | dict | svo | fert)" in shown
    assert "Longest source in training (symbols)." in shown
    for option in json.loads(call("show", "transduction", "--json")[1])[0]["options"]:
        assert option["meaning"], option["option"]


def test_options_of_training_are_shown(call):
    assert "Steps of linear warm-up." in call("show", "adam")[1]
    (shown,) = json.loads(call("show", "adam[lr=0.01]", "--json")[1])
    assert "lr=0.01" in shown["selector"]
    assert call("show", "adam[warmpu=3]")[2].startswith("no option of adam")


def test_options_choose_among_parts_of_one_name(call):
    (shown,) = json.loads(call("show", "streaming[window=28]", "--json")[1])
    assert shown["axis"] == "mask"
    code, _, error = call("show", "streaming[windw=28]")
    assert code == 2
    assert "did you mean 'window'" in error


def test_a_name_with_options_is_shown_written_out(call):
    (capability,) = json.loads(call("show", "additive[width=9]", "--json")[1])
    assert "score=additive[width=9]" in capability["selector"]
    assert call("show", "nosuch")[2].startswith("no variant, task or component named")
    assert "did you mean" not in call("show", "nosuch")[2]
