"""Published numbers stand beside the runs that they are about, on the scale of their metric."""

import re
from dataclasses import fields, replace

import pytest

from bench.api import registry
from bench.api.comparison import PublishedResult
from bench.api.options import complete
from bench.api.registry import build_config
from bench.api.selector import parse
from bench.docs.tasks import facts_of
from bench.running.catalog import describe_task
from bench.running.quality_cells import sized_task
from tasks.reading.babi import SUBSETS

ANCHORED = {
    name: registered.target.published_results
    for name, registered in registry.registrations("task").items()
    if registered.target.published_results
}
EVERY = [
    (name, published_result)
    for name, published_results in ANCHORED.items()
    for published_result in published_results
]
SCALES = {
    "fraction": (0.0, 1.0),
    "F1": (0.0, 1.0),
    "correlation": (-1.0, 1.0),
    "sacreBLEU points": (1.0, 100.0),  # a share of one was not multiplied
    "bits per character": (0.5, 8.0),
    "perplexity": (1.0, 1000.0),
}

ids = [
    f"{name}-{published_result.metric}-{published_result.value:g}"
    for name, published_result in EVERY
]
every_published_result = pytest.mark.parametrize(("name", "published_result"), EVERY, ids=ids)


@every_published_result
def test_an_published_result_gives_a_metric_of_its_task_on_its_scale(
    name: str, published_result: PublishedResult
) -> None:
    target = registry.find("task", name).target
    metrics = {metric.name: metric for metric in target.metrics}
    assert published_result.metric in metrics
    assert metrics[published_result.metric].group == "quality"
    unit = metrics[published_result.metric].unit
    (scale,) = (scale for begin, scale in SCALES.items() if unit.startswith(begin))
    assert scale[0] <= published_result.value <= scale[1]


@every_published_result
def test_an_published_result_has_a_source_and_says_how_it_differs(
    name: str, published_result: PublishedResult
) -> None:
    assert re.fullmatch(r"https://\S+", published_result.url)
    assert re.search(r"\b(19|20)\d\d\b", published_result.text), "authors and year"
    assert published_result.what
    assert published_result.where
    assert published_result.differs.endswith(".")
    assert len(published_result.differs.split()) > 5


@every_published_result
def test_an_published_result_is_about_options_that_its_task_has(
    name: str, published_result: PublishedResult
) -> None:
    if not published_result.about:
        return
    asked, entry = parse(published_result.about), registry.find("task", name)
    assert asked.name == name
    assert asked.show() == published_result.about, "in canonical form"
    assert asked.options.keys() <= {field.name for field in fields(entry.config)}
    chosen = complete("task", asked)  # unknown options and values raise
    build_config(entry.config, chosen.options, name)
    assert published_result.holds_for(chosen)


IN_NO_PRESET = {"wikitext2_mini"}
"""Published numbers are of the whole set, which no directory has, so that no preset asks for it."""


@pytest.mark.parametrize("name", sorted(ANCHORED.keys() - IN_NO_PRESET))
def test_some_published_result_stands_beside_the_quick_or_the_standard_size(name: str) -> None:
    shown = [
        describe_task(name, sized_task(name, preset)[0]).published_results
        for preset in ("quick", "standard")
    ]
    assert any(shown)


def test_no_published_result_is_given_twice() -> None:
    for name, published_results in ANCHORED.items():
        assert len(set(published_results)) == len(published_results), name
        told = [
            (published_result.what, published_result.metric, published_result.about)
            for published_result in published_results
        ]
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
    chosen = complete("task", parse(asked))
    shown = describe_task(asked, chosen).published_results
    assert {published_result.about for published_result in shown} == ({begins} if begins else set())


def test_the_page_of_tasks_tells_the_options() -> None:
    told = "\n".join(facts_of(registry.find("task", "word_alignment")))
    assert "**Published.** For `word_alignment[pair=ja_en]`: fast_align" in told
    told = "\n".join(facts_of(registry.find("task", "snli")))
    assert "**Published.** decomposable" in told


def test_a_number_about_nothing_in_particular_stands_beside_every_run() -> None:
    published_result = replace(EVERY[0][1], about="")
    assert published_result.holds_for(parse("anything[size=3]"))
    assert not replace(published_result, about="other[size=3]").holds_for(parse("anything[size=3]"))


def test_the_error_of_the_memory_network_is_the_mean_of_its_published_tasks() -> None:
    # in percent, the column of three hops with linear start and noise, learned jointly
    published = [0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5]
    published += [0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0]
    some, every = (one for one in ANCHORED["babi"] if "memory network" in one.what)
    short = [published[number - 1] for number in SUBSETS["short"]]
    assert some.value == pytest.approx(sum(short) / len(short) / 100, abs=5e-5)
    assert every.value == pytest.approx(sum(published) / len(published) / 100, abs=5e-4)
