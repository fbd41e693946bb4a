"""Tasks whose test has longer inputs than training say how long those of training are."""

import pytest

from bench.api import registry
from bench.api.config import build_config
from bench.api.selector import parse
from tasks.data.words import EOS

LONGER = (
    "transduction",
    "oov_copy",
    "two_source",
    "after_marker",
    "selective_copy",
    "sorting",
    "repeat_copy",
    "labeled_edges",
    "table_questions",
    "recall",
    "needle",
    "offset",
    "composition",
    "causal_copy",
)


def lengths(task, batch) -> set[int]:
    """Places of the rows of a batch on the axis of lengths."""
    if batch.features is not None:
        return {batch.features.shape[1]}
    if not batch.sources:
        return {batch.inputs.shape[1]}
    text = batch.sources[0]
    if text.mask is None:
        return {text.tokens.shape[1]}
    return set((text.mask & (text.tokens != EOS)).sum(1).tolist())


@pytest.mark.parametrize("name", LONGER)
@pytest.mark.parametrize("preset", ["smoke", "quick"])
def test_the_longest_input_of_training_is_told_and_the_test_has_longer_ones(name, preset):
    found = registry.find("task", name)
    chosen = parse(found.target.presets[preset].options)
    task = registry.make("task", chosen, 0)
    told = found.target.trained_to_of(build_config(found.config, dict(chosen.options), name))
    assert told is not None
    assert task.trained_to in (told, float("inf"))
    tested = {one for batch in task.evaluation("test") for one in lengths(task, batch)}
    # levels of a diagnostic are its places, also where an input has a symbol or two beside them
    places = set(getattr(task, "tested", tested))
    assert min(places) <= told < max(places)
