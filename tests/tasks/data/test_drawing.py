"""Baselines of drawn tasks count as many examples as networks are shown."""

import pytest

from bench.api import registry
from bench.api.selector import parse
from tasks.data.drawing import shown_to_networks


def quick(name: str):
    return registry.make(
        "task", parse(registry.find("task", name).target.presets["quick"].options), 0
    )


@pytest.mark.parametrize(
    ("name", "count"), [("hier_doc", 8000), ("keyword_cls", 9600), ("visits", 4800)]
)
def test_naive_bayes_counts_as_many_texts_as_networks_read(name, count):
    task = quick(name)
    train, test, _ = task.counted()
    assert len(train) == shown_to_networks(type(task)) == count > 4 * len(test)


def test_rules_from_many_words_are_better_than_those_from_few(monkeypatch):
    task = quick("infl")
    many = task.baselines()["suffix rules"]
    monkeypatch.setattr("tasks.inflection.infl.shown_to_networks", lambda task: 2000)
    assert many > task.baselines()["suffix rules"] + 0.02
