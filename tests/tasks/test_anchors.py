"""Published numbers stand beside the runs that they are about, on the scale of their metric."""

import re
from dataclasses import fields, replace

import pytest

from bench.api import registry
from bench.api.registry import build_config
from bench.api.selector import parse
from bench.api.task import Anchor
from bench.catalog import task_facts
from bench.plan import sized_task
from bench.task_pages import facts_of
from tasks.babi import SUBSETS

ANCHORED = {
    name: entry.target.anchors
    for name, entry in registry.entries("task").items()
    if entry.target.anchors
}
EVERY = [(name, anchor) for name, anchors in ANCHORED.items() for anchor in anchors]
SCALES = {
    "fraction": (0.0, 1.0),
    "F1": (0.0, 1.0),
    "correlation": (-1.0, 1.0),
    "sacreBLEU points": (1.0, 100.0),  # a share of one was not multiplied
    "bits per character": (0.5, 8.0),
    "perplexity": (1.0, 1000.0),
}

ids = [f"{name}-{anchor.metric}-{anchor.value:g}" for name, anchor in EVERY]
every_anchor = pytest.mark.parametrize(("name", "anchor"), EVERY, ids=ids)


@every_anchor
def test_an_anchor_gives_a_metric_of_its_task_on_its_scale(name: str, anchor: Anchor) -> None:
    target = registry.entry("task", name).target
    metrics = {metric.name: metric for metric in target.metrics}
    assert anchor.metric in metrics
    assert metrics[anchor.metric].group == "quality"
    unit = metrics[anchor.metric].unit
    (scale,) = (scale for begin, scale in SCALES.items() if unit.startswith(begin))
    assert scale[0] <= anchor.value <= scale[1]


@every_anchor
def test_an_anchor_has_a_source_and_says_how_it_differs(name: str, anchor: Anchor) -> None:
    assert re.fullmatch(r"https://\S+", anchor.url)
    assert re.search(r"\b(19|20)\d\d\b", anchor.text), "authors and year"
    assert anchor.what
    assert anchor.where
    assert anchor.differs.endswith(".")
    assert len(anchor.differs.split()) > 5


@every_anchor
def test_an_anchor_is_about_options_that_its_task_has(name: str, anchor: Anchor) -> None:
    if not anchor.about:
        return
    asked, entry = parse(anchor.about), registry.entry("task", name)
    assert asked.name == name
    assert asked.show() == anchor.about, "in canonical form"
    assert asked.options.keys() <= {field.name for field in fields(entry.config)}
    chosen = registry.canonical("task", asked)  # unknown options and values raise
    build_config(entry.config, chosen.options, name)
    assert anchor.holds_for(chosen)


IN_NO_PRESET = {"wikitext2_mini"}
"""Published numbers are of the whole set, which no mirror has, so that no preset asks for it."""


@pytest.mark.parametrize("name", sorted(ANCHORED.keys() - IN_NO_PRESET))
def test_some_anchor_stands_beside_the_quick_or_the_standard_size(name: str) -> None:
    shown = [
        task_facts(sized_task(name, preset)[0].show(), name)["anchors"]
        for preset in ("quick", "standard")
    ]
    assert any(shown)


def test_no_anchor_is_given_twice() -> None:
    for name, anchors in ANCHORED.items():
        assert len(set(anchors)) == len(anchors), name
        told = [(anchor.what, anchor.metric, anchor.about) for anchor in anchors]
        assert len(set(told)) == len(told), name


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ("word_alignment[pair=ja_en]", "word_alignment[pair=ja_en]"),
        ("word_alignment[pair=de_en]", "word_alignment[pair=de_en]"),
        ("word_alignment[pair=en_cs]", None),
        ("inflection[size=low]", "inflection[language=german,size=low]"),
        ("inflection[language=finnish]", None),
        ("translation[source=en,target=de]", None),
        ("translation[lowercase=false]", None),
        ("babi[number=1]", None),
        ("babi[train=1000]", "babi[number=0,subset=all,train=1000]"),
        ("babi[subset=short,train=1000]", "babi[number=0,subset=short,train=1000]"),
        ("adding[operation=multiply]", None),
        ("wikitext2_mini", None),
        ("wikitext2_mini[full=true]", None),
        ("wikitext2_mini[full=true,vocab=40000]", "wikitext2_mini[full=true,vocab=40000]"),
    ],
)
def test_numbers_of_other_options_do_not_stand_beside_a_run(asked: str, begins: str | None) -> None:
    chosen = registry.canonical("task", parse(asked))
    shown = task_facts(chosen.show(), asked)["anchors"]
    assert {anchor["about"] for anchor in shown} == ({begins} if begins else set())


def test_the_page_of_tasks_tells_the_options() -> None:
    told = "\n".join(facts_of(registry.entry("task", "word_alignment")))
    assert "**Published.** For `word_alignment[pair=ja_en]`: fast_align" in told
    told = "\n".join(facts_of(registry.entry("task", "snli")))
    assert "**Published.** decomposable" in told


def test_a_number_about_nothing_in_particular_stands_beside_every_run() -> None:
    anchor = replace(EVERY[0][1], about="")
    assert anchor.holds_for(parse("anything[size=3]"))
    assert not replace(anchor, about="other[size=3]").holds_for(parse("anything[size=3]"))


def test_the_error_of_the_memory_network_is_the_mean_of_its_published_tasks() -> None:
    # in percent, the column of three hops with linear start and noise, learned jointly
    published = [0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5]
    published += [0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0]
    some, every = (one for one in ANCHORED["babi"] if "memory network" in one.what)
    short = [published[number - 1] for number in SUBSETS["short"]]
    assert some.value == pytest.approx(sum(short) / len(short) / 100, abs=5e-5)
    assert every.value == pytest.approx(sum(published) / len(published) / 100, abs=5e-4)
