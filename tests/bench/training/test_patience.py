"""Patience: when training ends, at which rate it goes on, and which weights are tested."""

from dataclasses import replace

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.metric import Metric
from bench.training import training
from bench.training.evaluate import Evaluated
from bench.training.patience import Patience
from bench.training.protocol import read_protocol
from bench.training.quality import train_cell
from tasks.translation.transduction import Transduction

HIGHER = Metric(name="hits", title="Hits", unit="", low=0.0, high=1.0, better="higher")


def looked(values, options, watched=HIGHER) -> tuple[Patience, list[tuple[int, int]]]:
    """Patience after validations of a model whose weight is the number of the validation."""
    patience, model, told = Patience(read_protocol(f"adam[{options}]")), torch.nn.Linear(1, 1), []
    for number, value in enumerate(values, 1):
        torch.nn.init.constant_(model.weight, float(number))
        patience.look(number, value, Evaluated((), (), 0.0, 0), model, watched)
        told.append((patience.halved, patience.waited))
        if patience.over:
            break
    return patience, told


def test_it_waits_halves_waits_again_and_ends():
    patience, told = looked([0.1, 0.3, 0.2, 0.3, 0.2, 0.1, 0.9], "patience=2,halvings=1")
    assert told == [(0, 0), (0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert patience.over
    assert patience.rate == 0.5
    assert (patience.step, patience.value) == (4, 0.3), "of equal ones the last"
    assert patience.weights["weight"].item() == 4.0


def test_a_better_score_after_a_halving_starts_the_wait_anew():
    patience, told = looked([0.5, 0.4, 0.6, 0.5], "patience=1,halvings=1")
    assert told == [(0, 0), (1, 0), (1, 0), (1, 1)]
    assert patience.value == 0.6


def test_lower_is_better_where_the_metric_says_so():
    lower = replace(HIGHER, better="lower")
    assert looked([0.5, 0.4, 0.6], "patience=5", lower)[0].step == 2
    assert looked([0.5, 0.4, 0.6], "patience=5")[0].step == 3


def test_a_validation_without_the_metric_is_never_better():
    patience, _ = looked([None, None], "patience=2")
    assert patience.over
    assert not patience.weights


def test_without_patience_nothing_is_kept_or_ended():
    patience, told = looked([0.5, 0.4, 0.3], "steps=9")
    assert told == [(0, 0)] * 3
    assert not patience.weights
    assert not patience.over


def test_the_restored_weights_are_those_of_the_best_validation():
    patience, _ = looked([0.1, 0.9, 0.2], "patience=5")
    model = torch.nn.Linear(1, 1)
    patience.restore(model)
    assert model.weight.item() == 2.0


@pytest.mark.parametrize("options", ["patience=-1", "halvings=-1,patience=1", "halvings=2"])
def test_impossible_patience_is_refused(options):
    with pytest.raises(InvalidConfig, match="adam: "):
        read_protocol(f"adam[{options}]")


@pytest.fixture
def scores(monkeypatch):
    """Make validations have given scores, at every length; the test has its own.

    A pair of scores is that within training and that beyond it.
    """
    headline, honest = Transduction.headline, Transduction.scores

    def use(values):
        left = iter(values)

        def told(self, split, answers):
            found = honest(self, split, answers)
            if split == "test":
                return found
            value = next(left)
            within, beyond = value if isinstance(value, tuple) else (value, value)
            return [
                replace(s, value=beyond)
                if s.metric == headline.metric.name and not s.axis
                else replace(s, value=within if s.x <= self.trained_to else beyond)
                if (s.metric, s.axis) == (headline.of.name, headline.axis)
                else s
                for s in found
            ]

        monkeypatch.setattr(Transduction, "scores", told)

    return use


def row(done, metric, split=""):
    (found,) = [
        r.value
        for r in done.rows
        if (r.metric, r.split, r.axis, r.baseline) == (metric, split, "", "")
    ]
    return found


def test_a_cell_ends_by_patience_and_is_tested_at_its_best(smoke, scores):
    ranks = Transduction.ranking_metric().name
    scores([0.1, 0.4, 0.3, 0.2, 0.9])
    done = train_cell(smoke(protocol="adam[steps=99,batch=8,evaluate_every=2,patience=2]"))
    assert row(done, "train_steps_count") == 8
    assert row(done, "best_step_count") == 4
    assert row(done, ranks, "validation") == 0.4
    scores([0.1, 0.2])
    four = train_cell(smoke(protocol="adam[steps=4,batch=8,evaluate_every=2]"))
    assert row(done, "token_accuracy", "test") == row(four, "token_accuracy", "test")
    for one, two in zip(done.system.parameters(), four.system.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not [r for r in four.rows if r.metric == "best_step_count"]


def test_weights_are_chosen_within_and_beyond_training(smoke, scores):
    """A score that is noise beyond training does not choose weights that have learned little."""
    ranks = Transduction.ranking_metric().name
    scores([(0.2, 0.04), (0.6, 0.03), (0.9, 0.02), (0.8, 0.02), (0.7, 0.02)])
    done = train_cell(smoke(protocol="adam[steps=99,batch=8,evaluate_every=2,patience=2]"))
    assert row(done, "best_step_count") == 6
    assert row(done, ranks, "validation") == 0.02
    assert row(done, Transduction.choosing_metric().name, "validation") == pytest.approx(0.46)


def test_a_training_without_patience_stops_by_what_ranks(smoke, scores):
    scores([(0.9, 0.2), (0.2, 0.9), (0.9, 0.2)])
    protocol = "adam[steps=6,batch=8,evaluate_every=2,stop_at=0.8]"
    done = train_cell(smoke(protocol=protocol))
    assert row(done, "train_steps_count") == 4
    assert not [r for r in done.rows if r.metric == Transduction.choosing_metric().name]


def test_the_rate_of_a_cell_is_halved(smoke, scores, monkeypatch):
    made, honest = [], training.Training.update

    def noted(self, batch):
        honest(self, batch)
        made.append(self.optimizer.param_groups[0]["lr"])

    monkeypatch.setattr(training.Training, "update", noted)
    scores([0.5, 0.4, 0.3])
    train_cell(
        smoke(
            protocol="adam[lr=0.01,warmup=1,steps=9,batch=8,evaluate_every=1,patience=1,halvings=1]"
        )
    )
    assert made == [0.01, 0.01, 0.005]
