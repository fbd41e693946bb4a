import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes import mean_field_gap
from tasks.probes.mean_field_gap import _of_batch
from tasks.probes.observations import observations


def measured(seen):
    return {s.metric: s.value for s in make("probe", parse("mean_field_gap")).measure(seen)}


def test_it_equals_a_loop_over_keys(subject):
    seen = subject("additive", batches=5)
    *_, one = observations(seen)
    gap, estimate = _of_batch(seen, one)
    values = one.trace.memories[0].source.value[:, 0]
    row, t = 1, 1
    states, embedded = one.trace.states[row, t], one.trace.embedded[row, t]

    def p(context):
        return torch.softmax(seen.backbone.emit(states, context, embedded), -1)

    weights = one.weights[row, t]
    mean = sum(w * v for w, v in zip(weights, values[row], strict=True))
    mixed = sum(w * p(v) for w, v in zip(weights, values[row], strict=True))
    assert float(gap[row, t]) == pytest.approx(float((p(mean) - mixed).abs().sum() / 2))
    second = torch.zeros_like(p(mean))
    for word in range(len(second)):
        bent = torch.autograd.functional.hessian(lambda c, word=word: p(c)[word], mean)
        ways = [v - mean for v in values[row]]
        second[word] = sum(w * way @ bent @ way for w, way in zip(weights, ways, strict=True)) / 2
    assert float(estimate[row, t]) == pytest.approx(float(second.abs().sum() / 2), rel=1e-2)
    assert float(gap.max()) > 1e-4


def test_a_linear_prediction_has_no_gap(subject, monkeypatch):
    seen = subject("additive", batches=4)
    linear = torch.rand(seen.backbone.decoder.context_width, 7, dtype=torch.float64)
    monkeypatch.setattr(mean_field_gap, "_predict", lambda subject, one, context: context @ linear)
    found = measured(seen)
    assert found["mean_field_gap_share"] == pytest.approx(0.0, abs=1e-12)
    assert found["second_order_gap_share"] == pytest.approx(0.0, abs=1e-11)


def test_one_key_has_no_gap_and_no_estimate(subject):
    seen = subject("additive", task="transduction[min_length=1,max_length=1,beyond=2,vocab=6]")
    *_, one = observations(seen)
    only = one._replace(
        weights=torch.zeros_like(one.weights).index_fill(-1, torch.tensor([0]), 1.0)
    )
    gap, estimate = _of_batch(seen, only)
    assert float(gap.abs().max()) < 1e-12
    assert float(estimate.abs().max()) < 1e-9


def test_networks_that_do_not_read_the_context_are_refused(subject):
    with pytest.raises(Refused, match="one head"):
        measured(subject("scaled_dot", task="recall"))
    with pytest.raises(Refused, match=r"one head|does not read"):
        measured(subject("scaled_dot", backbone="transformer_seq2seq"))
