"""The symbol at the end of a labeled edge."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.labeled_edges import LabeledEdges, LabeledEdgesConfig, asked_nodes

FIRST = 4


def make(**options) -> LabeledEdges:
    sizes = {"length": 9, "beyond": 13, "labels": 3, "symbols": 5, "evaluate": 25, **options}
    return LabeledEdges(LabeledEdgesConfig(**sizes), seed=1)


def batches(task: LabeledEdges):
    stream = task.training(25, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_answer_is_the_symbol_where_the_edges_of_the_asked_label_lead(hops):
    scored = 0
    for batch in batches(make(hops=hops)):
        for inputs, targets, mask, labels in zip(
            batch.inputs.tolist(),
            batch.targets.tolist(),
            batch.mask.tolist(),
            batch.relations.tolist(),
            strict=True,
        ):
            for node, word in enumerate(inputs):
                asked, at = (word - FIRST) % 3 + 1, node
                for _ in range(hops):
                    at = labels[at].index(asked) if at is not None and asked in labels[at] else None
                assert mask[node] == (at is not None)
                expected = FIRST + (inputs[at] - FIRST) // 3 if mask[node] else 0
                assert targets[node] == expected
                scored += mask[node]
    assert scored > 100


def test_each_node_but_the_first_has_one_edge_of_each_label_to_an_earlier_node():
    for batch in batches(make()):
        for row in batch.relations.tolist():
            for node, labels in enumerate(row):
                assert sorted(labels)[-3:] == ([1, 2, 3] if node >= 3 else [0, 0, 0])
                assert not any(labels[node:])
                assert sum(label > 0 for label in labels) == (3 if node >= 3 else 0)


@pytest.mark.parametrize(("length", "labels", "hops"), [(9, 3, 3), (16, 3, 1), (16, 3, 4)])
def test_as_many_nodes_are_asked_in_the_mean_as_is_told(length, labels, hops):
    task = make(length=length, beyond=length, labels=labels, hops=hops, evaluate=4000)
    (batch,) = task.evaluation("validation")
    asked = float(batch.mask.sum()) / len(batch.mask)
    assert asked == pytest.approx(asked_nodes(length, labels, hops), abs=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"length": 8, "beyond": 10, "labels": 2, "hops": 20},
        {"length": 33, "beyond": 34, "labels": 16, "hops": 4},
        {"hops": 2**31 - 1},
    ],
)
def test_hops_that_hardly_any_node_can_follow_are_refused(options):
    with pytest.raises(
        InvalidConfig, match=r"nodes in the mean have a chain of hops=\d+, and at l"
    ):
        make(**options)


def test_batches_keep_their_labels_when_rows_are_picked():
    (batch,) = make().evaluation("validation")
    picked = batch.select(torch.tensor([3, 0]))
    assert torch.equal(picked.relations, batch.relations[[3, 0]])
    assert make().sizes.relations == 4


def test_a_sample_names_the_nodes_with_labels_and_the_answers_without():
    task = make()
    (batch,) = task.evaluation("validation")
    (sample,) = task.samples([Answer(batch, predicted=batch.targets)], 1)
    assert sample.source.split() == task.tokens(batch.inputs[0].tolist(), source=True)
    answers = [f"w{number - FIRST}" for number in batch.targets[0][batch.mask[0]].tolist()]
    assert sample.reference.split() == sample.output.split() == answers


@pytest.mark.parametrize("options", [{"labels": 0}, {"length": 6}, {"beyond": 8}, {"symbols": 1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="labeled_edges: "):
        make(**options)
