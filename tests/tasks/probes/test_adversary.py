import math

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes import adversary
from tasks.probes.interventions import interventions


def measured(seen, selector):
    return {s.metric: s.value for s in make("probe", parse(selector)).measure(seen)}


@pytest.mark.slow
def test_a_model_that_ignores_its_context_has_adversaries_up_to_the_bound(subject, monkeypatch):
    seen = subject("additive", batches=5)
    plain = seen.backbone.emit
    monkeypatch.setattr(seen.backbone, "emit", lambda s, c, e: plain(s, 0 * c, e))
    found = measured(seen, "adversary[steps=100,lr=0.3]")
    assert found["adversary_found_share"] == 1.0
    # weights near (1/2, 1/2) on two keys are at most 0.216 nats away from any others
    assert 0.2 < found["adversary_js_nats"] <= math.log(2)


def test_an_adversary_meets_its_constraint(padded, monkeypatch):
    def search(epsilon):
        probe = make("probe", parse(f"adversary[epsilon={epsilon},steps=20]"))
        return probe._search(test, torch.Generator().manual_seed(0))[test.several]

    test = next(iter(interventions(padded("additive"), torch.Generator().manual_seed(0))))
    tight, loose = search(1e-5), search(1.0)
    assert (loose > 0).all()
    assert (loose <= math.log(2)).all()
    assert (tight < loose / 2).all()
    # of a network that every change moves as far as can be, no other weights are within reach
    monkeypatch.setattr(adversary, "total_variation", lambda one, other: 1 + 0 * other.sum(-1))
    assert not search(1e-5).any()


def test_searching_leaves_the_model_alone(subject):
    seen = subject("additive")
    before = [p.clone() for p in seen.backbone.parameters()]
    measured(seen, "adversary[steps=3]")
    assert all(torch.equal(a, b) for a, b in zip(before, seen.backbone.parameters(), strict=True))
    assert all(p.grad is None for p in seen.backbone.parameters())


def test_bad_options_are_refused():
    with pytest.raises(InvalidConfig, match="positive"):
        make("probe", parse("adversary[epsilon=-1.0]"))
