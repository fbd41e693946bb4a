"""Outputs that count something in the training data before the first update."""

import pytest
import torch

from bench.training.assemble import assemble
from bench.training.fit import fit_outputs
from bench.training.quality import train_cell


class Counting(list):
    """Stands for an output's `fit`: keeps what it is shown."""

    def __call__(self, pairs):
        self.extend(pairs)


def test_the_output_sees_as_many_training_pairs_as_it_asks_for(smoke, clock, monkeypatch):
    built = assemble(smoke("lexicon_bias[pairs=100]", task="transduction[rule=dict]"), None)
    seen = Counting()
    monkeypatch.setattr(built.system.there.output, "fit", seen)
    assert fit_outputs(built.system, built.task, 16, 0, clock) == 1.0
    assert len(seen) == 100
    table = built.task.table.tolist()
    for source, target in seen:
        assert [table[word] for word in source] == target
        assert source[-1] == 2
    again = Counting()
    monkeypatch.setattr(built.system.there.output, "fit", again)
    fit_outputs(built.system, built.task, 16, 0, clock)
    assert again == seen
    other = Counting()
    monkeypatch.setattr(built.system.there.output, "fit", other)
    fit_outputs(built.system, built.task, 16, 1, clock)
    assert other != seen


def test_an_output_that_counts_nothing_costs_nothing(smoke, clock):
    built = assemble(smoke("additive"), None)
    assert fit_outputs(built.system, built.task, 16, 0, clock) is None
    assert clock.now == 0
    assert not [row for row in train_cell(smoke()).rows if row.metric == "fit_cpu_s"]


def test_both_directions_see_the_pairs_their_own_way(smoke, clock):
    task = "transduction[rule=dict,max_length=3,vocab=6]"
    built = assemble(smoke("lexicon_bias[pairs=300,direction=both]", task=task), None)
    fit_outputs(built.system, built.task, 16, 0, clock)
    there, back = built.system.there.output.lexicon, built.system.back.output.lexicon
    for word in range(4, 10):
        said = there.ids[word, 0]
        assert said == built.task.table[word]
        assert back.ids[said, 0] == word


@pytest.mark.parametrize("variant", ["lexicon_bias", "lexicon_linear"])
def test_a_trained_cell_reports_the_time_and_gives_the_same_bits_again(variant, smoke):
    cell = smoke(f"{variant}[pairs=200]", task="transduction[rule=dict]")
    one, two = train_cell(cell), train_cell(cell)
    (fitted,) = [row.value for row in one.rows if row.metric == "fit_cpu_s"]
    assert fitted > 0
    pairs = zip(one.system.state_dict().values(), two.system.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_an_output_for_whole_sequences_has_scores_of_sequences_alone(smoke):
    found = train_cell(smoke("ssnt"))
    metrics = {row.metric for row in found.rows}
    assert "sequence_accuracy" in metrics
    assert "token_accuracy" not in metrics
    assert found.artifact["samples"]
    assert found.artifact["attention"] == []
    found = train_cell(smoke("ssnt", task="oov_copy[evaluate=16]"))
    metrics = {row.metric for row in found.rows}
    assert "sequence_accuracy" in metrics
    assert not metrics & {"token_accuracy", "oov_accuracy"}
